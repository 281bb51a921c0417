/// @file The order of an optimizer's calls, its arguments, and seal's agreement.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

namespace zero::test::phases_test {
namespace {

std::shared_ptr<Optimizer> bare_optimizer(const std::shared_ptr<Group> &group, const Config &config = {}) {
  std::shared_ptr<Optimizer> optimizer;
  const Status status = Optimizer::create(group, config, &optimizer);
  EXPECT_TRUE(status.ok()) << status.text();
  return optimizer;
}

int32_t add(Optimizer &optimizer, const char *name, std::vector<int64_t> shape) {
  int64_t id = -1;
  return optimizer.add_param(nullptr, name, ZERO_DTYPE_F32, shape.data(), static_cast<int64_t>(shape.size()), &id).code();
}

/// The call was refused, and its text says which call comes first, or must come first.
testing::AssertionResult out_of_order(const Status &status, const char *text) {
  if (status.code() == ZERO_E_STATE && std::strstr(status.text(), text) != nullptr) return testing::AssertionSuccess();
  return testing::AssertionFailure() << status_name(status.code()) << ": " << status.text() << "; expected: " << text;
}

TEST(Phases, CallsBeforeSealNameWhatIsMissing) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    EXPECT_EQ(add(*optimizer, "a", {3}), ZERO_OK);
    void *data = nullptr;
    int64_t number = 0;
    View view{};
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->begin(0)), "zero_optimizer_begin comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)),
                             "zero_optimizer_param_acquire comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->step(nullptr)), "comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->gather()), "zero_optimizer_gather comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, nullptr, 0)),
                             "zero_optimizer_read comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(optimizer->param_release(0), "zero_optimizer_param_release comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->apply()), "zero_optimizer_apply comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(optimizer->view_count(&number), "zero_optimizer_view_count comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(optimizer->view(0, ZERO_SLOT_PARAM, &view), "zero_optimizer_view comes after zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(optimizer->grad_acquire(0, &data, &number), "zero_optimizer_grad_acquire comes after zero_optimizer_seal"));
    EXPECT_NE(optimizer->describe().find("not sealed"), std::string::npos);
  });
}

TEST(Phases, CallsAfterSealBeginAndReduceNameWhatIsMissing) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    EXPECT_EQ(add(*optimizer, "a", {3}), ZERO_OK);
    ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
    EXPECT_TRUE(out_of_order(group->queue()->run(optimizer->seal()), "zero_optimizer_seal was called already"));
    int64_t id = -1;
    EXPECT_TRUE(out_of_order(optimizer->add_param(nullptr, "b", ZERO_DTYPE_F32, nullptr, 0, &id),
                             "zero_optimizer_add_param must come before zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(optimizer->set_order(nullptr, 0), "zero_optimizer_set_order must come before zero_optimizer_seal"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->step(nullptr)), "comes after zero_optimizer_begin"));
    EXPECT_TRUE(out_of_order(optimizer->param_release(0), "zero_optimizer_param_acquire comes first"));
    void *data = nullptr;
    ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)).ok());
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)), "zero_optimizer_param_release comes before begin"));
    ASSERT_TRUE(optimizer->param_release(0).ok());
    ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)).ok());

    const float grad[3] = {1, 2, 3};
    int64_t accumulate = -1;
    EXPECT_TRUE(out_of_order(optimizer->grad_ready(0, nullptr, 0, 3), "call zero_optimizer_grad_acquire first"));
    EXPECT_EQ(optimizer->grad_ready(0, grad, 2, 2).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->grad_ready(0, grad, -1, 2).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->grad_ready(1, grad, 0, 1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_TRUE(out_of_order(optimizer->set_weight(1), "weights are only used with ZERO_KEY_DIVISOR"));
    ASSERT_TRUE(optimizer->grad_acquire(0, &data, &accumulate).ok());
    EXPECT_EQ(accumulate, 0);
    ASSERT_TRUE(optimizer->grad_acquire(0, &data, &accumulate).ok());
    EXPECT_EQ(accumulate, 1);
    ASSERT_TRUE(optimizer->grad_ready(0, grad, 0, 1).ok());
    EXPECT_TRUE(out_of_order(optimizer->grad_ready(0, grad, 0, 3), "ready already in this step"));
    ASSERT_TRUE(optimizer->grad_ready(0, nullptr, 1, 2).ok());
    EXPECT_TRUE(out_of_order(optimizer->grad_acquire(0, &data, &accumulate), "is ready already; the step comes next"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)), "zero_optimizer_step comes before begin"));

    ASSERT_TRUE(run_task(*optimizer, optimizer->reduce(nullptr)).ok());
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->step(nullptr)), "must wait until zero_optimizer_gather has ended the step"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)),
                             "zero_optimizer_param_acquire must wait until zero_optimizer_gather has ended the step"));
    EXPECT_TRUE(out_of_order(optimizer->grad_ready(0, grad, 0, 3),
                             "zero_optimizer_grad_ready must wait until zero_optimizer_gather has ended the step"));
    EXPECT_TRUE(out_of_order(optimizer->set_i64(ZERO_KEY_STEP_COUNT, 4),
                             "zero_optimizer_set_i64 must wait until zero_optimizer_gather has ended the step"));
    EXPECT_TRUE(out_of_order(optimizer->set_f64(0, ZERO_KEY_LR, 0.5),
                             "zero_optimizer_set_f64 must wait until zero_optimizer_gather has ended the step"));
    ASSERT_TRUE(run_task(*optimizer, optimizer->gather()).ok());
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->gather()), "zero_optimizer_gather comes after zero_optimizer_reduce"));
    EXPECT_TRUE(out_of_order(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_GRAD, 0, nullptr, 0)),
                             "can be read between zero_optimizer_reduce and zero_optimizer_gather"));
    EXPECT_EQ(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_GRAD, 0, nullptr, 0)).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(run_task(*optimizer, optimizer->read(0, 99, 0, nullptr, 0)).code(), ZERO_E_UNSUPPORTED);
  });
}

