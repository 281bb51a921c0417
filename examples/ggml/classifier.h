/// @file classifier: the model, its graph, and what is measured of a training. Both programs include it.
/// Knows nothing of libzero.
#pragma once

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../embedding/run.h"

namespace embedding {

/// Four dense layers in a graph with its backward, for batches of one size. Parameters have no memory at first.
class Classifier {
 public:
  explicit Classifier(int64_t batch);

  ggml_context *context() const { return context_.get(); }
  ggml_backend_t backend() const { return backend_.get(); }
  /// Forward and backward.
  ggml_cgraph *graph() const { return graph_; }
  /// What classifies, without a loss.
  ggml_cgraph *forward() const { return forward_; }
  const ggml_tensor *scores() const { return scores_; }
  const std::vector<ggml_tensor *> &parameters() const { return parameters_; }
  /// The same for the same seed.
  std::vector<float> first_values(const ggml_tensor *parameter, int64_t seed) const;

  /// Gives memory to all tensors of a graph that have none yet, for good.
  void allocate(ggml_cgraph *graph);
  /// Images and labels of samples, as many as the batch or fewer; zeros behind them.
  void set_batch(const Dataset &data, std::span<const int64_t> numbers);
  double loss() const;
  /// How many of the samples that were set last are classified correctly.
  int64_t count_correct(const Dataset &data, std::span<const int64_t> numbers) const;

 private:
  template <auto release>
  struct Free {
    template <typename T>
    void operator()(T *handle) const {
      release(handle);
    }
  };
  static constexpr int64_t kClasses = 10;
  static constexpr size_t kNodes = 512;

  ggml_tensor *dense(ggml_tensor *input, int64_t outputs);

