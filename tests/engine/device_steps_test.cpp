/// @file Steps of optimizers on a device that nobody waits for, and steps that become part of CUDA graphs: the bits of steps on the host.
#include "tests/engine/device_memory.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

namespace zero::test {
namespace {

const int64_t kReplays = few_tests() ? 12 : 100;

using StepsOnDevice = DeviceTest;

const DeviceMemory kDevice(0);
constexpr int64_t kShapes[][2] = {{60, 50}, {17, 1}, {3, 0}, {16, 64}, {25, 800}};
constexpr int64_t kCounts[] = {3000, 17, 0, 1024, 20'000};
constexpr int64_t kTensors = std::size(kCounts);

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

constexpr Kind kKinds[] = {
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
};

/// Sealed and begun, on the host or kept on a device.
std::shared_ptr<Optimizer> make(const std::shared_ptr<Group> &group, const Kind &kind, bool kept) {
  Config config;
  const auto set = [&config](int32_t key, int64_t value) { expect_ok(config.set_i64(key, value), "set_i64"); };
  if (kept) kDevice.set(config);
  if (kept) set(ZERO_KEY_TIER, ZERO_TIER_DEVICE);
  expect_ok(config.set_str(ZERO_KEY_ALGORITHM, kind.algorithm), "set_str");
  if (std::strcmp(kind.algorithm, "sgd") == 0) expect_ok(config.set_f64(ZERO_KEY_MOMENTUM, 0.9), "set_f64");
  if (std::strcmp(kind.algorithm, "muon") == 0) expect_ok(config.set_f64(ZERO_KEY_NEWTON_SCHULZ_STEPS, 2), "set_f64");
  expect_ok(config.set_f64(ZERO_KEY_CLIP_NORM, kind.clip_norm), "set_f64");
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

bool has_gradient(const Kind &kind, int64_t id) { return kCounts[id] > 0 && !(kind.untouched && id == 3); }

/// One in four steps from the third on has an element that is not finite.
std::vector<std::byte> gradient(const Kind &kind, int64_t step, int64_t id) {
  std::vector<float> values(static_cast<size_t>(kCounts[id]));
  for (int64_t i = 0; i < kCounts[id]; ++i)
    values[static_cast<size_t>(i)] = value_at(7, static_cast<uint64_t>(step * kTensors + id), i) * static_cast<float>(1 + step % 5);
  if (step % 4 == 2 && id == 1) values[5] = std::numeric_limits<float>::quiet_NaN();
  return encode(values, kind.dtype);
}

double rate(int64_t step) { return 1e-3 * static_cast<double>(1 + step * 7 % 11); }

zero_step_result empty_result() {
  zero_step_result result{};
  result.struct_size = sizeof result;
  return result;
}

/// Gradients of all tensors in memory of a device, and the stream that works there. What the host gives stays until the end.
class Feed {
 public:
  explicit Feed(const Kind &kind) : kind_(kind), stream_(caller_stream_create(0)) {
    for (const int64_t count : kCounts) data_.push_back(caller_alloc(0, count * dtype_nbytes(kind.dtype) + 1));
  }
  Feed(const Feed &) = delete;
  ~Feed() {
    caller_wait(stream_);
    for (void *data : data_) caller_free(data);
    caller_stream_destroy(stream_);
  }
  void *stream() const { return stream_; }
  void fill(int64_t step) {
    for (int64_t id = 0; id < kTensors; ++id) {
      given_.push_back(gradient(kind_, step, id));
      caller_copy(stream_, data_[static_cast<size_t>(id)], given_.back().data(), std::ssize(given_.back()), 0);
    }
  }
  void give(Optimizer &optimizer) const {
    if (kind_.weights > 0) expect_ok(optimizer.set_weight(static_cast<double>(kind_.weights)), "set_weight");
    for (int64_t id = kTensors - 1; id >= 0; --id) {
      if (!has_gradient(kind_, id)) continue;
      expect_ok(optimizer.grad_ready(id, data_[static_cast<size_t>(id)], 0, kCounts[id], stream_), "grad_ready");
    }
  }

 private:
  const Kind &kind_;
  void *stream_;
  std::vector<void *> data_;
  std::vector<std::vector<std::byte>> given_;
};

zero_step_result step_on_host(Optimizer &optimizer, const Kind &kind, int64_t step) {
  if (kind.weights > 0) expect_ok(optimizer.set_weight(static_cast<double>(kind.weights)), "set_weight");
  for (int64_t id = 0; id < kTensors; ++id) {
    const std::vector<std::byte> grad = gradient(kind, step, id);
    if (has_gradient(kind, id)) expect_ok(optimizer.grad_ready(id, grad.data(), 0, kCounts[id]), "grad_ready");
  }
  zero_step_result result = empty_result();
  expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
  return result;
}

void set_rate(Optimizer &optimizer, int64_t step) {
  expect_ok(optimizer.set_f64(0, ZERO_KEY_LR, rate(step)), "set_f64");
  expect_ok(optimizer.set_f64(1, ZERO_KEY_LR, rate(step + 3)), "set_f64");
}

std::vector<std::byte> slots_of(Optimizer &optimizer) {
  Model model;
  model.counts.assign(std::begin(kCounts), std::end(kCounts));
  return read_slots(optimizer, model);
}

/// Both have come to the same.
void expect_alike(Optimizer &host, Optimizer &kept, const zero_step_result &expected, void *stream, const Kind &kind) {
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

/// After the first step the device does nothing before the host has given it all others.
TEST_F(StepsOnDevice, NobodyWaitsForAStep) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const Kind &kind : kKinds) {
      const auto host = make(group, kind, false);
      const auto kept = make(group, kind, true);
      Feed feed(kind);
      int32_t goes_on = 0;
      zero_step_result expected{};
      for (int64_t step = 0; step < 8; ++step) {
        if (step == 1) caller_hold(feed.stream(), &goes_on);
        for (Optimizer *each : {host.get(), kept.get()}) set_rate(*each, step);
        expected = step_on_host(*host, kind, step);
        feed.fill(step);
        feed.give(*kept);
        expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
      }
      __atomic_store_n(&goes_on, 1, __ATOMIC_RELEASE);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
    }
  });
}

/// Reduce, apply and gather by themselves, with results in between, and scalars that the caller sets.
TEST_F(StepsOnDevice, PartsOfStepsAndScalarsGoTogether) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[1];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    zero_step_result expected{};
    for (int64_t step = 0; step < 8; ++step) {
      expected = step_on_host(*host, kind, step);
      feed.fill(step);
      feed.give(*kept);
      zero_step_result reduced = empty_result();
      expect_ok(run_task(*kept, kept->reduce(step % 2 == 0 ? &reduced : nullptr, feed.stream())), "reduce");
      EXPECT_TRUE(step % 2 == 1 || std::memcmp(&reduced, &expected, sizeof reduced) == 0) << "step " << step;
      expect_ok(run_task(*kept, kept->apply(feed.stream())), "apply");
      expect_ok(run_task(*kept, kept->gather(feed.stream())), "gather");
      for (Optimizer *each : {host.get(), kept.get()}) {
        if (step == 4) expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, 40), "set_i64");
        if (step == 5) expect_ok(each->set_f64(0, ZERO_KEY_LOSS_SCALE, 512), "set_f64");
      }
    }
    EXPECT_EQ(expected.step, 42);
    expect_alike(*host, *kept, expected, feed.stream(), kind);
  });
}