TEST(Phases, NothingIsAcquiredInAStepOfStage3AlsoInAWorldOfOne) {
  for (const int64_t stage : {1, 2, 3}) {
    for (const int64_t ranks : {1, 2}) {
      run_world(ranks, [stage](const std::shared_ptr<Group> &group) {
        Config config;
        ASSERT_TRUE(config.set_i64(ZERO_KEY_STAGE, stage).ok());
        const auto optimizer = bare_optimizer(group, config);
        EXPECT_EQ(add(*optimizer, "a", {300}), ZERO_OK);
        ASSERT_TRUE(run_task(*optimizer, optimizer->seal()).ok());
        ASSERT_TRUE(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).ok());
        void *data = nullptr;
        ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &data)).ok());
        EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), stage == 3 ? ZERO_E_STATE : ZERO_OK);
        ASSERT_TRUE(optimizer->param_release(0).ok());
        EXPECT_TRUE(run_task(*optimizer, optimizer->step(nullptr)).ok());
      });
    }
  }
}

TEST(Phases, ParametersAndKeysAreChecked) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    int64_t id = -1;
    const int64_t huge[3] = {int64_t{1} << 40, int64_t{1} << 40, 0};
    EXPECT_EQ(add(*optimizer, "", {3}), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add(*optimizer, std::string(256, 'x').c_str(), {3}), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add(*optimizer, "negative", {3, -1}), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->add_param(nullptr, "huge", ZERO_DTYPE_F32, huge, 2, &id).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->add_param(nullptr, "none", ZERO_DTYPE_F32, huge, 3, &id).code(), ZERO_OK);
    EXPECT_EQ(optimizer->add_param(nullptr, "scalar", ZERO_DTYPE_F32, nullptr, 0, &id).code(), ZERO_OK);
    EXPECT_EQ(id, 1);
    EXPECT_EQ(optimizer->add_param(nullptr, "many", ZERO_DTYPE_F32, huge, 17, &id).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->add_param(nullptr, "null", ZERO_DTYPE_F32, nullptr, 1, &id).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->add_param(nullptr, nullptr, ZERO_DTYPE_F32, nullptr, 0, &id).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->add_param(nullptr, "double", ZERO_DTYPE_F64, nullptr, 0, &id).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(optimizer->add_param(nullptr, "what", 77, nullptr, 0, &id).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add(*optimizer, "scalar", {3}), ZERO_E_INVALID_ARGUMENT);
    for (const std::vector<int64_t> &order : {std::vector<int64_t>{0}, {0, 0}, {0, 2}, {0, 1, 1}}) {
      EXPECT_EQ(optimizer->set_order(order.data(), static_cast<int64_t>(order.size())).code(), ZERO_E_INVALID_ARGUMENT);
    }
    const auto refuses = [&](int32_t key, int32_t code, const char *text) {
      Config config;
      EXPECT_TRUE(config.set_i64(key, 0).ok());
      EXPECT_TRUE(config.set_i64(ZERO_KEY_TIED_TO, 0).ok());
      const Status status = optimizer->add_param(&config, "other", ZERO_DTYPE_F32, nullptr, 0, &id);
      EXPECT_EQ(status.code(), code) << status.text();
      EXPECT_NE(std::strstr(status.text(), text), nullptr) << status.text();
    };
    refuses(ZERO_KEY_STAGE, ZERO_E_UNSUPPORTED, "ZERO_KEY_STAGE is no key of a single parameter");
    for (const int32_t key : {ZERO_KEY_SET, ZERO_KEY_FROZEN, ZERO_KEY_GRAD_DTYPE, ZERO_KEY_MASTER, ZERO_KEY_REPLICATED}) {
      refuses(key, ZERO_E_INVALID_ARGUMENT, "is set together with ZERO_KEY_TIED_TO");
    }
    EXPECT_EQ(id, 1);
    Config of_set;
    ASSERT_TRUE(of_set.set_i64(ZERO_KEY_FROZEN, 1).ok());
    const Status foreign = optimizer->add_set(of_set, &id);
    EXPECT_EQ(foreign.code(), ZERO_E_UNSUPPORTED);
    EXPECT_NE(std::strstr(foreign.text(), "ZERO_KEY_FROZEN is no key of a parameter set"), nullptr) << foreign.text();
    EXPECT_EQ(id, 1);
    double value = 0;
    EXPECT_EQ(optimizer->set_f64(1, ZERO_KEY_LR, 1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->set_f64(0, ZERO_KEY_MOMENTUM, 0.5).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(optimizer->set_f64(0, ZERO_KEY_STAGE, 1).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(optimizer->set_f64(0, ZERO_KEY_BETA1, 1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_TRUE(optimizer->set_f64(0, ZERO_KEY_BETA1, 0.5).ok());
    EXPECT_TRUE(optimizer->get_f64(0, ZERO_KEY_BETA1, &value).ok());
    EXPECT_EQ(value, 0.5);
    EXPECT_TRUE(optimizer->get_f64(0, ZERO_KEY_WEIGHT_DECAY, &value).ok());
    EXPECT_EQ(value, 0.01);
    int64_t steps = -1;
    EXPECT_EQ(optimizer->get_i64(ZERO_KEY_STAGE, &steps).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(optimizer->set_i64(ZERO_KEY_STEP_COUNT, -1).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_TRUE(optimizer->set_i64(ZERO_KEY_STEP_COUNT, 5).ok());
    EXPECT_TRUE(optimizer->get_i64(ZERO_KEY_STEP_COUNT, &steps).ok());
    EXPECT_EQ(steps, 5);
  });
}

TEST(Phases, ConfigsThatMakeNoSenseAreRefused) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Optimizer> optimizer;
    Config unknown;
    ASSERT_TRUE(unknown.set_str(ZERO_KEY_ALGORITHM, "tiger").ok());
    EXPECT_EQ(Optimizer::create(group, unknown, &optimizer).code(), ZERO_E_UNSUPPORTED);
    Config slots;
    ASSERT_TRUE(slots.set_i64(ZERO_KEY_CUSTOM_SLOTS, 2).ok());
    EXPECT_EQ(Optimizer::create(group, slots, &optimizer).code(), ZERO_E_INVALID_ARGUMENT);
    Config nesterov;
    ASSERT_TRUE(nesterov.set_str(ZERO_KEY_ALGORITHM, "sgd").ok());
    ASSERT_TRUE(nesterov.set_f64(ZERO_KEY_NESTEROV, 1).ok());
    EXPECT_EQ(Optimizer::create(group, nesterov, &optimizer).code(), ZERO_E_INVALID_ARGUMENT);
    Config momentum;
    ASSERT_TRUE(momentum.set_f64(ZERO_KEY_MOMENTUM, 0.9).ok());
    EXPECT_EQ(Optimizer::create(group, momentum, &optimizer).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(optimizer, nullptr);
    Config sgd;
    ASSERT_TRUE(sgd.set_str(ZERO_KEY_ALGORITHM, "sgd").ok());
    ASSERT_TRUE(Optimizer::create(group, sgd, &optimizer).ok());
    EXPECT_EQ(add(*optimizer, "a", {3}), ZERO_OK);
    ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
    EXPECT_EQ(optimizer->set_f64(0, ZERO_KEY_MOMENTUM, 0.5).code(), ZERO_E_STATE);
  });
}

TEST(Seal, CallsAreRefusedUntilItHasEnded) {
  std::atomic<bool> tried{false};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    EXPECT_EQ(add(*optimizer, "a", {3}), ZERO_OK);
    if (group->rank() == 1) {
      while (!tried) std::this_thread::yield();
    }
    const auto seal = group->queue()->submit(optimizer->seal());
    group->queue()->progress();
    if (group->rank() == 0) {
      EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).code(), ZERO_E_STATE);
      EXPECT_EQ(add(*optimizer, "b", {3}), ZERO_E_STATE);
      EXPECT_FALSE(seal->done());
      tried = true;
    }
    EXPECT_TRUE(group->queue()->wait(seal).ok());
  });
}

