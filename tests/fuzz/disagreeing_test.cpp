/// @file Programs from which one rank deviates: every call of every rank ends in time, with an error for it or none, and nothing breaks.
#include "tests/fuzz/world.h"
#include "tests/group/thread_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace zero::test::fuzz {
namespace {

constexpr int64_t kDeadlineMs = 2000;
/// Ranks learn of a deadline one after another, on a machine that may be busy with other tests.
constexpr int64_t kLimitMs = 3 * kDeadlineMs;
/// Worlds at a time: most of them wait.
constexpr int64_t kAtOnce = 8;

Deviation random_deviation(Random &random, int64_t ranks) {
  Deviation deviation;
  deviation.kind = static_cast<Deviation::Kind>(1 + random.below(7));
  deviation.rank = random.below(ranks);
  deviation.at = random.one_in(3) ? random.below(6) : random.below(100);
  return deviation;
}

struct Count {
  int64_t failed = 0;  ///< worlds in which some call failed
  int64_t errors = 0;
};

/// One program in one way, with one rank that deviates.
void disagree(uint64_t seed, Count &count, std::mutex &mutex) {
  const Program program = random_program(seed);
  if (program.ranks == 1) return;
  const Way way = random_way(seed * 100, program);
  Random random(seed * 77);
  const Deviation deviation = random_deviation(random, program.ranks);
  const World world = run_program(program, nullptr, way, kDeadlineMs, kLimitMs, deviation);
  const std::lock_guard lock(mutex);
  count.failed += world.errors > 0 ? 1 : 0;
  count.errors += world.errors;
  for (const std::string &each : world.failures) {
    ADD_FAILURE() << each << "\nrerun with ZERO_FUZZ_SEED=" << seed << " ZERO_FUZZ_PROGRAMS=1\n"
                  << deviation.text() << "\n"
                  << program.text() << way.text() << world.text();
  }
}

TEST(DisagreeingPrograms, EndInTimeWithAnErrorForIt) {
  const Seeds seeds = seeds_to_run(24);
  Count count;
  std::mutex mutex;
  std::atomic<int64_t> next{0};
  run_thread_ranks(std::min(seeds.count, kAtOnce), [&](int64_t /*lane*/) {
    for (int64_t i = next++; i < seeds.count && !testing::Test::HasFailure(); i = next++)
      disagree(seeds.first + static_cast<uint64_t>(i), count, mutex);
  });
  std::printf("%lld programs, %lld of them failed, %lld calls\n", static_cast<long long>(seeds.count), static_cast<long long>(count.failed),
              static_cast<long long>(count.errors));
}

}  // namespace
}  // namespace zero::test::fuzz