TEST_F(StepsOnDevice, KernelsFindTheLossScaleOfTheNextStep) {
  for (const int64_t ranks : {1, 2}) {
    run_world(ranks, [](const std::shared_ptr<Group> &group) {
      const auto kept = make(group, kKinds[1], true);
      Feed feed(kKinds[1]);
      void *address = nullptr;
      expect_ok(kept->loss_scale_address(feed.stream(), &address), "loss_scale_address");
      const auto expect_scale = [&](double expected) {
        double seen = 0;
        caller_copy(feed.stream(), &seen, address, sizeof seen, 0);
        caller_wait(feed.stream());
        EXPECT_EQ(seen, expected);
      };
      expect_scale(65'536);
      zero_step_result result = empty_result();
      for (int64_t step = 0; step < 8; ++step) {
        feed.fill(step);
        feed.give(*kept);
        expect_ok(run_task(*kept, kept->step(&result, feed.stream())), "step");
        expect_scale(result.loss_scale);
      }
      expect_ok(kept->set_f64(0, ZERO_KEY_LOSS_SCALE, 256), "set_f64");
      expect_ok(kept->refresh(feed.stream()), "refresh");
      expect_scale(256);
    });
  }
}

/// A graph of the copies of gradients and the step, run again and again while the rate changes; plain steps before and after.
TEST_F(StepsOnDevice, CapturedStepsHaveTheBitsOfPlainOnes) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const Kind &kind : kKinds) {
      const auto host = make(group, kind, false);
      const auto kept = make(group, kind, true);
      Feed feed(kind);
      const auto plain = [&](int64_t step) {
        feed.fill(step);
        feed.give(*kept);
        expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
        return step_on_host(*host, kind, step);
      };
      zero_step_result expected = plain(0);
      void *scale = nullptr;
      std::vector<double> seen(static_cast<size_t>(kReplays));
      std::vector<double> scales;
      expect_ok(kept->loss_scale_address(feed.stream(), &scale), "loss_scale_address");
      caller_capture_begin(feed.stream());
      feed.give(*kept);
      expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
      void *graph = caller_capture_end(feed.stream());
      ASSERT_NE(graph, nullptr) << kind.algorithm;
      for (int64_t step = 1; step <= kReplays; ++step) {
        for (Optimizer *each : {host.get(), kept.get()}) set_rate(*each, step);
        expect_ok(kept->refresh(feed.stream()), "refresh");
        feed.fill(step);
        caller_replay(graph, feed.stream());
        expected = step_on_host(*host, kind, step);
        caller_copy(feed.stream(), &seen[static_cast<size_t>(step - 1)], scale, sizeof(double), 0);
        scales.push_back(expected.loss_scale);
      }
      expect_alike(*host, *kept, expected, feed.stream(), kind);
      EXPECT_EQ(seen, scales) << kind.algorithm;
      EXPECT_GT(expected.skipped_total, 0);
      expected = plain(kReplays + 1);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
      caller_graph_destroy(graph);
    }
  });
}

