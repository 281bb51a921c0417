/// @file A model whose steps apply the gradients of the step before.
#pragma once

#include "tests/engine/training.h"

namespace zero::test {

inline Model delayed(Model model) {
  model.recipe.keys.emplace_back(ZERO_KEY_GRAD_DELAY, 1);
  return model;
}

}  // namespace zero::test
