/// @file How much of a step's reductions a caller does not wait for: stage 2, as many buckets as tensors, two ranks as threads. A backward
/// pass takes as long as the reductions alone, spread over the tensors: slept (an accelerator at work) or computed on the caller's own
/// core, with and without the progress thread, interleaved. usage: overlap_benchmark [options of Google Benchmark] [--elements=N]
/// [--tensors=8] [--repeats=9] [--trace=FILE]. --elements: of a tensor, by default an eighth of GPT-2 small's; --trace: rank r writes
/// FILE.r.json
#include "must.h"
#include "options.h"
#include "ranks.h"
#include "samples.h"

#include <benchmark/benchmark.h>

#include <chrono>

namespace {

using namespace zero::bench;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

struct Shape {
  int64_t elements;
  int64_t tensors;
};

/// What a backward pass does before each gradient is ready.
enum class Work { nothing, sleeps, computes };

void work_for(Work work, Seconds time) {
  if (work == Work::sleeps) std::this_thread::sleep_for(time);
  if (work != Work::computes) return;
  const auto end = Clock::now() + time;
  for (double value = 1; Clock::now() < end;) {
    for (int i = 0; i < 1000; ++i) value = value * 0.999 + 0.5;
    benchmark::DoNotOptimize(value);
  }
}

/// One rank's optimizer.
class Rank {
 public:
  Rank(zero_group *group, const Shape &shape, bool overlaps) : group_(group), shape_(shape) {
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_STAGE, 2));
    must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
    must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, overlaps ? 1 : 0));
    must(zero_config_set_i64(config, ZERO_KEY_BUCKET_BYTES, 4 * shape.elements));
    must(zero_config_set_i64(config, ZERO_KEY_TRACE_EVENTS, 8 * shape.tensors));
    must(zero_optimizer_create(group, config, &optimizer_));
    zero_config_release(config);
    for (int64_t i = 0; i < shape.tensors; ++i) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, ("t" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &shape.elements, 1, &id));
    }
    must(zero_optimizer_seal(optimizer_));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
    pass(Work::nothing, Seconds(0));
  }
  Rank(const Rank &) = delete;
  ~Rank() { zero_optimizer_release(optimizer_); }

  /// Seconds from the start of a backward pass that works for `time` until all gradients are reduced. The step is then ended.
  double pass(Work work, Seconds time) {
    must(zero_group_barrier(group_));
    const auto begin = Clock::now();
    for (int64_t id = shape_.tensors - 1; id >= 0; --id) {
      void *data = nullptr;
      int64_t accumulate = 0;
      must(zero_optimizer_grad_acquire(optimizer_, id, nullptr, &data, &accumulate));
      work_for(work, time / static_cast<double>(shape_.tensors));
      must(zero_optimizer_grad_ready(optimizer_, id, nullptr, 0, shape_.elements, nullptr));
    }
    must(zero_optimizer_reduce(optimizer_, nullptr, nullptr));
    const Seconds taken = Clock::now() - begin;
    must(zero_optimizer_gather(optimizer_, nullptr));
    forward();
    return taken.count();
  }

  /// The next forward pass: new parameters travel behind gather, and only their acquisition waits for them.
  void forward() {
    for (int64_t id = 0; id < shape_.tensors; ++id) {
      void *data = nullptr;
      must(zero_optimizer_param_acquire(optimizer_, id, nullptr, 0, nullptr, &data));
      must(zero_optimizer_param_release(optimizer_, id));
    }
  }

  void save_trace(const std::string &path) const {
    int64_t nbytes = 0;
    must(zero_stats_optimizer_trace(optimizer_, nullptr, 0, &nbytes));
    std::string text(static_cast<size_t>(nbytes), 0);
    must(zero_stats_optimizer_trace(optimizer_, text.data(), nbytes, nullptr));
    std::FILE *file = std::fopen(path.c_str(), "w");
    if (file == nullptr || std::fputs(text.c_str(), file) < 0 || std::fclose(file) != 0) fail(path.c_str(), "cannot be written");
  }

 private:
  zero_group *group_;
  Shape shape_;
  zero_optimizer *optimizer_ = nullptr;
};

struct Times {
  Samples alone, sleeps, sleeps_behind, computes, computes_behind;
};

void run_rank(zero_group *group, const Shape &shape, int64_t repeats, const std::string &trace, Times *out) {
  int64_t rank = 0;
  must(zero_group_rank(group, &rank));
  Rank overlapped(group, shape, true);
  Rank behind(group, shape, false);
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    double alone = overlapped.pass(Work::nothing, Seconds(0));
    // All ranks work for as long as rank 0's reductions took.
    must(zero_group_broadcast(group, &alone, 1, ZERO_DTYPE_F64, 0, nullptr));
    const double sleeps = overlapped.pass(Work::sleeps, Seconds(alone));
    if (!trace.empty() && repeat + 1 == repeats) overlapped.save_trace(trace + "." + std::to_string(rank) + ".json");
    const double sleeps_behind = behind.pass(Work::sleeps, Seconds(alone));
    const double computes = overlapped.pass(Work::computes, Seconds(alone));
    const double computes_behind = behind.pass(Work::computes, Seconds(alone));
    if (rank != 0) continue;
    out->alone.add(alone);
    out->sleeps.add(sleeps / alone);
    out->sleeps_behind.add(sleeps_behind / alone);
    out->computes.add(computes / alone);
    out->computes_behind.add(computes_behind / alone);
  }
}

void print_row(const char *name, const Samples &ratios) {
  std::printf("%-52s %8.2f %8.2f %8.2f\n", name, ratios.median(), ratios.least(), ratios.most());
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  Options options(argc, argv, "[--elements=N] [--tensors=8] [--repeats=9] [--trace=FILE]");
  const Shape shape{options.number("elements", 124'439'808 / 8), options.number("tensors", 8)};
  const int64_t repeats = options.number("repeats", 9);
  const std::string trace = options.text("trace", "");
  options.finish();
  constexpr int64_t kRanks = 2;
  Times times;
  run_ranks(Launch::threads, kRanks, false, [&](zero_group *group) { run_rank(group, shape, repeats, trace, &times); });
  std::printf("stage 2, %lld tensors and buckets of %lld fp32 elements, 2 ranks as threads; reductions alone: %.1f ms (%.1f to %.1f)\n",
              static_cast<long long>(shape.tensors), static_cast<long long>(shape.elements), 1e3 * times.alone.median(),
              1e3 * times.alone.least(), 1e3 * times.alone.most());
  std::printf("a backward pass as long as the reductions, until all is reduced, over that time:\n%-52s %8s %8s %8s\n", "", "median", "min",
              "max");
  print_row("sleeps", times.sleeps);
  print_row("sleeps, ZERO_KEY_OVERLAP 0", times.sleeps_behind);
  print_row("computes on as many cores as ranks", times.computes);
  print_row("computes on as many cores as ranks, ZERO_KEY_OVERLAP 0", times.computes_behind);
  return 0;
}