/// What is set reaches graphs with refresh only, and then in the order of the stream; what was set before the capture is not part of it.
TEST_F(StepsOnDevice, GraphsKeepWhatTheyKnowUntilItIsRefreshed) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[1];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    feed.fill(0);
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
    (void)step_on_host(*host, kind, 0);
    const auto set_all = [](Optimizer &optimizer, int64_t step) {
      set_rate(optimizer, step);
      expect_ok(optimizer.set_i64(ZERO_KEY_STEP_COUNT, 10 * step), "set_i64");
      expect_ok(optimizer.set_i64(ZERO_KEY_GROWTH_COUNT, 0), "set_i64");
      expect_ok(optimizer.set_f64(0, ZERO_KEY_LOSS_SCALE, 256), "set_f64");
    };
    set_all(*kept, 1);
    caller_capture_begin(feed.stream());
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    int64_t count = 0;
    expect_ok(kept->get_i64(ZERO_KEY_STEP_COUNT, &count), "get_i64");
    EXPECT_EQ(count, 10);
    caller_replay(graph, feed.stream());
    (void)step_on_host(*host, kind, 0);
    zero_step_result expected{};
    for (const int64_t step : {2, 3}) {
      set_all(*kept, step);
      expect_ok(kept->refresh(feed.stream()), "refresh");
      set_all(*host, step);
      for (int64_t i = 0; i < 2; ++i) {
        caller_replay(graph, feed.stream());
        expected = step_on_host(*host, kind, 0);
      }
      EXPECT_EQ(expected.step, 10 * step + 2);
      expect_alike(*host, *kept, expected, feed.stream(), kind);
    }
    caller_graph_destroy(graph);
  });
}

void expect_refused(const Status &status, int32_t code, const char *text) {
  EXPECT_EQ(status.code(), code) << status.text();
  EXPECT_NE(std::strstr(status.text(), text), nullptr) << status.text();
}

