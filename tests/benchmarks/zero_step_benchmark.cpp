/// @file The whole step over ranks: GPT-2 small's list of tensors, AdamW, every stage, gradients in the library's memory and in the
/// caller's, with and without overlap, beside the time that the bytes which must move (step_traffic.h) take at the rate of the
/// read-modify-write loop (rank_limit.h) that all ranks run at once before each repeat; multiples are those of one repeat.
/// usage: zero_step_benchmark [options of Google Benchmark] [--ranks=1,2,4] [--stage=0,1,2,3] [--overlap=0,1] [--processes | --launcher]
///        [--bind] [--library-memory] [--one-copy] [--mixed] [--repeats=9] [--elements-scale=1.0]. --one-copy: of the parameters, in stages
///        1 and 2. --mixed: bf16 parameters and gradients with an fp32 master
#include "gpt2_shapes.h"
#include "options.h"
#include "rank_limit.h"
#include "ranks.h"
#include "samples.h"
#include "step_traffic.h"

#include <benchmark/benchmark.h>

#include <sys/resource.h>

#include <bit>
#include <iterator>

namespace {

using namespace zero;
using namespace zero::bench;

constexpr const char *kUsage =
    "[--ranks=1,2,4] [--stage=0,1,2,3] [--overlap=0,1] [--processes | --launcher] [--bind] [--library-memory] [--one-copy] "
    "[--mixed] [--repeats=9] [--elements-scale=1.0]";

struct Setup {
  std::vector<int64_t> ranks, stages, overlaps;
  Launch launch = Launch::threads;
  bool binds = false;  ///< each rank to one core
  bool own_memory = true;
  bool one_copy = false;
  bool mixed = false;  ///< parameters and gradients are bf16, with an fp32 master
  int64_t repeats = 9;
  std::vector<Tensor> tensors;
  int64_t elements = 0;

  DType dtype() const { return mixed ? DType::bf16 : DType::f32; }
};

/// One rank's optimizer, and memory of the caller's own for a whole gradient and, in stage 3, all parameters.
class Trainer {
 public:
  Trainer(zero_group *group, const Setup &setup, int64_t stage, int64_t overlap) : tensors_(setup.tensors), dtype_(setup.dtype()) {
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
    must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, overlap));
    must(zero_config_set_i64(config, ZERO_KEY_ONE_COPY, setup.one_copy ? 1 : 0));
    must(zero_optimizer_create(group, config, &optimizer_));
    zero_config_release(config);
    for (const Tensor &tensor : tensors_) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, tensor.name.c_str(), static_cast<int32_t>(dtype_), tensor.shape.data(),
                                    static_cast<int64_t>(tensor.shape.size()), &id));
      begins_.push_back(id == 0 ? 0 : begins_.back() + tensors_[static_cast<size_t>(id) - 1].count());
    }
    must(zero_optimizer_seal(optimizer_));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
    const auto own_nbytes = static_cast<size_t>(setup.elements * dtype_nbytes(dtype_));
    if (setup.own_memory) own_grads_.resize(own_nbytes);
    if (setup.own_memory && stage == 3) own_params_.resize(own_nbytes);
    if (setup.own_memory) fill(own_grads_.data(), setup.elements);
    for (int warm_up = 0; warm_up < 2; ++warm_up) {
      give(false, true);
      step();
    }
  }
  Trainer(const Trainer &) = delete;
  ~Trainer() { zero_optimizer_release(optimizer_); }

  /// All gradients, in the order in which a backward pass makes them.
  void give(bool own, bool fills = false) {
    for (auto id = static_cast<int64_t>(tensors_.size()) - 1; id >= 0; --id) {
      const int64_t count = tensors_[static_cast<size_t>(id)].count();
      const std::byte *grad = own ? at(own_grads_, id) : nullptr;
      void *data = nullptr;
      int64_t accumulate = 0;
      if (!own) must(zero_optimizer_grad_acquire(optimizer_, id, nullptr, &data, &accumulate));
      if (fills) fill(data, count);
      must(zero_optimizer_grad_ready(optimizer_, id, grad, 0, count, nullptr));
    }
  }
  void step() { must(zero_optimizer_step(optimizer_, nullptr, nullptr)); }

  zero_step_stats stats() const {
    zero_step_stats stats;
    must(zero_step_stats_init(&stats, sizeof stats));
    must(zero_stats_optimizer_step(optimizer_, &stats));
    return stats;
  }
  /// Most bytes this rank has held beyond what its stage keeps for ever.
  int64_t beyond_formula_nbytes() const {
    zero_memory_stats stats;
    must(zero_memory_stats_init(&stats, sizeof stats));
    must(zero_stats_optimizer_memory(optimizer_, ZERO_MEMORY_TOTAL, &stats));
    return stats.peak_nbytes - stats.formula_nbytes;
  }

  /// Every parameter once, in the order of a forward pass.
  void acquire(bool own) {
    for (int64_t id = 0; id < std::ssize(tensors_); ++id) {
      std::byte *dst = own ? at(own_params_, id) : nullptr;
      void *data = nullptr;
      must(zero_optimizer_param_acquire(optimizer_, id, dst, own ? tensors_[static_cast<size_t>(id)].count() : 0, nullptr, &data));
      benchmark::DoNotOptimize(data);
      must(zero_optimizer_param_release(optimizer_, id));
    }
  }

 private:
  std::byte *at(std::vector<std::byte> &own, int64_t id) const {
    return own.data() + begins_[static_cast<size_t>(id)] * dtype_nbytes(dtype_);
  }
  void fill(void *data, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(i % 1021 - 510) * 1e-4F;
      if (dtype_ == DType::f32) {
        static_cast<float *>(data)[i] = value;
      } else {
        static_cast<uint16_t *>(data)[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      }
    }
  }

  const std::vector<Tensor> &tensors_;
  const DType dtype_;
  zero_optimizer *optimizer_ = nullptr;
  std::vector<int64_t> begins_;
  std::vector<std::byte> own_grads_, own_params_;
};

