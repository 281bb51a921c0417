/// @file verify where everything is kept on a device: what it finds and when, as on the host, and that nobody waits for steps between.
#include "tests/engine/device_memory.h"
#include "tests/engine/flipped_bits.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <limits>

namespace zero::test::device_verify_test {
namespace {

using VerifyOnDevice = DeviceTest;

const DeviceMemory kDevice(0);

Manner kept_on_device(Manner manner) {
  manner.remote = &kDevice;
  manner.kept_there = true;
  manner.one_copy = false;
  return manner;
}

TEST_F(VerifyOnDevice, FindsEverySingleBitAndNamesIt) {
  const int64_t flips = full_tests() ? 30 : few_tests() ? 6 : 3;
  Every every(5);
  Flips shared;
  int64_t number = 0;
  int64_t taken = 0;
  for (const Recipe &recipe : flipped_recipes()) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (int64_t ranks = 1; ranks <= 4; ++ranks) {
        ++number;
        if (!every.next()) continue;
        Trial trial = make_trial(recipe, stage, ranks, number);
        taken += flips;
        trial.manner = kept_on_device(trial.manner);
        trial.flips = flips;
        run_world(ranks, [&](const std::shared_ptr<Group> &group) { flip_bits(group, trial, shared); });
        if (HasFailure()) return;
      }
    }
  }
  std::printf("bits flipped: %lld, missed or named wrongly: %lld; found by steps: %lld\n", static_cast<long long>(shared.flips),
              static_cast<long long>(shared.missed), static_cast<long long>(shared.by_step));
  EXPECT_GE(shared.flips, taken * 3 / 4);
  const std::set<int32_t> slots = {ZERO_SLOT_PARAM,         ZERO_SLOT_PARAM_SCALE,  ZERO_SLOT_MASTER,
                                   ZERO_SLOT_AVERAGE,       ZERO_SLOT_UPDATE_COUNT, ZERO_SLOT_FIRST_MOMENT,
                                   ZERO_SLOT_SECOND_MOMENT, ZERO_SLOT_FIRST_SCALE,  ZERO_SLOT_SECOND_SCALE};
  EXPECT_EQ(shared.slots, slots);
}

TEST_F(VerifyOnDevice, FindsNothingWhereNothingChanged) {
  const int64_t models = full_tests() ? 200 : few_tests() ? 4 : 16;
  for (int64_t i = 0; i < models; ++i) {
    const auto seed = static_cast<uint64_t>(i) + 74'001;
    const Model model = random_model_for_devices(seed, i % 4 + 1);
    Manner manner = kept_on_device(random_manner(seed, model.ranks));
    manner.verify_every = i % 3 + 1;
    run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { change_nothing_else(group, model, manner, seed); });
    if (HasFailure()) return;
  }
}

/// One tensor, whose gradient is 1 or infinite.
struct OneTensor {
  static constexpr int64_t kCount = 3000;

  OneTensor(const std::shared_ptr<Group> &group, int64_t verify_every, bool kept) : lent(0, kCount * 4) {
    Model model;
    model.counts = {kCount};
    Manner manner;
    manner.verify_every = verify_every;
    manner.norm = false;
    if (kept) manner = kept_on_device(manner);
    optimizer = make_optimizer(group, model, manner);
    begin_training(*optimizer, model, manner);
  }

  /// With a gradient that is on the device already, so that nobody has to wait for it.
  Status step() { return optimizer->grad_ready(0, lent.data, 0, kCount, lent.stream).ok() ? run_step(lent.stream) : Status(); }
  Status step_from_host(float gradient) {
    const std::vector<float> gradients(kCount, gradient);
    expect_ok(optimizer->grad_ready(0, gradients.data(), 0, kCount), "grad_ready");
    return run_step(nullptr);
  }
  Status run_step(void *stream) { return run_task(*optimizer, optimizer->step(nullptr, stream)); }
  void fill(const std::vector<float> &values) const {
    caller_copy(lent.stream, lent.data, values.data(), kCount * 4, 0);
    caller_wait(lent.stream);
  }

  Lent lent;
  std::shared_ptr<Optimizer> optimizer;
};

