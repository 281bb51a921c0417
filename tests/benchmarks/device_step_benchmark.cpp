/// @file Steps of optimizers that keep everything on a CUDA device, as fractions of the rate at which the device copies its own memory,
/// interleaved: storage of slots, many small tensors, and several ranks that share the device. Steps of one rank also as CUDA graphs, which
/// tell how many kernels, copies and clears a step with its gradients is. Each row is printed when it has been measured.
/// usage: device_step_benchmark [options of Google Benchmark] [--elements=134217728] [--repeats=9]
#include "must.h"
#include "options.h"
#include "samples.h"
#include "tests/memory/caller_device.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using zero::bench::must;
using zero::bench::Samples;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

using Keys = std::vector<std::pair<int32_t, int64_t>>;

/// What one row of the table measures.
struct Case {
  const char *name;
  int32_t dtype;
  Keys keys;
  int64_t ranks;
  int64_t tensors;
  int64_t count;  ///< elements of each tensor
  double element_nbytes;
  const char *algorithm = "adamw";
  Samples copy = {};  ///< between the steps
  Samples step = {};
  Samples call = {};   ///< until step returns
  Samples give = {};   ///< grad_ready of all tensors, with its look at every element
  Samples graph = {};  ///< a graph of both, in a world of one
  int64_t nodes = 0;   ///< of the graph; 0: there is none

  /// Per cent of the copies' rate; 0: none, since memory does not decide.
  int goal() const { return std::strcmp(algorithm, "adamw") != 0 || tensors > 1 ? 0 : ranks > 1 ? 88 : 92; }
  double nbytes() const { return element_nbytes * static_cast<double>(tensors) * static_cast<double>(count); }
};

/// Of matrices, which are square.
constexpr int64_t kSide = 4096;
constexpr int64_t kMatrices = 8;

/// What the products of Muon's five steps take (kernels/muon.h).
double muon_operations() {
  const auto side = static_cast<double>(kSide);
  return 5.0 * kMatrices * (3 + 1) * side * side * side;
}

/// In 0.25 .. 0.5.
std::vector<std::byte> random_values(int32_t dtype, int64_t count) {
  const size_t element = dtype == ZERO_DTYPE_F32 ? 4 : 2;
  std::vector<std::byte> values(static_cast<size_t>(count) * element);
  std::minstd_rand random(7);
  for (size_t at = 0; at < values.size(); at += element) {
    const auto bits = static_cast<uint32_t>(random());
    const uint32_t f32 = 0x3e800000 | (bits & 0x7fffff);
    const uint32_t stored = dtype == ZERO_DTYPE_F32 ? f32 : dtype == ZERO_DTYPE_F16 ? 0x3400 | (bits & 0x3ff) : f32 >> 16;
    std::memcpy(&values[at], &stored, element);
  }
  return values;
}