/// What is timed together, by [own memory][phase], and of steps in the library's memory also what they are made of on rank 0.
struct Times {
  Samples of[2][3];
  Samples reduce, apply, gather;
  int64_t minor_faults = 0;
  int64_t beyond_formula_nbytes = 0;
};

int64_t minor_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// A step in the library's memory, with its parts.
void measure_parts(zero_group *group, Trainer &trainer, Times &times) {
  const zero_step_stats before = trainer.stats();
  const int64_t faults = minor_faults();
  times.of[0][static_cast<int>(Phase::step)].add(slowest(group, [&] { trainer.step(); }));
  times.minor_faults += minor_faults() - faults;
  const zero_step_stats after = trainer.stats();
  times.reduce.add(1e-9 * static_cast<double>(after.reduce_ns - before.reduce_ns));
  times.apply.add(1e-9 * static_cast<double>(after.apply_ns - before.apply_ns));
  times.gather.add(1e-9 * static_cast<double>(after.gather_ns - before.gather_ns));
}

void measure(zero_group *group, Trainer &trainer, bool own, int64_t stage, Times &times) {
  Samples *samples = times.of[own ? 1 : 0];
  trainer.give(own);
  if (own) {
    samples[static_cast<int>(Phase::step)].add(slowest(group, [&] { trainer.step(); }));
  } else {
    measure_parts(group, trainer, times);
  }
  const auto whole = [&] {
    trainer.give(own);
    trainer.step();
  };
  samples[static_cast<int>(Phase::gradients_and_step)].add(slowest(group, whole));
  if (stage == 3) samples[static_cast<int>(Phase::acquire)].add(slowest(group, [&] { trainer.acquire(own); }));
}

void print_header() {
  std::printf("%5s %5s %7s %-8s %-15s %10s %10s %10s %8s %10s %8s %8s %8s\n", "ranks", "stage", "overlap", "memory", "phase", "median ms",
              "min ms", "max ms", "B/param", "ideal ms", "x ideal", "min", "max");
}