TEST(Seal, AnOrderThatLacksParametersIsRefused) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    const int64_t order[] = {0, 1};
    EXPECT_EQ(add(*optimizer, "a", {3}), ZERO_OK);
    EXPECT_TRUE(optimizer->set_order(order, 1).ok());
    EXPECT_EQ(add(*optimizer, "b", {3}), ZERO_OK);
    const Status status = group->queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_STATE);
    EXPECT_NE(std::strstr(status.text(), "the order of 1 parameter, but the optimizer has 2 now"), nullptr) << status.text();
    EXPECT_TRUE(optimizer->set_order(order, 2).ok());
    EXPECT_TRUE(group->queue()->run(optimizer->seal()).ok());
  });
}

TEST(Sets, KeepToTheKindOfTheirOptimizer) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const char *kind : {"custom", "none", "adamw"}) {
      Config config;
      ASSERT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, kind).ok());
      const auto optimizer = bare_optimizer(group, config);
      for (const char *other : {"custom", "none", "sgd"}) {
        Config of_set;
        ASSERT_TRUE(of_set.set_str(ZERO_KEY_ALGORITHM, other).ok());
        int64_t set = 0;
        const bool fits = std::strcmp(kind, other) == 0 || (std::strcmp(kind, "adamw") == 0 && std::strcmp(other, "sgd") == 0);
        EXPECT_EQ(optimizer->add_set(of_set, &set).code(), fits ? ZERO_OK : ZERO_E_UNSUPPORTED) << kind << " " << other;
      }
    }
  });
}

