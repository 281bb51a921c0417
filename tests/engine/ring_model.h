/// @file Models whose replicas make rounds with their neighbours, and the values of all replicas
/// side by side.
#pragma once

#include "group/collectives.h"
#include "kernels/kernels.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace zero::test {

struct RingWorld {
  int64_t replicas;
  int64_t replica_ranks;
};
inline constexpr RingWorld kRingWorlds[] = {{2, 1}, {3, 1}, {4, 1}, {5, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 2}};

inline constexpr int64_t kRingPeriod = 3;

inline Model ring_model(const RingWorld &world, std::vector<int64_t> counts) {
  Model model;
  model.seed = static_cast<uint64_t>(world.replicas * 10 + world.replica_ranks);
  model.ranks = world.replicas * world.replica_ranks;
  model.counts = std::move(counts);
  model.recipe.replica_ranks = world.replica_ranks;
  model.recipe.sync_period = kRingPeriod;
  model.recipe.ring = true;
  model.steps = 2 * kRingPeriod + 1;
  return model;
}

inline std::vector<float> read_tensor(Optimizer &optimizer, const Model &model, int64_t id, int32_t slot) {
  std::vector<float> values(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
  expect_ok(run_task(optimizer, optimizer.read(id, slot, 0, values.data(), std::ssize(values))), "read");
  return values;
}

/// Of a tensor, in fp32.
inline std::vector<float> trained_values(Optimizer &optimizer, const Model &model, int64_t id) {
  if (model.recipe.master != ZERO_MASTER_REMAINDER) return read_tensor(optimizer, model, id, ZERO_SLOT_MASTER);
  std::vector<float> values(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
  std::vector<uint16_t> upper(values.size());
  std::vector<uint16_t> lower(values.size());
  expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_PARAM, 0, upper.data(), std::ssize(values))), "read");
  expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_MASTER, 0, lower.data(), std::ssize(values))), "read");
  kernels::active().join(values.data(), upper.data(), lower.data(), std::ssize(values));
  return values;
}

/// All values, by rank.
inline std::vector<std::vector<float>> of_all_ranks(Group &group, const std::vector<float> &mine) {
  std::vector<float> whole(mine.size() * static_cast<size_t>(group.size()));
  OperationQueue queue;
  expect_ok(queue.run(all_gather(group, mine.data(), whole.data(), even_cuts(std::ssize(whole), group.size()), DType::f32)), "all_gather");
  std::vector<std::vector<float>> all;
  for (auto at = whole.begin(); std::ssize(all) < group.size(); at += std::ssize(mine)) all.emplace_back(at, at + std::ssize(mine));
  return all;
}

inline std::vector<std::vector<float>> of_all_replicas(Group &group, const std::vector<float> &mine, int64_t replica_ranks) {
  const std::vector<std::vector<float>> ranks = of_all_ranks(group, mine);
  std::vector<std::vector<float>> replicas;
  for (size_t rank = 0; rank < ranks.size(); rank += static_cast<size_t>(replica_ranks)) replicas.push_back(ranks[rank]);
  return replicas;
}

}  // namespace zero::test
