/// @file classifier: the model, how samples become tensors, and what is measured of a training. Both programs include it.
/// Knows nothing of libzero.
#pragma once

#include <ATen/Context.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <mutex>

#include "../embedding/run.h"
#include "adamw_states.h"

namespace embedding {

/// Three convolutions, each halving the image, then six dense layers. The same first values for the same seed, whichever thread asks:
/// torch's generator is one for all threads.
inline torch::nn::Sequential make_classifier(int64_t seed) {
  namespace nn = torch::nn;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  at::manual_seed(static_cast<uint64_t>(seed));
  nn::Sequential model;
  const int64_t channels[] = {1, 8, 16, 32};
  for (int i = 0; i < 3; i++) {
    model->push_back(nn::Conv2d(nn::Conv2dOptions(channels[i], channels[i + 1], 3).padding(1)));
    model->push_back(nn::ReLU());
    model->push_back(nn::MaxPool2d(2));
  }
  model->push_back(nn::Flatten());
  for (int64_t inputs : {32 * 3 * 3, 256, 256, 256, 256}) {
    model->push_back(nn::Linear(inputs, 256));
    model->push_back(nn::ReLU());
  }
  model->push_back(nn::Linear(256, 10));
  return model;
}

struct Samples {
  torch::Tensor images;  ///< [sample][1][28][28], 0 .. 1
  torch::Tensor labels;  ///< [sample]
  int64_t count() const { return labels.size(0); }
};

inline Samples to_tensors(const Dataset &data, std::span<const int64_t> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  Samples samples = {torch::empty({count, 1, kSide, kSide}), torch::empty({count}, torch::kInt64)};
  for (int64_t i = 0; i < count; i++) {
    const uint8_t *pixels = data.image(numbers[i]);
    float *image = samples.images.data_ptr<float>() + i * kPixels;
    for (int64_t p = 0; p < kPixels; p++) image[p] = static_cast<float>(pixels[p]) / 256.0f;
    samples.labels.data_ptr<int64_t>()[i] = data.label(numbers[i]);
  }
  return samples;
}

/// How many of this run's tests the model classifies correctly.
template <typename Forward>
int64_t count_correct(Run &run, Forward forward) {
  const torch::NoGradGuard no_grad;
  int64_t correct = 0;
  for (int64_t step = 0; step < run.tests().per_epoch(); step++) {
    const Samples samples = to_tensors(run.data().test, run.tests().at(step));
    correct += forward(samples.images).argmax(1).eq(samples.labels).sum().template item<int64_t>();
  }
  return correct;
}

/// What a training with torch::optim::AdamW keeps.
inline Memory memory_of(const torch::optim::Optimizer &optimizer) {
  Memory memory;
  for (const torch::Tensor &parameter : optimizer.param_groups()[0].params()) {
    memory.parameters += static_cast<int64_t>(parameter.nbytes());
    memory.gradients += static_cast<int64_t>(parameter.grad().nbytes());
  }
  memory.states = state_nbytes(optimizer);
  return memory;
}

}  // namespace embedding