TEST(Seal, NamesTheFirstDifferenceOnEveryRank) {
  run_world(3, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    EXPECT_EQ(add(*optimizer, "same", {2}), ZERO_OK);
    EXPECT_EQ(add(*optimizer, "fc1.weight", {10, group->rank() == 1 ? 3 : 4}), ZERO_OK);
    const Status status = group->queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_NE(
        std::strstr(status.text(), "rank 1 has parameter 1 \"fc1.weight\" f32[10, 3], rank 0 has parameter 1 \"fc1.weight\" f32[10, 4]"),
        nullptr)
        << status.text();
  });
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const auto optimizer = bare_optimizer(group);
    EXPECT_EQ(add(*optimizer, "a", {2}), ZERO_OK);
    if (group->rank() == 1) {
      EXPECT_EQ(add(*optimizer, "b", {2}), ZERO_OK);
    }
    EXPECT_EQ(group->queue()->run(optimizer->seal()).code(), ZERO_E_MISMATCH);
  });
}

TEST(Seal, SettingsThatDifferALittleAreFound) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Config clips;
    ASSERT_TRUE(clips.set_f64(ZERO_KEY_CLIP_VALUE, group->rank() == 0 ? 1 : 1 + 0x1p-52).ok());
    Config overlaps;
    ASSERT_TRUE(overlaps.set_i64(ZERO_KEY_PREFETCH_BYTES, 0).ok());
    ASSERT_TRUE(overlaps.set_i64(ZERO_KEY_OVERLAP, group->rank()).ok());
    for (const Config &config : {clips, overlaps}) {
      const char *key = config.is_set(ZERO_KEY_OVERLAP) ? "rank 1 has ZERO_KEY_OVERLAP = 1, rank 0 has ZERO_KEY_OVERLAP = 0"
                                                        : "rank 0 has ZERO_KEY_CLIP_VALUE = 1";
      std::shared_ptr<Group> copy;
      ASSERT_TRUE(group->queue()->run(split(*group, 0, group->rank(), &copy)).ok());
      const auto optimizer = bare_optimizer(copy, config);
      EXPECT_EQ(add(*optimizer, "a", {2}), ZERO_OK);
      const Status status = copy->queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
      EXPECT_NE(std::strstr(status.text(), key), nullptr) << status.text();
    }
  });
}

