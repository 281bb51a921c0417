/// @file batches: Fashion-MNIST in memory, and which of its samples a rank trains on in a step.
/// Knows nothing of frameworks. All programs and ranks see the same batches for the same options.
#pragma once

extern "C" {
#include "../fashion/idx.h"
#include "../fashion/sampler.h"
}

#include <cstdint>
#include <span>
#include <string>

#include "options.h"

namespace embedding {

constexpr int64_t kSide = 28;
constexpr int64_t kPixels = kSide * kSide;

/// Images and labels of one set, "train" or "t10k". Safe to read from many threads.
class Dataset {
 public:
  Dataset(const Options &options, const std::string &name);
  ~Dataset();
  Dataset(const Dataset &) = delete;
  Dataset &operator=(const Dataset &) = delete;

  int64_t count() const { return data_.count; }
  const uint8_t *image(int64_t sample) const { return data_.images + sample * kPixels; }
  uint8_t label(int64_t sample) const { return data_.labels[sample]; }

 private:
  dataset data_ = {};
};

struct Data {
  Dataset train;
  Dataset test;
};

/// One rank's part of every batch: the batch cut in as many parts as there are ranks, which differ by one sample at most.
class Batches {
 public:
  Batches(const Dataset &data, const Options &options, int64_t rank, int64_t ranks);
  ~Batches();
  Batches(const Batches &) = delete;
  Batches &operator=(const Batches &) = delete;

  int64_t per_epoch() const { return sampler_steps_per_epoch(&sampler_); }
  /// Steps of all epochs.
  int64_t count() const { return per_epoch() * epochs_; }
  /// Learning rate of a step.
  double lr(int64_t step) const { return lr_ * (1.0 - static_cast<double>(step) / static_cast<double>(count())); }
  /// Numbers of samples, valid until the next call; none when a batch has fewer samples than there are ranks.
  std::span<const int64_t> at(int64_t step);

 private:
  sampler sampler_ = {};
  int64_t epochs_;
  double lr_;
  int64_t rank_;
  int64_t ranks_;
};

}  // namespace embedding