  int64_t batch_;
  std::unique_ptr<ggml_context, Free<ggml_free>> context_;
  std::unique_ptr<ggml_backend, Free<ggml_backend_free>> backend_;
  std::vector<std::unique_ptr<ggml_gallocr, Free<ggml_gallocr_free>>> memory_;
  std::vector<ggml_tensor *> parameters_;
  ggml_tensor *images_ = nullptr;
  ggml_tensor *labels_ = nullptr;
  ggml_tensor *scores_ = nullptr;
  ggml_tensor *loss_ = nullptr;
  ggml_cgraph *forward_ = nullptr;
  ggml_cgraph *graph_ = nullptr;
};

inline Classifier::Classifier(int64_t batch) : batch_(batch), backend_(ggml_backend_cpu_init()) {
  ggml_backend_cpu_set_n_threads(backend(), 1);
  context_.reset(ggml_init({kNodes * ggml_tensor_overhead() + 4 * ggml_graph_overhead_custom(kNodes, true), nullptr, true}));
  images_ = ggml_new_tensor_2d(context(), GGML_TYPE_F32, kPixels, batch);
  labels_ = ggml_new_tensor_2d(context(), GGML_TYPE_F32, kClasses, batch);
  ggml_set_input(images_);
  ggml_set_input(labels_);
  ggml_tensor *layer = images_;
  for (int i = 0; i < 3; i++) layer = ggml_silu(context(), dense(layer, 512));
  scores_ = dense(layer, kClasses);
  ggml_set_output(scores_);
  loss_ = ggml_cross_entropy_loss(context(), scores_, labels_);
  ggml_set_loss(loss_);
  ggml_set_output(loss_);
  forward_ = ggml_new_graph_custom(context(), kNodes, false);
  ggml_build_forward_expand(forward_, scores_);
  graph_ = ggml_new_graph_custom(context(), kNodes, true);
  ggml_build_forward_expand(graph_, loss_);
  ggml_build_backward_expand(context(), graph_, nullptr);
}

inline ggml_tensor *Classifier::dense(ggml_tensor *input, int64_t outputs) {
  ggml_tensor *weight = ggml_new_tensor_2d(context(), GGML_TYPE_F32, input->ne[0], outputs);
  ggml_tensor *bias = ggml_new_tensor_1d(context(), GGML_TYPE_F32, outputs);
  for (ggml_tensor *parameter : {weight, bias}) {
    ggml_set_param(parameter);
    ggml_set_name(parameter, ("parameter" + std::to_string(parameters_.size())).c_str());
    parameters_.push_back(parameter);
  }
  return ggml_add(context(), ggml_mul_mat(context(), weight, input), bias);
}

inline std::vector<float> Classifier::first_values(const ggml_tensor *parameter, int64_t seed) const {
  std::vector<float> values(static_cast<size_t>(ggml_nelements(parameter)));
  if (ggml_n_dims(parameter) == 1) return values;
  std::mt19937 random(static_cast<uint32_t>(seed) * 1000 + static_cast<uint32_t>(parameter->ne[0] * parameter->ne[1]));
  const float range = 2.0f / std::sqrt(static_cast<float>(parameter->ne[0]));
  for (float &value : values) value = range * (static_cast<float>(random()) / 4294967296.0f - 0.5f);
  return values;
}

inline void Classifier::allocate(ggml_cgraph *graph) {
  memory_.emplace_back(ggml_gallocr_new(ggml_backend_get_default_buffer_type(backend())));
  if (!ggml_gallocr_alloc_graph(memory_.back().get(), graph)) throw std::bad_alloc();
}

inline void Classifier::set_batch(const Dataset &data, std::span<const int64_t> numbers) {
  std::vector<float> images(static_cast<size_t>(batch_ * kPixels));
  std::vector<float> labels(static_cast<size_t>(batch_ * kClasses));
  for (size_t i = 0; i < numbers.size(); i++) {
    const uint8_t *pixels = data.image(numbers[i]);
    for (int64_t p = 0; p < kPixels; p++) images[i * kPixels + static_cast<size_t>(p)] = static_cast<float>(pixels[p]) / 256.0f;
    labels[i * kClasses + data.label(numbers[i])] = 1;
  }
  ggml_backend_tensor_set(images_, images.data(), 0, ggml_nbytes(images_));
  ggml_backend_tensor_set(labels_, labels.data(), 0, ggml_nbytes(labels_));
}

inline double Classifier::loss() const {
  float loss = 0;
  ggml_backend_tensor_get(loss_, &loss, 0, sizeof loss);
  return loss;
}

inline int64_t Classifier::count_correct(const Dataset &data, std::span<const int64_t> numbers) const {
  std::vector<float> scores(static_cast<size_t>(ggml_nelements(scores_)));
  ggml_backend_tensor_get(scores_, scores.data(), 0, ggml_nbytes(scores_));
  int64_t correct = 0;
  for (size_t i = 0; i < numbers.size(); i++) {
    const float *of_sample = scores.data() + i * kClasses;
    correct += std::max_element(of_sample, of_sample + kClasses) - of_sample == data.label(numbers[i]);
  }
  return correct;
}

/// How many of this run's tests the model classifies correctly, when forward computes the scores.
template <typename Forward>
int64_t count_correct(Run &run, Classifier &model, Forward forward) {
  int64_t correct = 0;
  for (int64_t step = 0; step < run.tests().per_epoch(); step++) {
    model.set_batch(run.data().test, run.tests().at(step));
    forward();
    correct += model.count_correct(run.data().test, run.tests().at(step));
  }
  return correct;
}

/// The samples of a rank in a whole batch. A graph is for batches of one size: others are left out.
inline int64_t part_of(const Run &run, int64_t ranks) {
  if (run.options().framework_update)
    throw std::invalid_argument("--framework-update: ggml's AdamW is a part of its graph, and updates no shards");
  if (run.options().batch % ranks != 0) throw std::invalid_argument("--batch must be a multiple of the number of ranks");
  return run.options().batch / ranks;
}

/// What ggml keeps of a training with its own AdamW.
inline Memory memory_of(const Classifier &model) {
  Memory memory;
  for (const ggml_tensor *parameter : model.parameters()) {
    const auto nbytes = static_cast<int64_t>(ggml_nbytes(parameter));
    memory.parameters += nbytes;
    memory.gradients += nbytes;
    memory.states += 2 * nbytes;
  }
  return memory;
}

}  // namespace embedding
