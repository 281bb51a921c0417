/// @file Models whose replicas bring fragments together in turn.
#pragma once

#include "tests/engine/training.h"

#include <cstdint>

namespace zero::test {

struct FragmentWorld {
  int64_t replicas;
  int64_t replica_ranks;
};
inline constexpr FragmentWorld kFragmentWorlds[] = {{2, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 2}, {4, 2}};

struct Turns {
  int64_t period;
  int64_t fragments;
  int64_t delay;
  double mix;
  double outer_lr = 1;
  double outer_momentum = 0;
};
inline constexpr Turns kTurns[] = {{4, 2, 0, 0}, {6, 3, 1, 0.5, 0.7, 0.9}, {4, 4, 0, 0, 0.7, 0.9},
                                   {6, 2, 2, 0}, {4, 1, 3, 0.25},          {3, 1, 0, 0.5},
                                   {7, 7, 0, 0}, {4, 1, 2, 0, 0.7, 0.9},   {6, 2, 2, 1, 0.5, 0.5}};

inline void set_turns(Model &model, const Turns &turns) {
  model.recipe.sync_period = turns.period;
  model.recipe.sync_fragments = turns.fragments;
  model.recipe.sync_delay = turns.delay;
  model.recipe.sync_mix = turns.mix;
  model.recipe.outer_lr = turns.outer_lr;
  model.recipe.outer_momentum = turns.outer_momentum;
}

/// Tensors around the size of a line, some of which share one.
inline Model fragment_model(const FragmentWorld &world, const Turns &turns) {
  Model model;
  model.seed = static_cast<uint64_t>(world.replicas * 10 + world.replica_ranks);
  model.ranks = world.replicas * world.replica_ranks;
  model.counts = {0, 1, 255, 256, 257, 17, 700, 3, 1024};
  model.algorithm = "sgd";
  model.weight_decay = 0;
  model.recipe.replica_ranks = world.replica_ranks;
  set_turns(model, turns);
  model.steps = 2 * turns.period + 1;
  return model;
}

/// Those that fragments are made of.
inline int64_t trained_tensors(const Model &model) {
  int64_t count = 0;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const bool tied = model.recipe.tied && id + 1 == model.tensors() && id > 0;
    count += model.counts[static_cast<size_t>(id)] > 0 && !model.frozen(id) && !tied ? 1 : 0;
  }
  return count;
}

}  // namespace zero::test
