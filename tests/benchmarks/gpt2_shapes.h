/// @file The parameters of GPT-2 small (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): 148 tensors,
/// 124439808 elements, the output layer tied to the first embedding. Knows names and shapes only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace zero::bench {

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
  int64_t count() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
  }
};

/// With `elements_scale` every extent is multiplied by its root, so that the list has about that many times the elements in as many
/// tensors.
inline std::vector<Tensor> gpt2_shapes(double elements_scale = 1) {
  const auto scaled = [factor = std::sqrt(elements_scale)](int64_t extent) {
    return std::max(int64_t{1}, static_cast<int64_t>(std::lround(static_cast<double>(extent) * factor)));
  };
  const int64_t width = scaled(768);
  std::vector<Tensor> tensors = {{"wte", {scaled(50257), width}}, {"wpe", {scaled(1024), width}}};
  for (int layer = 0; layer < 12; ++layer) {
    const std::string prefix = "h." + std::to_string(layer) + ".";
    const std::vector<Tensor> block = {{"ln_1.weight", {width}},
                                       {"ln_1.bias", {width}},
                                       {"attn.c_attn.weight", {width, 3 * width}},
                                       {"attn.c_attn.bias", {3 * width}},
                                       {"attn.c_proj.weight", {width, width}},
                                       {"attn.c_proj.bias", {width}},
                                       {"ln_2.weight", {width}},
                                       {"ln_2.bias", {width}},
                                       {"mlp.c_fc.weight", {width, 4 * width}},
                                       {"mlp.c_fc.bias", {4 * width}},
                                       {"mlp.c_proj.weight", {4 * width, width}},
                                       {"mlp.c_proj.bias", {width}}};
    for (const Tensor &tensor : block) tensors.push_back({prefix + tensor.name, tensor.shape});
  }
  tensors.push_back({"ln_f.weight", {width}});
  tensors.push_back({"ln_f.bias", {width}});
  return tensors;
}

inline int64_t total_count(const std::vector<Tensor> &tensors) {
  int64_t count = 0;
  for (const Tensor &tensor : tensors) count += tensor.count();
  return count;
}

}  // namespace zero::bench