/// The device alone knows which steps were skipped, and windows follow the number of those that were not.
TEST_F(VerifyOnDevice, WindowsOpenAsOnTheHost) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const int64_t every : {1, 2, 3, 5}) {
      OneTensor host(group, every, false);
      OneTensor kept(group, every, true);
      int64_t opened = 0;
      for (int64_t step = 0; step < 24; ++step) {
        const float gradient = step * step % 7 == 1 ? std::numeric_limits<float>::infinity() : 1.0F;
        for (OneTensor *each : {&host, &kept}) {
          if (step == 11) expect_ok(each->optimizer->set_i64(ZERO_KEY_STEP_COUNT, 100), "set_i64");
          expect_ok(each->step_from_host(gradient), "step");
        }
        const zero_verify_result wanted = verified(*host.optimizer);
        EXPECT_EQ(verified(*kept.optimizer).shard_nbytes, wanted.shard_nbytes) << "every " << every << " steps, after " << step;
        opened += wanted.shard_nbytes > 0 ? 1 : 0;
      }
      EXPECT_GT(opened, 2);
    }
  });
}

/// After the first step the device does nothing before the host has given it all others; without windows nobody waits.
TEST_F(VerifyOnDevice, NobodyWaitsForStepsThatCompareNothing) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    OneTensor kept(group, 8, true);
    const std::vector<float> ones(OneTensor::kCount, 1.0F);
    kept.fill(ones);
    expect_ok(kept.step(), "step");
    int32_t goes_on = 0;
    caller_hold(kept.lent.stream, &goes_on);
    for (int64_t step = 1; step < 6; ++step) expect_ok(kept.step(), "step");
    __atomic_store_n(&goes_on, 1, __ATOMIC_RELEASE);
    EXPECT_EQ(verified(*kept.optimizer).shard_nbytes, 0);
    expect_ok(kept.step(), "step 7, which takes checksums");
    EXPECT_GT(verified(*kept.optimizer).shard_nbytes, 0);
    expect_ok(kept.step(), "step 8, which compares them");
    EXPECT_EQ(verified(*kept.optimizer).shard_nbytes, 0);
  });
}

TEST_F(VerifyOnDevice, IsNoPartOfGraphs) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    OneTensor kept(group, 2, true);
    kept.fill(std::vector<float>(OneTensor::kCount, 1.0F));
    expect_ok(kept.step(), "step");
    caller_capture_begin(kept.lent.stream);
    zero_verify_result result{};
    const Status verified_there = run_task(*kept.optimizer, kept.optimizer->verify(&result, kept.lent.stream));
    const Status stepped = kept.step();
    void *graph = caller_capture_end(kept.lent.stream);
    EXPECT_NE(graph, nullptr);
    caller_graph_destroy(graph);
    EXPECT_EQ(verified_there.code(), ZERO_E_STATE) << verified_there.text();
    EXPECT_NE(std::strstr(verified_there.text(), "zero_optimizer_verify cannot become part"), nullptr) << verified_there.text();
    EXPECT_EQ(stepped.code(), ZERO_E_UNSUPPORTED) << stepped.text();
    EXPECT_NE(std::strstr(stepped.text(), "ZERO_KEY_VERIFY_EVERY is 2"), nullptr) << stepped.text();
    expect_ok(kept.run_step(nullptr), "step");
    EXPECT_EQ(verified(*kept.optimizer).found, ZERO_FINDING_NONE);
  });
}

/// verify comes after what its stream was given.
TEST_F(VerifyOnDevice, IsOrderedByItsStream) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    OneTensor kept(group, 1, true);
    View view{};
    expect_ok(kept.optimizer->view(0, ZERO_SLOT_FIRST_MOMENT, &view), "view");
    const std::byte changed{1};
    caller_copy(kept.lent.stream, static_cast<std::byte *>(view.data) + 6000, &changed, 1, 20 * kLateUs);
    zero_verify_result result{};
    expect_ok(run_task(*kept.optimizer, kept.optimizer->verify(&result, kept.lent.stream)), "verify");
    EXPECT_EQ(result.found, ZERO_FINDING_SHARD);
    EXPECT_EQ(result.slot, ZERO_SLOT_FIRST_MOMENT);
  });
}

}  // namespace
}  // namespace zero::test::device_verify_test