void print_rows(int64_t ranks, int64_t stage, int64_t overlap, const Times &times, const Setup &setup, const RankLimit &limit) {
  for (const bool own : {false, true}) {
    for (const Phase phase : {Phase::step, Phase::gradients_and_step, Phase::acquire}) {
      const Samples &samples = times.of[own ? 1 : 0][static_cast<int>(phase)];
      if (samples.size() == 0) continue;
      const int64_t nbytes = ideal_nbytes(stage, ranks, phase, setup.one_copy, setup.mixed);
      const auto moved = static_cast<double>(nbytes * setup.elements);
      const Samples multiples = limit.multiples(samples, moved);
      std::printf("%5lld %5lld %7lld %-8s %-15s %10.2f %10.2f %10.2f %8lld %10.2f %8.2f %8.2f %8.2f\n", static_cast<long long>(ranks),
                  static_cast<long long>(stage), static_cast<long long>(overlap), own ? "caller's" : "library", phase_name(phase),
                  1e3 * samples.median(), 1e3 * samples.least(), 1e3 * samples.most(), static_cast<long long>(nbytes),
                  1e3 * moved / limit.nbytes_per_second(), multiples.median(), multiples.least(), multiples.most());
    }
  }
  std::printf(
      "%24s library step on rank 0: reduce %.2f ms, apply %.2f ms, gather %.2f ms; %lld minor faults of its process in %zu steps; "
      "%.2f MiB at peak beyond the stage's formula\n",
      "", 1e3 * times.reduce.median(), 1e3 * times.apply.median(), 1e3 * times.gather.median(), static_cast<long long>(times.minor_faults),
      times.reduce.size(), static_cast<double>(times.beyond_formula_nbytes) / (1 << 20));
  std::fflush(stdout);
}

/// One stage with one setting of overlap.
void run_case(zero_group *group, const Setup &setup, int64_t stage, int64_t overlap, RankLimit &limit, bool prints) {
  int64_t size = 0;
  must(zero_group_size(group, &size));
  Times times;
  limit.forget();
  {
    Trainer trainer(group, setup, stage, overlap);
    for (int64_t repeat = 0; repeat < setup.repeats; ++repeat) {
      limit.sample();
      measure(group, trainer, false, stage, times);
      if (setup.own_memory) measure(group, trainer, true, stage, times);
    }
    times.beyond_formula_nbytes = trainer.beyond_formula_nbytes();
    must(zero_group_barrier(group));
  }
  if (prints) print_rows(size, stage, overlap, times, setup, limit);
}

void run_rank(zero_group *group, const Setup &setup) {
  int64_t rank = 0;
  must(zero_group_rank(group, &rank));
  RankLimit limit(group, setup.elements);
  for (int64_t repeat = 0; repeat < setup.repeats; ++repeat) limit.sample();
  if (rank == 0) {
    std::printf("%zu tensors, %lld elements, AdamW %s,%s ranks as %s, %lld usable cores, limit %.1f GB/s; times of the slowest rank\n",
                setup.tensors.size(), static_cast<long long>(setup.elements), setup.mixed ? "bf16 with fp32 master" : "fp32",
                setup.one_copy ? " one copy of parameters," : "", launch_name(setup.launch), static_cast<long long>(usable_cores()),
                1e-9 * limit.nbytes_per_second());
    print_header();
  }
  for (const int64_t stage : setup.stages) {
    for (const int64_t overlap : setup.overlaps) run_case(group, setup, stage, overlap, limit, rank == 0);
  }
}

Setup parse(int argc, char **argv) {
  Options options(argc, argv, kUsage);
  Setup setup;
  setup.ranks = options.numbers("ranks", "1,2,4");
  setup.stages = options.numbers("stage", "0,1,2,3");
  setup.overlaps = options.numbers("overlap", "0,1");
  if (options.flag("processes")) setup.launch = Launch::processes;
  if (options.flag("launcher")) setup.launch = Launch::launcher;
  setup.binds = options.flag("bind");
  setup.own_memory = !options.flag("library-memory");
  setup.one_copy = options.flag("one-copy");
  setup.mixed = options.flag("mixed");
  setup.repeats = options.number("repeats", 9);
  setup.tensors = gpt2_shapes(options.fraction("elements-scale", 1));
  setup.elements = total_count(setup.tensors);
  options.finish();
  return setup;
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  Setup setup = parse(argc, argv);
  if (setup.launch == Launch::launcher) setup.ranks = {0};  // the launcher decides
  for (const int64_t ranks : setup.ranks) {
    run_ranks(setup.launch, ranks, setup.binds, [&setup](zero_group *group) { run_rank(group, setup); });
  }
  return 0;
}
