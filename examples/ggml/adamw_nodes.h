/// @file adamw_nodes: ggml's AdamW, as nodes behind a graph that computes gradients.
/// Knows nothing of libzero.
#pragma once

#include <cmath>

#include "classifier.h"

namespace embedding {

class AdamWNodes {
 public:
  explicit AdamWNodes(const Classifier &model);

  /// Forward, backward and update. It lets gradients and moments stay where they are.
  ggml_cgraph *graph() const { return graph_; }
  /// The learning rate of the next step, which counts from 1.
  void set_rate(double rate);

 private:
  static constexpr double kBeta1 = 0.9;
  static constexpr double kBeta2 = 0.999;

  int64_t step_ = 0;
  ggml_tensor *hyper_parameters_;
  ggml_cgraph *graph_;
  std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)> memory_;
  std::unique_ptr<ggml_context, decltype(&ggml_free)> context_;
};

inline AdamWNodes::AdamWNodes(const Classifier &model)
    : graph_(ggml_graph_dup(model.context(), model.graph(), true)),
      memory_(nullptr, ggml_backend_buffer_free),
      context_(ggml_init({64 * ggml_tensor_overhead(), nullptr, true}), ggml_free) {
  hyper_parameters_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, 7);
  std::vector<ggml_tensor *> moments;
  for (ggml_tensor *parameter : model.parameters()) {
    for (int i = 0; i < 2; i++) moments.push_back(ggml_dup_tensor(context_.get(), parameter));
  }
  memory_.reset(ggml_backend_alloc_ctx_tensors(context_.get(), model.backend()));
  ggml_backend_buffer_clear(memory_.get(), 0);
  for (size_t i = 0; i < model.parameters().size(); i++) {
    ggml_tensor *parameter = model.parameters()[i];
    ggml_tensor *gradient = ggml_graph_get_grad(model.graph(), parameter);
    ggml_build_forward_expand(
        graph_, ggml_opt_step_adamw(model.context(), parameter, gradient, moments[2 * i], moments[2 * i + 1], hyper_parameters_));
  }
}

inline void AdamWNodes::set_rate(double rate) {
  step_++;
  const float values[] = {static_cast<float>(rate),
                          static_cast<float>(kBeta1),
                          static_cast<float>(kBeta2),
                          1e-8f,
                          0.01f,
                          static_cast<float>(1 / (1 - std::pow(kBeta1, static_cast<double>(step_)))),
                          static_cast<float>(1 / (1 - std::pow(kBeta2, static_cast<double>(step_))))};
  ggml_backend_tensor_set(hyper_parameters_, values, 0, sizeof values);
}

}  // namespace embedding
