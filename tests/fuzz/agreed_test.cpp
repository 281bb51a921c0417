/// @file Programs that all ranks agree on: in every way they end with the same bits, whatever is refused in between.
#include "tests/fuzz/shrink.h"
#include "tests/fuzz/world.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace zero::test::fuzz {
namespace {

constexpr int64_t kWays = 4;
constexpr int64_t kDeadlineMs = 5000;

/// What the ways of one program have come to.
struct Verdict {
  std::string trouble;
  std::string calls;  ///< of the ways that disagree
  int64_t trained = 0;
  int64_t refused = 0;
};

Verdict judge(const Case &given) {
  Verdict verdict;
  World first;
  for (size_t k = 0; k < given.ways.size(); ++k) {
    World world = run_program(given.program, given.beside ? &*given.beside : nullptr, given.ways[k], kDeadlineMs);
    for (const std::string &each : world.failures) verdict.trouble += each + "\n";
    if (verdict.trouble.empty() && k > 0) verdict.trouble = difference(first, world);
    verdict.trained += world.trained ? 1 : 0;
    verdict.refused += world.errors;
    if (!verdict.trouble.empty()) {
      verdict.calls = first.text() + world.text();
      return verdict;
    }
    if (k == 0) first = std::move(world);
  }
  return verdict;
}

/// The call that went wrong, without its arguments; of bits that differ nothing but that.
std::string kind_of(const std::string &trouble) {
  const size_t begin = trouble.find("had to");
  if (begin == std::string::npos) return trouble.empty() ? "" : "differs";
  const size_t call = trouble.find(": ", begin) + 2;
  return trouble.substr(call, trouble.find_first_of(" \n", call) - call);
}

/// The same with as little as fails in the same way.
std::string smallest(const Case &failing, const std::string &trouble) {
  const Case least = shrink(failing, [&](const Case &smaller) { return kind_of(judge(smaller).trouble) == kind_of(trouble); });
  const Verdict verdict = judge(least);
  return verdict.trouble + "\n" + least.text() + verdict.calls;
}

TEST(AgreedPrograms, EndWithTheSameBitsInEveryWay) {
  const auto [first_seed, programs] = seeds_to_run(20);
  int64_t trained = 0;
  int64_t refused = 0;
  for (int64_t i = 0; i < programs && !testing::Test::HasFailure(); ++i) {
    const uint64_t seed = first_seed + static_cast<uint64_t>(i);
    Case drawn{random_program(seed), {}, {}};
    if (seed % 4 == 0) drawn.beside = random_program(seed + 1'000'000, drawn.program.ranks);
    // Ways are drawn for both.
    if (drawn.beside && drawn.beside->stochastic) drawn.program.stochastic = true;
    for (int64_t k = 0; k < kWays; ++k) drawn.ways.push_back(random_way(seed * 100 + static_cast<uint64_t>(k), drawn.program));
    const Verdict verdict = judge(drawn);
    trained += verdict.trained;
    refused += verdict.refused;
    EXPECT_TRUE(verdict.trouble.empty()) << verdict.trouble << "\nrerun with ZERO_FUZZ_SEED=" << seed << " ZERO_FUZZ_PROGRAMS=1\n"
                                         << drawn.text() << verdict.calls << "\nas small as it fails:\n"
                                         << smallest(drawn, verdict.trouble);
  }
  std::printf("%lld programs, %lld trainings, %lld calls refused\n", static_cast<long long>(programs), static_cast<long long>(trained),
              static_cast<long long>(refused));
}

}  // namespace
}  // namespace zero::test::fuzz
