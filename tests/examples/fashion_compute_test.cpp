/// @file The classifier of train_fashion on a CUDA device computes what it computes on the host: the same bits in every gradient, batch
/// after batch. Two programs are made of this file: for a device, and for the emulation of one.
#include "tests/memory/caller_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

extern "C" {
#include "examples/fashion/compute.h"
#include "examples/fashion/model.h"
#include "zero/dtype.h"
}

namespace {

/// What goes into one forward and backward pass, on the host.
struct Batch {
  std::vector<std::vector<uint8_t>> images;
  std::vector<uint8_t> labels;
  double divisor;
  std::vector<float> params[kTensorCount];
  std::vector<float> gradients[kTensorCount];  // as they are before, to be added to

  int64_t count() const { return static_cast<int64_t>(images.size()); }
};

struct Outcome {
  double loss;
  int64_t correct;
  std::vector<float> gradients[kTensorCount];
};

std::vector<float> random_floats(std::mt19937 &random, int64_t count, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values) value = normal(random);
  return values;
}

/// Images are half black, as those of Fashion-MNIST, so that equal maxima and sums at 0 occur.
Batch random_batch(std::mt19937 &random, int64_t count) {
  Batch batch;
  batch.divisor = std::uniform_real_distribution<>(0.5, 300)(random);
  for (int64_t s = 0; s < count; ++s) {
    batch.images.emplace_back(kImagePixels);
    for (uint8_t &pixel : batch.images.back()) pixel = random() % 2 != 0 ? static_cast<uint8_t>(random()) : 0;
    batch.labels.push_back(static_cast<uint8_t>(random() % kClassCount));
  }
  for (int id = 0; id < kTensorCount; ++id) {
    batch.params[id] = random_floats(random, model_tensors[id].count, id % 2 == 0 ? 0.2F : 0.05F);
    batch.gradients[id] = random_floats(random, model_tensors[id].count, 0.1F);
  }
  return batch;
}

class Side {
 public:
  explicit Side(compute *own) : own_(own) {
    for (int id = 0; id < kTensorCount; ++id) {
      params_[id] = allocate<float>(model_tensors[id].count);
      gradients_[id] = allocate<float>(model_tensors[id].count);
    }
  }
  ~Side() {
    for (void *memory : memory_) own_->deallocate(own_, memory);
    own_->release(own_);
  }
  Side(const Side &) = delete;
  Side &operator=(const Side &) = delete;

  template <class T>
  T *allocate(int64_t count) {
    memory_.push_back(own_->allocate(own_, static_cast<size_t>(count) * sizeof(T)));
    return static_cast<T *>(memory_.back());
  }
  template <class T>
  void write(T *to, const std::vector<T> &values) {
    ASSERT_EQ(own_->copy(own_, to, values.data(), values.size() * sizeof(T)), 0);
  }
  template <class T>
  std::vector<T> read(const T *from, int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    EXPECT_EQ(own_->copy(own_, values.data(), from, values.size() * sizeof(T)), 0);
    return values;
  }
  compute *operator->() const { return own_; }

  Outcome run(const Batch &batch) {
    Outcome out{};
    std::vector<const uint8_t *> images;
    for (const std::vector<uint8_t> &image : batch.images) images.push_back(image.data());
    for (int id = 0; id < kTensorCount; ++id) {
      write(params_[id], batch.params[id]);
      write(gradients_[id], batch.gradients[id]);
    }
    EXPECT_EQ(own_->begin(own_, batch.count(), images.data(), batch.labels.data()), 0);
    own_->set_divisor(own_, batch.divisor);
    for (int layer = 0; layer < kLayerCount; ++layer) {
      EXPECT_EQ(own_->forward(own_, layer, params_[2 * layer], params_[2 * layer + 1]), 0);
    }
    EXPECT_EQ(own_->loss(own_, &out.loss, &out.correct), 0);
    for (int layer = kLayerCount - 1; layer >= 0; --layer) {
      EXPECT_EQ(own_->backward(own_, layer, params_[2 * layer], gradients_[2 * layer], gradients_[2 * layer + 1]), 0);
    }
    for (int id = 0; id < kTensorCount; ++id) out.gradients[id] = read(gradients_[id], model_tensors[id].count);
    return out;
  }

 private:
  compute *own_;
  std::vector<void *> memory_;
  float *params_[kTensorCount];
  float *gradients_[kTensorCount];
};

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0; }

/// exp and log are the C library's in the emulation, where the loss has the host's bits too. Elsewhere their last bits may differ, which
/// rounding to fp32 hides from gradients.
bool is_emulated() { return caller_module()[0] != 0; }

void expect_same(const Outcome &device, const Outcome &host) {
  EXPECT_NEAR(device.loss, host.loss, is_emulated() ? 0 : 1e-12 * host.loss);
  EXPECT_EQ(device.correct, host.correct);
  for (int id = 0; id < kTensorCount; ++id) {
    for (size_t i = 0; i < host.gradients[id].size(); ++i) {
      const float a = device.gradients[id][i], b = host.gradients[id][i];
      ASSERT_PRED2(same, a, b) << model_tensors[id].name << " element " << i;
    }
  }
}