/// One rank's optimizer; gradients lie in its own memory.
class Rank {
 public:
  Rank(const Case &row, int64_t rank) : row_(row), stream_(caller_stream_create(0)) {
    must(zero_group_create_local((std::string("device_step.") + row.name).c_str(), rank, row.ranks, nullptr, &group_));
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_DEVICE, 0));
    must(zero_config_set_str(config, ZERO_KEY_CUDA_MODULE, caller_module()));
    must(zero_config_set_i64(config, ZERO_KEY_TIER, ZERO_TIER_DEVICE));
    must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, 0));
    must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, row.algorithm));
    for (const auto &[key, value] : row.keys) must(zero_config_set_i64(config, key, value));
    must(zero_optimizer_create(group_, config, &optimizer_));
    zero_config_release(config);
    const int64_t columns = std::gcd(row.count, kSide);
    const int64_t shape[] = {row.count / columns, columns};
    for (int64_t i = 0; i < row.tensors; ++i) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, ("t" + std::to_string(i)).c_str(), row.dtype, shape, 2, &id));
    }
    must(zero_optimizer_seal(optimizer_));
    for (int64_t i = 0; i < row.tensors; ++i) must(zero_optimizer_init_param(optimizer_, i, ZERO_INITIALISER_UNIFORM, -1, 1, 1));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
    fill_gradients();
  }
  Rank(const Rank &) = delete;
  ~Rank() {
    if (graph_ != nullptr) caller_graph_destroy(graph_);
    zero_optimizer_release(optimizer_);
    zero_group_release(group_);
    caller_stream_destroy(stream_);
  }

  /// Numbers as a training has them, which stay: of zeros, roots and quotients take the device longer.
  void fill_gradients() const {
    constexpr int64_t kPart = int64_t{1} << 20;
    const int64_t element = row_.dtype == ZERO_DTYPE_F32 ? 4 : 2;
    const std::vector<std::byte> values = random_values(row_.dtype, std::min(row_.count, kPart));
    for (int64_t i = 0; i < row_.tensors; ++i) {
      void *data = nullptr;
      int64_t accumulate = 0;
      must(zero_optimizer_grad_acquire(optimizer_, i, stream_, &data, &accumulate));
      for (int64_t begin = 0; begin < row_.count; begin += kPart) {
        const int64_t part = std::min(row_.count - begin, kPart);
        caller_copy(stream_, static_cast<std::byte *>(data) + begin * element, values.data(), part * element, 0);
      }
      must(zero_optimizer_grad_ready(optimizer_, i, nullptr, 0, row_.count, stream_));
    }
    must(zero_optimizer_step(optimizer_, stream_, nullptr));
    caller_wait(stream_);
  }

  /// The first error.
  int32_t give() const {
    int32_t status = ZERO_OK;
    for (int64_t i = 0; i < row_.tensors && status == ZERO_OK; ++i) {
      void *data = nullptr;
      int64_t accumulate = 0;
      status = zero_optimizer_grad_acquire(optimizer_, i, stream_, &data, &accumulate);
      if (status == ZERO_OK) status = zero_optimizer_grad_ready(optimizer_, i, nullptr, 0, row_.count, stream_);
    }
    return status;
  }

  /// The seconds of grad_ready, of the call of step, and of the step.
  void step(double out[3]) const {
    auto begin = Clock::now();
    must(give());
    caller_wait(stream_);
    out[0] = seconds_since(begin);
    must(zero_group_barrier(group_));
    begin = Clock::now();
    must(zero_optimizer_step(optimizer_, stream_, nullptr));
    out[1] = seconds_since(begin);
    caller_wait(stream_);
    must(zero_group_barrier(group_));
    out[2] = seconds_since(begin);
  }

  /// The graph's nodes; 0: it could not be made, and the optimizer may be lost.
  int64_t capture() {
    caller_capture_begin(stream_);
    int32_t status = give();
    if (status == ZERO_OK) status = zero_optimizer_step(optimizer_, stream_, nullptr);
    char text[1024] = "CUDA has ended the capture";
    if (status != ZERO_OK) zero_last_error_copy(text, sizeof text);
    graph_ = caller_capture_end(stream_);
    if (status == ZERO_OK && graph_ != nullptr) return caller_graph_nodes(graph_);
    std::fprintf(stderr, "%s: no graph: %s\n", row_.name, text);
    return 0;
  }

  /// The seconds of gradients and step as a graph.
  double replay() const {
    const auto begin = Clock::now();
    caller_replay(graph_, stream_);
    caller_wait(stream_);
    return seconds_since(begin);
  }

 private:
  const Case &row_;
  void *stream_;
  zero_group *group_ = nullptr;
  zero_optimizer *optimizer_ = nullptr;
  void *graph_ = nullptr;
};

/// The device copies its own memory: what is read and what is written counts.
class Copy {
 public:
  explicit Copy(int64_t nbytes)
      : nbytes_(nbytes), from_(caller_alloc(0, nbytes)), to_(caller_alloc(0, nbytes)), stream_(caller_stream_create(0)) {}
  Copy(const Copy &) = delete;
  ~Copy() {
    caller_stream_destroy(stream_);
    caller_free(from_);
    caller_free(to_);
  }
  void run(Samples &samples) const {
    const auto begin = Clock::now();
    caller_copy(stream_, to_, from_, nbytes_, 0);
    caller_wait(stream_);
    samples.add(seconds_since(begin));
  }
  double rate(const Samples &samples) const { return 2 * static_cast<double>(nbytes_) / samples.median(); }

 private:
  int64_t nbytes_;
  void *from_;
  void *to_;
  void *stream_;
};

/// All repeats of a case, between copies. Graphs come last: what cannot be captured may be the optimizer's end.
void measure(Case &row, const Copy &copy, int64_t repeats) {
  std::barrier turn(row.ranks);
  std::vector<std::jthread> threads;
  for (int64_t rank = 0; rank < row.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Rank mine(row, rank);
      for (int64_t repeat = -2; repeat < repeats; ++repeat) {
        double seconds[3];
        turn.arrive_and_wait();
        if (rank == 0 && repeat >= 0) copy.run(row.copy);
        turn.arrive_and_wait();
        mine.step(seconds);
        if (rank != 0 || repeat < 0) continue;
        row.give.add(seconds[0]);
        row.call.add(seconds[1]);
        row.step.add(seconds[2]);
      }
      if (row.ranks == 1) row.nodes = mine.capture();
      for (int64_t repeat = 0; repeat < repeats && row.nodes > 0; ++repeat) row.graph.add(mine.replay());
    });
  }
}

