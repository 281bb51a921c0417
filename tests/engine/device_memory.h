/// @file Memory of a device, for trainings whose tensors lie there.
#pragma once

#include "tests/algorithms.h"
#include "tests/engine/training.h"
#include "tests/memory/caller_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace zero::test {

/// How late streams of tests are.
inline constexpr int64_t kLateUs = 200;

/// Streams of the caller that nobody uses now. They stay until the process ends, since making one is slow.
class IdleStreams {
 public:
  void *take(int64_t device) {
    const std::lock_guard lock(mutex_);
    std::vector<void *> &idle = idle_[device];
    if (idle.empty()) return caller_stream_create(device);
    void *stream = idle.back();
    idle.pop_back();
    return stream;
  }
  void put(int64_t device, void *stream) {
    const std::lock_guard lock(mutex_);
    idle_[device].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, std::vector<void *>> idle_;
};
inline IdleStreams idle_streams;

/// A stream and memory of a device.
struct Lent {
  Lent(int64_t of, int64_t nbytes) : device(of), data(caller_alloc(of, std::max<int64_t>(nbytes, 1))), stream(idle_streams.take(of)) {}
  Lent(const Lent &) = delete;
  ~Lent() {
    caller_wait(stream);
    idle_streams.put(device, stream);
    caller_free(data);
  }
  const int64_t device;
  void *const data;
  void *const stream;
};

/// Floats of the host that a stream reads and writes when it comes to them: CUDA may wait within copies of memory that is not pinned.
class PinnedFloats {
 public:
  explicit PinnedFloats(int64_t count, float value = 0)
      : values_(static_cast<float *>(caller_pinned_alloc(count * 4)), static_cast<size_t>(count)) {
    std::ranges::fill(values_, value);
  }
  PinnedFloats(const PinnedFloats &) = delete;
  ~PinnedFloats() { caller_pinned_free(values_.data()); }
  std::span<float> values() const { return values_; }
  float *data() const { return values_.data(); }
  float operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }

 private:
  const std::span<float> values_;
};

/// Tests that need a device.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (*caller_missing() != '\0') GTEST_SKIP() << caller_missing();
  }
};

/// Whatever is lent is garbage once it was given.
class DeviceMemory final : public RemoteMemory {
 public:
  explicit DeviceMemory(int64_t device) : device_(device) {}
  void set(Config &config) const override {
    EXPECT_TRUE(config.set_i64(ZERO_KEY_DEVICE, device_).ok());
    EXPECT_TRUE(config.set_str(ZERO_KEY_CUDA_MODULE, caller_module()).ok());
  }
  void lend(const std::vector<std::byte> &bytes, const std::function<void(const void *, void *)> &give) const override {
    const auto nbytes = std::ssize(bytes);
    const std::vector<std::byte> garbage(bytes.size(), std::byte{0x7f});
    const Lent lent(device_, nbytes);
    caller_copy(lent.stream, lent.data, bytes.data(), nbytes, kLateUs);
    give(lent.data, lent.stream);
    caller_copy(lent.stream, lent.data, garbage.data(), nbytes, kLateUs);
    caller_wait(lent.stream);
  }
  void write(const Acquire &acquire, const std::vector<std::byte> &bytes, const std::function<void(void *)> &done) const override {
    const Lent lent(device_, 0);
    void *to = const_cast<void *>(acquire(lent.stream));
    caller_copy(lent.stream, to, bytes.data(), std::ssize(bytes), kLateUs);
    done(lent.stream);
    caller_wait(lent.stream);
  }
  std::vector<std::byte> read(const Acquire &acquire, int64_t nbytes, const std::function<void()> &done) const override {
    std::vector<std::byte> got(static_cast<size_t>(nbytes));
    const Lent lent(device_, 0);
    const void *from = acquire(lent.stream);
    caller_copy(lent.stream, got.data(), from, nbytes, kLateUs);
    done();
    caller_wait(lent.stream);
    return got;
  }
  std::vector<std::byte> collect(int64_t nbytes, const std::function<void(void *, void *)> &fill) const override {
    std::vector<std::byte> got(static_cast<size_t>(nbytes));
    const std::vector<std::byte> garbage(got.size(), std::byte{0x7f});
    const Lent lent(device_, nbytes);
    caller_copy(lent.stream, lent.data, garbage.data(), nbytes, kLateUs);
    fill(lent.data, lent.stream);
    caller_copy(lent.stream, got.data(), lent.data, nbytes, 0);
    caller_wait(lent.stream);
    return got;
  }

 private:
  int64_t device_;
};

/// Random, and every second one has 8-bit parameters.
inline Model random_model_for_devices(uint64_t seed, int64_t ranks) {
  const Names names = all_names();
  Model model = random_model(seed, ranks, 1 << 13);
  model.counts.resize(std::min<size_t>(model.counts.size(), 8));
  model.algorithm = names[seed % names.size()];
  model.recipe = random_recipe(seed, model.algorithm);
  if (seed % 2 == 0) model.recipe.coded = true;
  if (model.recipe.coded) model.recipe.master = ZERO_MASTER_F32;
  return model;
}

inline void expect_same(const Outcome &expected, Outcome outcome, const Model &model, const Manner &manner, int64_t rank) {
  if (!manner.norm && model.recipe.clip_norm == 0) outcome.norms = expected.norms;
  const int64_t different = differing(expected, outcome) + (expected.unfilled != outcome.unfilled ? 1 : 0);
  EXPECT_EQ(different, 0) << "rank " << rank << "\n" << model.text() << "\n" << manner.text();
}

}  // namespace zero::test
