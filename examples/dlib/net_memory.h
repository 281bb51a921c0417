/// @file net_memory: what a dlib network keeps, and its solvers.
/// Knows nothing of libzero.
#pragma once

#include <dlib/dnn.h>

#include <cstdint>

#include "../embedding/memory.h"

namespace embedding {

/// Of dlib::adam, per element: two moments, and the step that is added to the parameters.
constexpr int64_t kAdamStateBytes = 3 * sizeof(float);

/// Parameters and gradients, without solvers.
template <typename Net>
Memory memory_of(Net &net) {
  const auto add = [](int64_t *to, const dlib::tensor &tensor) { *to += static_cast<int64_t>(tensor.size() * sizeof(float)); };
  Memory memory;
  dlib::visit_layer_parameters(net, [&](dlib::tensor &tensor) { add(&memory.parameters, tensor); });
  dlib::visit_layer_parameter_gradients(net, [&](dlib::tensor &tensor) { add(&memory.gradients, tensor); });
  return memory;
}

template <typename Net>
Memory memory_with_adam(Net &net) {
  Memory memory = memory_of(net);
  memory.states = static_cast<int64_t>(dlib::count_parameters(net)) * kAdamStateBytes;
  return memory;
}

}  // namespace embedding
