/// @file What ZERO_KEY_VERIFY_EVERY costs: bare AdamW steps with and without it, interleaved, for stages 0 to 3. Two ranks as threads. With
/// K = 1 every step takes the checksums that K = 100 takes in one step of a hundred, so a hundredth of the difference is the cost of K =
/// 100. usage: verify_benchmark [options of Google Benchmark] [elements of a tensor]
#include "must.h"
#include "samples.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using zero::bench::must;
using zero::bench::Samples;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int64_t kRanks = 2;
constexpr int kTensors = 8;
constexpr int kRepeats = 31;

class Rank {
 public:
  Rank(zero_group *group, int64_t stage, int64_t elements, int64_t verify_every) : elements_(elements) {
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    must(zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
    must(zero_config_set_i64(config, ZERO_KEY_VERIFY_EVERY, verify_every));
    must(zero_optimizer_create(group, config, &optimizer_));
    zero_config_release(config);
    for (int64_t id = 0; id < kTensors; ++id) {
      must(zero_optimizer_add_param(optimizer_, nullptr, ("t" + std::to_string(id)).c_str(), ZERO_DTYPE_F32, &elements, 1, &id));
    }
    must(zero_optimizer_seal(optimizer_));
    for (int64_t id = 0; id < kTensors; ++id) must(zero_optimizer_init_param(optimizer_, id, ZERO_INITIALISER_NORMAL, 0, 0.02, 1));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
  }
  ~Rank() { zero_optimizer_release(optimizer_); }

  /// Seconds of one step whose gradients are there already.
  double step() {
    for (int64_t id = kTensors - 1; id >= 0; --id) {
      void *data = nullptr;
      int64_t accumulate = 0;
      must(zero_optimizer_grad_acquire(optimizer_, id, nullptr, &data, &accumulate));
      std::memset(data, 0, static_cast<size_t>(elements_) * sizeof(float));
      must(zero_optimizer_grad_ready(optimizer_, id, nullptr, 0, elements_, nullptr));
    }
    const auto begin = Clock::now();
    must(zero_optimizer_step(optimizer_, nullptr, nullptr));
    return Seconds(Clock::now() - begin).count();
  }

 private:
  zero_optimizer *optimizer_ = nullptr;
  const int64_t elements_;
};

struct Times {
  Samples plain, verifying;
};

void run_rank(int64_t rank, int64_t stage, int64_t elements, Times *out) {
  zero_group *group = nullptr;
  must(zero_group_create_local("verify_benchmark", rank, kRanks, nullptr, &group));
  {
    Rank plain(group, stage, elements, 0);
    Rank verifying(group, stage, elements, 1);
    for (int repeat = 0; repeat < kRepeats + 1; ++repeat) {
      const double without = plain.step();
      const double with = verifying.step();
      if (rank != 0 || repeat == 0) continue;
      out->plain.add(without);
      out->verifying.add(with);
    }
  }
  zero_group_release(group);
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  const int64_t elements = argc > 1 ? std::atoll(argv[1]) : int64_t{1} << 20;
  std::printf("%d tensors of %lld fp32 elements, adamw, %lld ranks as threads, median of %d steps of rank 0:\n", kTensors,
              static_cast<long long>(elements), static_cast<long long>(kRanks), kRepeats);
  std::printf("%-8s %12s %12s %18s\n", "stage", "plain ms", "K = 1 ms", "cost of K = 100");
  for (int64_t stage = 0; stage < 4; ++stage) {
    Times times;
    std::thread other(run_rank, 1, stage, elements, &times);
    run_rank(0, stage, elements, &times);
    other.join();
    const double plain = times.plain.median();
    const double verifying = times.verifying.median();
    std::printf("%-8lld %12.2f %12.2f %16.2f %%\n", static_cast<long long>(stage), 1e3 * plain, 1e3 * verifying, (verifying / plain - 1));
  }
  return 0;
}