/// Each run of a graph decodes what the run before it left, into memory of the caller.
TEST_F(StepsOnDevice, GraphsAcquireCodedParametersIntoMemoryOfTheCaller) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[6];
    const auto host = make(group, kind, false);
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    const Lent lent(0, 3000 * 2);
    void *data = nullptr;
    feed.fill(0);
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
    (void)step_on_host(*host, kind, 0);
    caller_capture_begin(feed.stream());
    expect_refused(run_task(*kept, kept->param_acquire(0, nullptr, 0, &data, feed.stream())), ZERO_E_STATE, "without dst on the device");
    expect_ok(run_task(*kept, kept->param_acquire(0, lent.data, 3000, &data, feed.stream())), "param_acquire");
    expect_ok(kept->param_release(0), "param_release");
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "captured step");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    for (int64_t step = 1; step < 4; ++step) {
      feed.fill(step);
      caller_replay(graph, feed.stream());
      std::vector<std::byte> actual(3000 * 2);
      caller_copy(feed.stream(), actual.data(), lent.data, 3000 * 2, 0);
      caller_wait(feed.stream());
      expect_ok(run_task(*host, host->param_acquire(0, nullptr, 0, &data)), "param_acquire");
      EXPECT_EQ(std::memcmp(actual.data(), data, actual.size()), 0) << "step " << step;
      expect_ok(host->param_release(0), "param_release");
      (void)step_on_host(*host, kind, step);
    }
    caller_graph_destroy(graph);
  });
}

/// Neither the capture nor the optimizer is lost.
TEST_F(StepsOnDevice, WhatCannotBeCapturedIsAnError) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    zero_step_result result = empty_result();
    caller_capture_begin(feed.stream());
    expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_STATE, "none was made before");
    expect_refused(run_task(*kept, kept->step(&result, feed.stream())), ZERO_E_STATE, "has no result yet");
    expect_refused(run_task(*kept, kept->reduce(&result, feed.stream())), ZERO_E_STATE, "has no result yet");
    expect_refused(kept->result(&result, feed.stream()), ZERO_E_STATE, "zero_optimizer_result cannot become part");
    expect_refused(kept->refresh(feed.stream()), ZERO_E_STATE, "zero_optimizer_refresh cannot become part");
    void *graph = caller_capture_end(feed.stream());
    ASSERT_NE(graph, nullptr);
    caller_graph_destroy(graph);
    feed.fill(0);
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(&result, feed.stream())), "step");
    EXPECT_EQ(result.step, 1);
  });
}

/// A graph would find the tables of another step on the device.
TEST_F(StepsOnDevice, ACapturedStepOfAnotherKindIsTheLast) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto kept = make(group, kKinds[4], true);
    Feed fills_most(kKinds[4]);
    Feed fills_all(kKinds[0]);
    fills_most.fill(0);
    fills_most.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, fills_most.stream())), "step");
    caller_capture_begin(fills_all.stream());
    fills_all.give(*kept);
    expect_refused(run_task(*kept, kept->step(nullptr, fills_all.stream())), ZERO_E_STATE, "are not those of the step before it");
    caller_graph_destroy(caller_capture_end(fills_all.stream()));
    expect_refused(run_task(*kept, kept->step(nullptr, fills_all.stream())), ZERO_E_STATE, "are not those of the step before it");
  });
}

/// The vote of several ranks is the host's.
TEST_F(StepsOnDevice, StepsOfSeveralRanksAreNotCaptured) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const Kind &kind = kKinds[0];
    const auto kept = make(group, kind, true);
    Feed feed(kind);
    feed.fill(0);
    feed.give(*kept);
    expect_ok(run_task(*kept, kept->step(nullptr, feed.stream())), "step");
    if (group->rank() == 0) {
      caller_capture_begin(feed.stream());
      expect_refused(run_task(*kept, kept->step(nullptr, feed.stream())), ZERO_E_UNSUPPORTED, "wait for one another on the host");
      void *graph = caller_capture_end(feed.stream());
      EXPECT_NE(graph, nullptr);
      caller_graph_destroy(graph);
    }
    expect_ok(kept->refresh(feed.stream()), "refresh");
    feed.give(*kept);
    zero_step_result steps[2] = {empty_result(), empty_result()};
    expect_ok(run_task(*kept, kept->step(&steps[0], feed.stream())), "step");
    expect_ok(kept->result(&steps[1], feed.stream()), "result");
    EXPECT_EQ(std::memcmp(&steps[0], &steps[1], sizeof steps[0]), 0);
    EXPECT_EQ(steps[0].step, 2);
  });
}

}  // namespace
}  // namespace zero::test
