/// @file A small model in kinds of training, on the host and kept on a device, and gradients that a caller's stream brings there.
#pragma once

#include "tests/engine/device_memory.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace zero::test {

inline const DeviceMemory kDevice(0);
inline constexpr int64_t kShapes[][2] = {{60, 50}, {17, 1}, {3, 0}, {16, 64}, {25, 800}};
inline constexpr int64_t kCounts[] = {3000, 17, 0, 1024, 20'000};
inline constexpr int64_t kTensors = std::size(kCounts);

struct Kind {
  const char *algorithm;
  DType dtype = DType::f32;
  double clip_norm = 0;
  bool dynamic = false;     ///< the loss scale
  bool stochastic = false;  ///< 16-bit parameters have no master
  bool average = false;
  bool untouched = false;  ///< tensor 3 never gets a gradient, and stays as it is
  int64_t weights = 0;
  bool coded = false;  ///< 8-bit parameters
};

inline constexpr Kind kKinds[] = {
    {"adamw"},
    {"adamw", DType::bf16, 0.5, true},
    {"adam", DType::bf16, 0, false, true},
    {"sgd", DType::f16, 0.01, true, false, true},
    {"adagrad", DType::f32, 0, false, false, false, true},
    {"lion", DType::f32, 0.1, false, false, true, false, 3},
    {"adamw", DType::bf16, 0.5, true, false, true, false, 0, true},
    {"lamb", DType::bf16, 0.5, true},
    {"lamb", DType::f32, 0, false, false, true, true},
    {"muon", DType::bf16, 0.5, true},
    {"muon", DType::f32, 0, false, false, true, true},
    {"adamw", DType::f16, 0, true, false, false, false, 4096},
};

/// Sealed and begun, on the host or kept on a device.
inline std::shared_ptr<Optimizer> make(const std::shared_ptr<Group> &group, const Kind &kind, bool kept, int64_t overlap = 0) {
  Config config;
  const auto set = [&config](int32_t key, int64_t value) { expect_ok(config.set_i64(key, value), "set_i64"); };
  if (kept) kDevice.set(config);
  if (kept) set(ZERO_KEY_TIER, ZERO_TIER_DEVICE);
  expect_ok(config.set_str(ZERO_KEY_ALGORITHM, kind.algorithm), "set_str");
  if (std::strcmp(kind.algorithm, "sgd") == 0) expect_ok(config.set_f64(ZERO_KEY_MOMENTUM, 0.9), "set_f64");
  if (std::strcmp(kind.algorithm, "muon") == 0) expect_ok(config.set_f64(ZERO_KEY_NEWTON_SCHULZ_STEPS, 2), "set_f64");
  expect_ok(config.set_f64(ZERO_KEY_CLIP_NORM, kind.clip_norm), "set_f64");
  set(ZERO_KEY_OVERLAP, overlap);
  set(ZERO_KEY_BUCKET_BYTES, 1 << 20);  // room for all tensors
  if (kind.dynamic) set(ZERO_KEY_LOSS_SCALE_DYNAMIC, 1);
  if (kind.dynamic) set(ZERO_KEY_LOSS_SCALE_WINDOW, 3);
  if (kind.stochastic) set(ZERO_KEY_MASTER, ZERO_MASTER_NONE);
  if (kind.stochastic) set(ZERO_KEY_ROUNDING, ZERO_ROUNDING_STOCHASTIC);
  if (kind.average) set(ZERO_KEY_AVERAGE, 1);
  if (kind.untouched) set(ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED);
  if (kind.weights > 0) set(ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS);
  if (kind.coded) set(ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3);
  std::shared_ptr<Optimizer> optimizer;
  expect_ok(Optimizer::create(group, config, &optimizer), "create");
  Config second;
  int64_t number = 0;
  expect_ok(second.set_f64(ZERO_KEY_WEIGHT_DECAY, 0.2), "set_f64");
  expect_ok(optimizer->add_set(second, &number), "add_set");
  for (int64_t id = 0; id < kTensors; ++id) {
    Config param;
    expect_ok(param.set_i64(ZERO_KEY_SET, id % 2), "set_i64");
    const std::string name = "p" + std::to_string(id);
    expect_ok(optimizer->add_param(&param, name.c_str(), static_cast<int32_t>(kind.dtype), kShapes[id], 2, &number), "add_param");
  }
  expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
  for (int64_t id = 0; id < kTensors; ++id) expect_ok(optimizer->init_param(id, ZERO_INITIALISER_NORMAL, 0, 1, 5), "init_param");
  expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
  return optimizer;
}

inline bool has_gradient(const Kind &kind, int64_t id) { return kCounts[id] > 0 && !(kind.untouched && id == 3); }

/// Of a rank. One in four steps from the third on has an element that is not finite, on rank 0.
inline std::vector<std::byte> gradient(const Kind &kind, int64_t step, int64_t id, int64_t rank) {
  std::vector<float> values(static_cast<size_t>(kCounts[id]));
  for (int64_t i = 0; i < kCounts[id]; ++i)
    values[static_cast<size_t>(i)] =
        value_at(7 + static_cast<uint64_t>(rank), static_cast<uint64_t>(step * kTensors + id), i) * static_cast<float>(1 + step % 5);
  if (step % 4 == 2 && id == 1 && rank == 0) values[5] = std::numeric_limits<float>::quiet_NaN();
  return encode(values, kind.dtype);
}

inline double rate(int64_t step) { return 1e-3 * static_cast<double>(1 + step * 7 % 11); }

inline zero_step_result empty_result() {
  zero_step_result result{};
  result.struct_size = sizeof result;
  return result;
}

/// Gradients of all tensors on a rank in memory of a device, and the stream that works there. They come from pinned memory that is made in
/// the beginning: copies from other memory, and making memory, may wait for what streams were given before.
class Feed {
 public:
  explicit Feed(const Kind &kind, int64_t rank = 0) : kind_(kind), rank_(rank), stream_(caller_stream_create(0)) {
    for (const int64_t count : kCounts) data_.push_back(caller_alloc(0, count * dtype_nbytes(kind.dtype) + 1));
  }
  Feed(const Feed &) = delete;
  ~Feed() {
    caller_wait(stream_);
    for (void *data : data_) caller_free(data);
    caller_pinned_free(pinned_);
    caller_stream_destroy(stream_);
  }
  void *stream() const { return stream_; }
  const void *data(int64_t id) const { return data_[static_cast<size_t>(id)]; }
  void fill(int64_t step) {
    for (int64_t id = 0; id < kTensors; ++id) {
      const std::vector<std::byte> values = gradient(kind_, step, id, rank_);
      if (values.empty()) continue;
      if (used_nbytes_ + std::ssize(values) > kPinnedNbytes) {
        caller_wait(stream_);
        used_nbytes_ = 0;
      }
      std::byte *given = static_cast<std::byte *>(pinned_) + used_nbytes_;
      used_nbytes_ += std::ssize(values);
      std::memcpy(given, values.data(), values.size());
      caller_copy(stream_, data_[static_cast<size_t>(id)], given, std::ssize(values), 0);
    }
  }
  /// All but one. With the look at the stream that comes first in every exported call.
  void give(Optimizer &optimizer, int64_t but = -1) const {
    expect_ok(optimizer.check_stream(stream_), "check_stream");
    if (kind_.weights > 0) expect_ok(optimizer.set_weight(static_cast<double>(kind_.weights)), "set_weight");
    for (int64_t id = kTensors - 1; id >= 0; --id) {
      if (!has_gradient(kind_, id) || id == but) continue;
      expect_ok(optimizer.grad_ready(id, data_[static_cast<size_t>(id)], 0, kCounts[id], stream_), "grad_ready");
    }
  }

 private:
  /// Ten steps and more.
  static constexpr int64_t kPinnedNbytes = 1 << 20;

  const Kind &kind_;
  const int64_t rank_;
  void *stream_;
  std::vector<void *> data_;
  void *const pinned_ = caller_pinned_alloc(kPinnedNbytes);
  int64_t used_nbytes_ = 0;
};

inline zero_step_result step_on_host(Optimizer &optimizer, const Kind &kind, int64_t step) {
  if (kind.weights > 0) expect_ok(optimizer.set_weight(static_cast<double>(kind.weights)), "set_weight");
  for (int64_t id = 0; id < kTensors; ++id) {
    const std::vector<std::byte> grad = gradient(kind, step, id, optimizer.group()->rank());
    if (has_gradient(kind, id)) expect_ok(optimizer.grad_ready(id, grad.data(), 0, kCounts[id]), "grad_ready");
  }
  zero_step_result result = empty_result();
  expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
  return result;
}

/// The same step on the host, and on a device that is not waited for.
inline zero_step_result step_both(Optimizer &host, Optimizer &kept, Feed &feed, const Kind &kind, int64_t step) {
  feed.fill(step);
  feed.give(kept);
  expect_ok(run_task(kept, kept.step(nullptr, feed.stream())), "step");
  return step_on_host(host, kind, step);
}

inline void step_in_parts(Optimizer &kept, zero_step_result *reduced, void *stream) {
  expect_ok(run_task(kept, kept.reduce(reduced, stream)), "reduce");
  expect_ok(run_task(kept, kept.apply(stream)), "apply");
  expect_ok(run_task(kept, kept.gather(stream)), "gather");
}

inline void set_rate(Optimizer &optimizer, int64_t step) {
  expect_ok(optimizer.set_f64(0, ZERO_KEY_LR, rate(step)), "set_f64");
  expect_ok(optimizer.set_f64(1, ZERO_KEY_LR, rate(step + 3)), "set_f64");
}

inline std::vector<std::byte> slots_of(Optimizer &optimizer) {
  Model model;
  model.counts.assign(std::begin(kCounts), std::end(kCounts));
  return read_slots(optimizer, model);
}

/// Both have come to the same.
inline void expect_alike(Optimizer &host, Optimizer &kept, const zero_step_result &expected, void *stream, const Kind &kind) {
  zero_step_result actual = empty_result();
  expect_ok(kept.result(&actual, stream), "result");
  EXPECT_EQ(std::memcmp(&actual, &expected, sizeof actual), 0)
      << kind.algorithm << " steps " << actual.step << " " << expected.step << ", skipped " << actual.skipped_total << " "
      << expected.skipped_total << ", norm " << actual.grad_norm << " " << expected.grad_norm << ", scale " << actual.loss_scale << " "
      << expected.loss_scale;
  for (const int32_t key : {ZERO_KEY_STEP_COUNT, ZERO_KEY_SKIPPED_COUNT, ZERO_KEY_GROWTH_COUNT, ZERO_KEY_OVERFLOW_COUNT}) {
    int64_t values[2] = {-1, -2};
    expect_ok(host.get_i64(key, &values[0]), "get_i64");
    expect_ok(kept.get_i64(key, &values[1]), "get_i64");
    EXPECT_EQ(values[0], values[1]) << key;
  }
  EXPECT_EQ(slots_of(host), slots_of(kept)) << kind.algorithm;
}

inline void expect_refused(const Status &status, int32_t code, const char *text) {
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_NE(std::strstr(status.text(), text), nullptr) << status.text();
}

}  // namespace zero::test