class FashionCompute : public testing::Test {
 protected:
  void SetUp() override {
    if (caller_missing()[0] != 0) GTEST_SKIP() << caller_missing();
  }
  static compute *on_host(int64_t capacity) {
    compute *out = nullptr;
    EXPECT_EQ(compute_create_host(capacity, &out), 0);
    return out;
  }
  static compute *on_device(int64_t capacity) {
    compute *out = nullptr;
    EXPECT_EQ(compute_create_cuda(0, capacity, &out), 0);
    return out;
  }
  std::mt19937 random_{20261122};
};

TEST_F(FashionCompute, GradientsHaveTheHostsBits) {
  for (const int64_t capacity : {1, 2, 7, 33, 64}) {
    Side device(on_device(capacity)), host(on_host(capacity));
    for (const int64_t count : {capacity, (capacity + 1) / 2, int64_t{1}, capacity}) {
      SCOPED_TRACE(testing::Message() << count << " samples of " << capacity);
      const Batch batch = random_batch(random_, count);
      const Outcome on_host = host.run(batch);
      ASSERT_NE(on_host.gradients[0], batch.gradients[0]);
      expect_same(device.run(batch), on_host);
    }
  }
}

TEST_F(FashionCompute, OfEqualValuesTheFirstIsTaken) {
  Side device(on_device(3)), host(on_host(3));
  Batch batch = random_batch(random_, 3);
  for (std::vector<uint8_t> &image : batch.images) image.assign(kImagePixels, 77);
  expect_same(device.run(batch), host.run(batch));
  for (int id = 4; id < kTensorCount; ++id) batch.params[id].assign(batch.params[id].size(), 0);
  batch.labels = {0, 0, 9};
  expect_same(device.run(batch), host.run(batch));
}

TEST_F(FashionCompute, WhatIsNotFiniteStaysSo) {
  Side device(on_device(2)), host(on_host(2));
  for (const int id : {0, 2, 4, 7}) {
    for (const float bad : {INFINITY, -INFINITY, NAN}) {
      Batch batch = random_batch(random_, 2);
      batch.params[id][batch.params[id].size() / 2] = bad;
      const Outcome of_host = host.run(batch);
      const Outcome of_device = device.run(batch);
      for (int t = 0; t < kTensorCount; ++t) {
        for (size_t i = 0; i < of_host.gradients[t].size(); ++i) {
          ASSERT_PRED2(same, of_device.gradients[t][i], of_host.gradients[t][i]) << model_tensors[t].name << " element " << i;
        }
      }
    }
  }
}

TEST_F(FashionCompute, WithoutSamplesNothingChanges) {
  Side device(on_device(4));
  device.run(random_batch(random_, 4));
  const Batch batch = random_batch(random_, 0);
  const Outcome outcome = device.run(batch);
  EXPECT_EQ(outcome.loss, 0);
  EXPECT_EQ(outcome.correct, 0);
  for (int id = 0; id < kTensorCount; ++id) EXPECT_EQ(outcome.gradients[id], batch.gradients[id]);
}

TEST_F(FashionCompute, SixteenBitFormsHaveTheHostsBits) {
  Side device(on_device(1)), host(on_host(1));
  const int64_t all = 65536;
  std::vector<uint16_t> halves(all);
  std::vector<float> floats(all);
  for (size_t i = 0; i < halves.size(); ++i) {
    const uint32_t bits = random_();
    halves[i] = static_cast<uint16_t>(i);
    std::memcpy(&floats[i], &bits, sizeof bits);
    if (i % 2 != 0) floats[i] = std::ldexp(floats[i] < 0 ? -1.0F : 1.0F, static_cast<int>(i % 60) - 30) * (1 + static_cast<float>(i) / all);
  }
  std::vector<float> wide[2];
  std::vector<uint16_t> narrow[2];
  for (const int32_t dtype : {ZERO_DTYPE_BF16, ZERO_DTYPE_F16}) {
    for (Side *side : {&device, &host}) {
      auto *at_halves = side->allocate<uint16_t>(all);
      auto *at_floats = side->allocate<float>(all);
      side->write(at_halves, halves);
      EXPECT_EQ((*side)->widen(side->operator->(), dtype, at_halves, all, at_floats), 0);
      wide[side == &host] = side->read(at_floats, all);
      side->write(at_floats, floats);
      EXPECT_EQ((*side)->narrow(side->operator->(), dtype, at_floats, all, at_halves), 0);
      narrow[side == &host] = side->read(at_halves, all);
    }
    EXPECT_EQ(std::memcmp(wide[0].data(), wide[1].data(), all * sizeof(float)), 0);
    EXPECT_EQ(narrow[0], narrow[1]);
  }
}

}  // namespace
