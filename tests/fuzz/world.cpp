/// @file Ranks as threads, each with its part of a program.
#include "tests/fuzz/world.h"

#include "tests/group/thread_ranks.h"

#include <unistd.h>

#include <atomic>

namespace zero::test::fuzz {
namespace {

std::string meeting_name() {
  static std::atomic<int64_t> count{0};
  return "fuzz." + std::to_string(::getpid()) + "." + std::to_string(++count);
}

void run_rank(const Program &program, const Program *beside, const Way &way, int64_t rank, zero_group *group, Calls &calls, Facts &facts) {
  try {
    Training training(program, way, rank, group, calls, facts);
    Training other(beside != nullptr ? *beside : program, way, rank, group, calls, facts);
    training.start();
    if (beside != nullptr) other.start();
    for (int64_t i = 0; i < 8; ++i) {
      training.take_step(i);
      other.take_step(i);
    }
    other.end();
    training.end();
  } catch (const Stopped &) {
    calls.meanwhile = nullptr;
  }
}

/// The group to train in: the one that ranks met in, or one of the same ranks that was split from it.
zero_group *train_in(zero_group *group, bool splits) {
  zero_group *part = nullptr;
  if (!splits || zero_group_split(group, 0, 0, &part) != ZERO_OK) return group;
  zero_group_release(group);
  return part;
}

}  // namespace

World run_program(const Program &program, const Program *beside, const Way &way, int64_t deadline_ms, int64_t limit_ms,
                  const Deviation &deviation) {
  World world;
  world.facts.resize(static_cast<size_t>(program.ranks));
  world.lines.resize(static_cast<size_t>(program.ranks));
  std::vector<std::vector<std::string>> failures(static_cast<size_t>(program.ranks));
  std::vector<int64_t> errors(static_cast<size_t>(program.ranks));
  const std::string name = meeting_name();
  run_thread_ranks(program.ranks, [&](int64_t rank) {
    const auto index = static_cast<size_t>(rank);
    zero_config *config = new_config({{ZERO_KEY_DEADLINE_MS, int64_t{60'000}}, {ZERO_KEY_STAGING_BYTES, int64_t{65'536}}});
    zero_group *group = nullptr;
    const int32_t made = zero_group_create_local(name.c_str(), rank, program.ranks, config, &group);
    zero_config_release(config);
    if (made == ZERO_OK) group = train_in(group, way.splits);
    if (made == ZERO_OK) zero_group_set_deadline(group, deadline_ms);
    Calls calls(group, way.seed * 31 + static_cast<uint64_t>(rank), limit_ms, rank == deviation.rank ? deviation : Deviation());
    calls.expect(made == ZERO_OK, "no group");
    if (made == ZERO_OK) run_rank(program, beside, way, rank, group, calls, world.facts[index]);
    calls.make("group_release", [&] {
      zero_group_release(group);
      return ZERO_OK;
    });
    world.lines[index] = calls.lines();
    failures[index] = calls.failures();
    errors[index] = calls.errors();
  });
  for (int64_t rank = 0; rank < program.ranks; ++rank) {
    world.errors += errors[static_cast<size_t>(rank)];
    for (const std::string &each : failures[static_cast<size_t>(rank)])
      world.failures.push_back("rank " + std::to_string(rank) + ": " + each);
  }
  for (const Fact &fact : world.facts[0]) world.trained = world.trained || (fact.what == "sealed" && fact.value == ZERO_OK);
  return world;
}

std::string World::text() const {
  std::string text;
  for (size_t rank = 0; rank < lines.size(); ++rank) {
    text += "calls of rank " + std::to_string(rank) + "\n";
    for (const std::string &line : lines[rank]) text += "  " + line + "\n";
  }
  return text;
}

std::string difference(const World &a, const World &b) {
  for (size_t rank = 0; rank < a.facts.size(); ++rank) {
    const Facts &left = a.facts[rank];
    const Facts &right = b.facts[rank];
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      if (i >= left.size() || i >= right.size()) return "rank " + std::to_string(rank) + ": one ends early";
      if (!left[i].agrees(right[i])) return "rank " + std::to_string(rank) + ": " + left[i].text() + " and " + right[i].text();
    }
  }
  return "";
}

}  // namespace zero::test::fuzz