std::vector<Case> cases(int64_t elements) {
  const std::pair<int32_t, int64_t> bf16_moments[] = {{ZERO_KEY_FIRST_MOMENT_DTYPE, ZERO_DTYPE_BF16},
                                                      {ZERO_KEY_SECOND_MOMENT_DTYPE, ZERO_DTYPE_BF16}};
  const Keys f8_moments = {{ZERO_KEY_FIRST_MOMENT_DTYPE, ZERO_DTYPE_F8_E4M3}, {ZERO_KEY_SECOND_MOMENT_DTYPE, ZERO_DTYPE_F8_UE5M3}};
  const Keys remainder = {{ZERO_KEY_MASTER, ZERO_MASTER_REMAINDER}};
  const Keys f8_params = {{ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3}};
  const Keys small = {{ZERO_KEY_MASTER, ZERO_MASTER_NONE}, {ZERO_KEY_ROUNDING, ZERO_ROUNDING_STOCHASTIC}, bf16_moments[0], bf16_moments[1]};
  std::vector<Case> rows;
  rows.push_back({"fp32", ZERO_DTYPE_F32, {}, 1, 1, elements, 28});
  rows.push_back({"bf16, fp32 master", ZERO_DTYPE_BF16, {}, 1, 1, elements, 28});
  rows.push_back({"f16, fp32 master", ZERO_DTYPE_F16, {}, 1, 1, elements, 28});
  rows.push_back({"bf16, remainder", ZERO_DTYPE_BF16, remainder, 1, 1, elements, 26});
  rows.push_back({"bf16 throughout, stochastic", ZERO_DTYPE_BF16, small, 1, 1, elements, 14});
  rows.push_back({"bf16, fp32 master, 8-bit moments", ZERO_DTYPE_BF16, f8_moments, 1, 1, elements, 16 + 16.0 / 256});
  rows.push_back({"bf16, fp32 master, 8-bit parameters", ZERO_DTYPE_BF16, f8_params, 1, 1, elements, 27 + 4.0 / 256});
  rows.push_back({"fp32, 2000 tensors of 4096", ZERO_DTYPE_F32, {}, 1, 2000, 4096, 28});
  rows.push_back({"LAMB, fp32", ZERO_DTYPE_F32, {}, 1, 1, elements, 40, "lamb"});
  rows.push_back({"Muon, fp32, 8 of 4096 x 4096", ZERO_DTYPE_F32, {}, 1, kMatrices, kSide * kSide, 0, "muon"});
  for (const int64_t ranks : {2, 4}) {
    rows.push_back({ranks == 2 ? "fp32, 2 ranks, stage 1" : "fp32, 4 ranks, stage 1",
                    ZERO_DTYPE_F32,
                    {},
                    ranks,
                    1,
                    elements,
                    20 + 8 * static_cast<double>(ranks)});
  }
  return rows;
}

void print_head() {
  std::printf(
      "AdamW, where nothing else is said, on device 0: bytes that steps must move per second, against copies of 1 GiB between them\n");
  std::printf("%-36s %7s %9s %9s %9s %8s %9s %8s %5s %10s %12s %9s %6s\n", "", "B/elem", "median ms", "min ms", "max ms", "GB/s",
              "copy GB/s", "of copy", "goal", "call us", "gradients ms", "graph ms", "nodes");
}

/// Also what is printed last is there if a later row ends the program.
void print(const Case &row, double copied) {
  const double rate = row.nbytes() / row.step.median();
  const std::string goal = row.goal() > 0 ? std::to_string(row.goal()) + "%" : "-";
  std::printf("%-36s %7.2f %9.3f %9.3f %9.3f %8.0f %9.0f %7.1f%% %5s %10.1f %12.3f ", row.name, row.element_nbytes, 1e3 * row.step.median(),
              1e3 * row.step.least(), 1e3 * row.step.most(), 1e-9 * rate, 1e-9 * copied, 100 * rate / copied, goal.c_str(),
              1e6 * row.call.median(), 1e3 * row.give.median());
  if (row.nodes > 0) {
    std::printf("%9.3f %6lld\n", 1e3 * row.graph.median(), static_cast<long long>(row.nodes));
  } else {
    std::printf("%9s %6s\n", "-", "-");
  }
  if (row.element_nbytes == 0) std::printf("%-36s %.1f TFLOP/s\n", "", 1e-12 * muon_operations() / row.step.median());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  zero::bench::Options options(argc, argv, "[--elements=134217728] [--repeats=9]");
  std::vector<Case> rows = cases(options.number("elements", 134'217'728));
  const int64_t repeats = options.number("repeats", 9);
  options.finish();
  if (*caller_missing() != '\0') zero::bench::fail("no device", caller_missing());
  const Copy copy(int64_t{1} << 30);
  print_head();
  for (Case &row : rows) {
    measure(row, copy, repeats);
    print(row, copy.rate(row.copy));
  }
  std::printf("goals are for 100M elements and more\n");
  return 0;
}
