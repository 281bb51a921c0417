/// @file Worlds in which stage 3 shards parameters over fewer ranks than states.
#pragma once

#include "tests/engine/gather_rule.h"
#include "tests/engine/training.h"

#include <cstdint>

namespace zero::test {

struct ParamWorld {
  int64_t ranks;
  int64_t param_ranks;   ///< -1: those of a host
  int64_t per_host = 0;  ///< 0: all ranks share one host
};

inline constexpr ParamWorld kParamWorlds[] = {{2, 1},     {2, 1, 1}, {4, 1},     {4, 2},    {4, 2, 2}, {4, -1, 2},
                                              {6, 2},     {6, 3, 3}, {6, -1, 2}, {6, 1, 3}, {8, 2, 2}, {8, 4, 4},
                                              {8, -1, 4}, {8, 2, 4}, {8, 4, 2},  {8, 8, 0}, {3, 1, 1}, {1, 1}};

inline Manner plain_manner() { return in_stage(3); }

inline Manner spread_manner(int64_t param_ranks) {
  Manner manner = in_stage(3);
  manner.param_ranks = param_ranks;
  return manner;
}

inline int64_t block_ranks(const ParamWorld &world) { return world.param_ranks > 0 ? world.param_ranks : world.per_host; }

/// Tensors of fewer elements than ranks, of lines and of more.
inline Model edge_model(int64_t ranks) {
  Model model;
  model.seed = static_cast<uint64_t>(ranks);
  model.ranks = ranks;
  model.counts = {3000, 17, 0, 1024, 1, 257, 255, 256, 700, 5000};
  return model;
}

}  // namespace zero::test
