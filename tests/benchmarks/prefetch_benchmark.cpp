/// @file How much of stage 3's gathering a caller that computes does not wait for: two ranks, tensors acquired one after another, each used
/// (here: slept) for as long as a gather takes, with and without gathering ahead, interleaved.
/// usage: prefetch_benchmark [options of Google Benchmark] [elements of a tensor]
#include "must.h"
#include "samples.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using zero::bench::must;
using zero::bench::Samples;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kRanks = 2;
constexpr int kTensors = 12;
constexpr int kRepeats = 9;

/// One rank's optimizer of stage 3.
class Rank {
 public:
  Rank(zero_group *group, int64_t elements, int64_t prefetch_nbytes) {
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_STAGE, 3));
    must(zero_config_set_i64(config, ZERO_KEY_PREFETCH_BYTES, prefetch_nbytes));
    must(zero_optimizer_create(group, config, &optimizer_));
    zero_config_release(config);
    std::vector<int64_t> order;
    for (int i = 0; i < kTensors; ++i) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, ("t" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &elements, 1, &id));
      order.push_back(id);
    }
    must(zero_optimizer_set_gather_order(optimizer_, order.data(), kTensors));
    must(zero_optimizer_seal(optimizer_));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
  }
  ~Rank() { zero_optimizer_release(optimizer_); }

  /// Seconds waited for parameters in one pass whose every tensor is used for `use`.
  double pass(Seconds use) {
    Seconds waited{0};
    for (int64_t id = 0; id < kTensors; ++id) {
      void *data = nullptr;
      const auto begin = Clock::now();
      must(zero_optimizer_param_acquire(optimizer_, id, nullptr, 0, nullptr, &data));
      waited += Clock::now() - begin;
      benchmark::DoNotOptimize(data);
      if (use.count() > 0) std::this_thread::sleep_for(use);
      must(zero_optimizer_param_release(optimizer_, id));
    }
    return waited.count();
  }

 private:
  zero_optimizer *optimizer_ = nullptr;
};

struct Times {
  Samples alone, behind, ahead, hidden;
};

void run_rank(int64_t rank, int64_t elements, Times *out) {
  zero_group *group = nullptr;
  must(zero_group_create_local("prefetch_benchmark", rank, kRanks, nullptr, &group));
  {
    const int64_t nbytes = elements * 4;
    Rank behind(group, elements, 0);
    Rank ahead(group, elements, 2 * nbytes);
    behind.pass(Seconds(0));
    ahead.pass(Seconds(0));
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double alone = behind.pass(Seconds(0));
      const Seconds use(alone / kTensors);
      const double waited_behind = behind.pass(use);
      const double waited_ahead = ahead.pass(use);
      if (rank != 0) continue;
      out->alone.add(alone);
      out->behind.add(waited_behind);
      out->ahead.add(waited_ahead);
      out->hidden.add(1 - waited_ahead / waited_behind);
    }
  }
  zero_group_release(group);
}

void print_row(const char *name, const Samples &seconds) {
  std::printf("%-38s %10.2f %10.2f %10.2f\n", name, 1e3 * seconds.median(), 1e3 * seconds.least(), 1e3 * seconds.most());
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  const int64_t elements = argc > 1 ? std::atoll(argv[1]) : int64_t{4} << 20;
  Times times;
  std::thread other(run_rank, 1, elements, &times);
  run_rank(0, elements, &times);
  other.join();
  std::printf("%d tensors of %lld fp32 elements, %lld ranks as threads, stage 3, rank 0 waits per pass:\n", kTensors,
              static_cast<long long>(elements), static_cast<long long>(kRanks));
  std::printf("%-38s %10s %10s %10s\n", "", "median ms", "min ms", "max ms");
  print_row("nothing but gathers", times.alone);
  print_row("used as long as gathered, none ahead", times.behind);
  print_row("used as long as gathered, two ahead", times.ahead);
  const Samples &hidden = times.hidden;
  std::printf("share of gather time hidden: median %.0f %%, min %.0f %%, max %.0f %%\n", 100 * hidden.median(), 100 * hidden.least(),
              100 * hidden.most());
  return 0;
}