TEST(Seal, OneRankWithoutMemoryIsAnErrorOnAll) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Config config;
    if (group->rank() == 1) {
      config.hook.alloc = [](uint64_t, uint64_t, void *) -> void * { return nullptr; };
      config.hook.free = [](void *, uint64_t, void *) {};
    }
    const auto optimizer = bare_optimizer(group, config);
    EXPECT_EQ(add(*optimizer, "a", {2000}), ZERO_OK);
    const Status status = group->queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), group->rank() == 1 ? ZERO_E_OUT_OF_MEMORY : ZERO_E_PEER_FAILED) << status.text();
  });
}

TEST(Phases, AnOptimizerThatFailedSaysSo) {
  Model model;
  model.ranks = 2;
  model.counts = {400};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, Manner());
    group->fail(Status::error(ZERO_E_ABORTED, "stopped by the test"));
    EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_ABORTED);
    int64_t count = 0;
    for (const Status &later : {optimizer->slot_count(0, &count), run_task(*optimizer, optimizer->step(nullptr))}) {
      EXPECT_EQ(later.code(), ZERO_E_ABORTED);
      EXPECT_EQ(std::string(later.text()).find("this optimizer has failed before and can only be released: "), 0U) << later.text();
    }
  });
}

TEST(Phases, KeysOfSingleParametersAreNotForAll) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const int32_t key : {ZERO_KEY_SET, ZERO_KEY_FROZEN, ZERO_KEY_REPLICATED, ZERO_KEY_TIED_TO}) {
      Config config;
      ASSERT_TRUE(config.set_i64(key, 0).ok());
      std::shared_ptr<Optimizer> optimizer;
      const Status status = Optimizer::create(group, config, &optimizer);
      EXPECT_EQ(status.code(), ZERO_E_UNSUPPORTED);
      EXPECT_NE(std::strstr(status.text(), "is a key of single parameters"), nullptr) << status.text();
    }
  });
}

TEST(Timeout, NamesTheCallAndWhatTheOtherRankDidLast) {
  Model model;
  model.ranks = 2;
  model.counts = {400};
  std::atomic<bool> failed{false};
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, Manner());
    float value = 0;
    ASSERT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_PARAM, 0, &value, 1)).ok());
    if (group->rank() == 1) {
      while (!failed) std::this_thread::yield();
      return;
    }
    group->set_deadline_ms(50);
    zero_verify_result verified{};
    const Status status = run_task(*optimizer, optimizer->verify(&verified));
    failed = true;
    EXPECT_EQ(status.code(), ZERO_E_TIMEOUT);
    EXPECT_NE(std::strstr(status.text(), " zero_optimizer_verify: rank 1 "), nullptr) << status.text();
    EXPECT_NE(std::strstr(status.text(), "zero_optimizer_read and is in no collective of this group"), nullptr) << status.text();
  });
}

TEST(AcquiredParams, HaveTheSameAddressAgain) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    Model model;
    model.ranks = 2;
    model.counts = {0, 400};
    Manner manner;
    manner.stage = stage;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun_optimizer(group, model, manner);
      void *first = nullptr;
      void *again = nullptr;
      std::vector<float> copy(400);
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(1, nullptr, 0, &first)).ok());
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(1, nullptr, 0, &again)).ok());
      EXPECT_EQ(first, again);
      EXPECT_EQ(run_task(*optimizer, optimizer->param_acquire(1, copy.data(), 399, &again)).code(), ZERO_E_INVALID_ARGUMENT);
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(1, copy.data(), 400, &again)).ok());
      EXPECT_EQ(std::memcmp(copy.data(), first, 1600), 0);
      EXPECT_EQ(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)).code(), ZERO_E_STATE);
      if (stage == 3) {
        EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_STATE);
      }
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(optimizer->param_release(1).ok());
      EXPECT_EQ(optimizer->param_release(1).code(), ZERO_E_STATE);
      ASSERT_TRUE(run_task(*optimizer, optimizer->param_acquire(0, nullptr, 0, &again)).ok());
      EXPECT_EQ(again, nullptr);
      ASSERT_TRUE(optimizer->param_release(0).ok());
    });
  }
}

}  // namespace
}  // namespace zero::test::phases_test
