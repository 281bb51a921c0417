/// @file Bits that tests flip in an optimizer's memory, wherever that lies: what verify and steps must say of them, and of clean runs.
#pragma once

#include "tests/engine/training.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace zero::test {

/// One flipped bit, as the rank that flipped it tells the others.
struct Flip {
  int64_t rank = -1;
  int64_t param = -1;
  int32_t slot = 0;
  int64_t entry = 0;
  bool own = false;
};

struct Trial {
  Model model;
  Manner manner;  ///< verifies every second step
  uint64_t seed;
  int64_t flips;
};

/// What the ranks of a trial share. The rank that flips writes before a collective, the others read after it.
struct Flips {
  Flip flip;
  std::atomic<int64_t> flips{0};
  std::atomic<int64_t> missed{0};
  std::atomic<int64_t> by_step{0};
  std::mutex mutex;
  std::set<int32_t> slots;  ///< in which bits were flipped
};

/// With slots of every kind between them.
std::vector<Recipe> flipped_recipes();
/// Without flips yet.
Trial make_trial(const Recipe &recipe, int64_t stage, int64_t ranks, int64_t number);

zero_verify_result verified(Optimizer &optimizer);

/// A training of three steps, on every rank of the group, in which bits are flipped and must be found.
void flip_bits(const std::shared_ptr<Group> &group, const Trial &trial, Flips &shared);

/// A training of eight steps in which nothing is flipped, but much changed in the ways that are allowed.
void change_nothing_else(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, uint64_t seed);

}  // namespace zero::test
