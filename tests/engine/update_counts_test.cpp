/// @file ZERO_SLOT_UPDATE_COUNT: which steps count, and the slot as it is listed, read, written and
/// compared.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/untouched.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace zero::test::update_counts_test {
namespace {

class Counts : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, Counts, testing::Range<int64_t>(0, 4));

/// Skipped ones do not, nor do parts of steps without an update.
TEST_P(Counts, StepsThatAreNotAppliedCountNoUpdates) {
  for (const int64_t ranks : {1, 3}) {
    Model model;
    model.ranks = ranks;
    model.counts = {300, 700};
    model.recipe.untouched = true;
    Manner manner;
    manner.stage = GetParam();
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begin_with(group, model, manner, {0, 1});
      const auto expect_counts = [&](int64_t first, int64_t second) {
        EXPECT_EQ(updates_of(*optimizer, 0), first);
        EXPECT_EQ(updates_of(*optimizer, 1), second);
      };
      give(*optimizer, model, 0, 0, 0);
      finish_step(*optimizer, false);
      expect_counts(1, 0);
      std::vector<float> bad(700, 1);
      bad[699] = std::numeric_limits<float>::quiet_NaN();
      give(*optimizer, model, 1, 0, 0);
      expect_ok(optimizer->grad_ready(1, bad.data(), 0, 700), "grad_ready");
      const std::vector<std::byte> before[] = {bytes_of(*optimizer, 0), bytes_of(*optimizer, 1)};
      zero_step_result result{};
      expect_ok(run_task(*optimizer, optimizer->step(&result)), "step");
      EXPECT_EQ(result.skipped, 1);
      expect_counts(1, 0);
      EXPECT_TRUE(before[0] == bytes_of(*optimizer, 0) && before[1] == bytes_of(*optimizer, 1));
      give(*optimizer, model, 2, 1, 1);
      expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
      expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
      expect_counts(1, 0);
      give(*optimizer, model, 3, 1, 1);
      finish_step(*optimizer, true);
      expect_counts(1, 1);
    });
  }
}

/// So a run that was saved without the slot goes on as it did.
TEST_P(Counts, TheStepCountSetsThoseOfAllTensorsAndWritesComeAfter) {
  for (const int64_t ranks : {1, 2, 3}) {
    Model model;
    model.ranks = ranks;
    model.counts = {300, 0, 700, 31};
    model.recipe.untouched = true;
    Manner manner;
    manner.stage = GetParam();
    manner.verify_every = 3;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      std::shared_ptr<Optimizer> early;
      expect_ok(Optimizer::create(group, make_config(model, manner), &early), "create");
      int64_t id = 0;
      expect_ok(early->add_param(nullptr, "w", ZERO_DTYPE_F32, model.counts.data(), 1, &id), "add_param");
      expect_ok(early->set_i64(ZERO_KEY_STEP_COUNT, 9), "set_i64");
      expect_ok(early->seal_queue()->run(early->seal()), "seal");
      EXPECT_EQ(updates_of(*early, 0), 9);

      const auto optimizer = begin_with(group, model, manner, {0, 1, 2, 3});
      Model plain = model;
      plain.recipe.untouched = false;
      const auto before = begin_with(group, plain, manner, {0, 1, 2, 3});
      for (Optimizer *each : {optimizer.get(), before.get()}) expect_ok(each->set_i64(ZERO_KEY_STEP_COUNT, 40), "set_i64");
      for (const int64_t tensor : {0, 2, 3}) EXPECT_EQ(updates_of(*optimizer, tensor), 40);
      // Where every tensor is filled nothing tells one rule from the other.
      for (Optimizer *each : {optimizer.get(), before.get()}) {
        for (const int64_t tensor : {0, 2, 3}) give(*each, model, 0, tensor, tensor);
        finish_step(*each, false);
      }
      for (const int64_t tensor : {0, 2, 3}) EXPECT_EQ(bytes_of(*optimizer, tensor), bytes_of(*before, tensor));
      // The window of the verifier is open: it does not take what is set and written for
      // corruption.
      expect_ok(write_updates(*optimizer, 2, 5, group->rank() == 0 ? 1 : 0), "write");
      expect_same_on_all_ranks(*optimizer);
      give(*optimizer, model, 1, 2, 2);
      finish_step(*optimizer, false);
      EXPECT_EQ(updates_of(*optimizer, 2), 6);
      EXPECT_EQ(updates_of(*optimizer, 0), 41);
      expect_ok(optimizer->set_i64(ZERO_KEY_SKIPPED_COUNT, 7), "set_i64");
      EXPECT_EQ(updates_of(*optimizer, 2), 6);
      for (int64_t step = 0; step < 4; ++step) {
        expect_ok(optimizer->set_i64(ZERO_KEY_STEP_COUNT, 3 + step), "set_i64");
        EXPECT_EQ(updates_of(*optimizer, 2), 3 + step);
        expect_same_on_all_ranks(*optimizer);
        finish_step(*optimizer, false);
        EXPECT_EQ(updates_of(*optimizer, 2), 3 + step);
      }
    });
  }
}

/// One entry per tensor, and no such slot without the key.
TEST_P(Counts, AreListedReadAndWrittenAsOtherSlotsAre) {
  for (const int64_t ranks : {1, 3}) {
    Model model;
    model.ranks = ranks;
    model.counts = {300, 0, 5000, 31, 300};
    model.recipe.frozen_every = 4;
    model.recipe.tied = true;
    Manner manner;
    manner.stage = GetParam();
    manner.source = ZERO_SOURCE_SHARDS;
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto without = begun_optimizer(group, model, manner);
      Model counted = model;
      counted.recipe.untouched = true;
      const auto optimizer = begun_optimizer(group, counted, manner);
      int64_t value = 0;
      for (int64_t id = 0; id < model.tensors(); ++id) {
        std::vector<SlotInfo> slots = slots_of(*optimizer, id);
        const std::vector<SlotInfo> plain = slots_of(*without, id);
        const bool is_empty = model.counts[static_cast<size_t>(id)] == 0;
        if (!model.frozen(id)) {
          EXPECT_EQ(slots.back().number, ZERO_SLOT_UPDATE_COUNT);
          EXPECT_EQ(slots.back().dtype, DType::i64);
          EXPECT_EQ(slots.back().count, is_empty ? 0 : 1);
          slots.pop_back();
          expect_ok(write_updates(*optimizer, id, 10 + id, is_empty || group->rank() != ranks - 1 ? 0 : 1), "write");
        } else {
          EXPECT_EQ(write_updates(*optimizer, id, 1).code(), ZERO_E_UNSUPPORTED);
        }
        EXPECT_EQ(slots.size(), plain.size());
        const Status refused = run_task(*without, without->read(id, ZERO_SLOT_UPDATE_COUNT, 0, &value, 0));
        EXPECT_EQ(refused.code(), ZERO_E_UNSUPPORTED);
        EXPECT_TRUE(contains(refused, "slot is 8, ZERO_SLOT_UPDATE_COUNT, but must be ZERO_SLOT_PARAM (1)")) << refused.text();
      }
      // The last tensor is another name of the first.
      EXPECT_EQ(updates_of(*optimizer, 0), 14);
      EXPECT_EQ(updates_of(*optimizer, 2), 12);
      EXPECT_EQ(updates_of(*optimizer, 4), 14);
      const auto read = [&](int64_t offset, int64_t count) {
        return run_task(*optimizer, optimizer->read(2, ZERO_SLOT_UPDATE_COUNT, offset, &value, count)).code();
      };
      EXPECT_EQ(read(0, 2), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(read(1, 1), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(read(-1, 1), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(read(1, 0), ZERO_OK);
      EXPECT_EQ(write_updates(*optimizer, 2, -1).code(), ZERO_E_INVALID_ARGUMENT);
      EXPECT_EQ(write_updates(*optimizer, 2, (int64_t{1} << 62) + 1).code(), ZERO_E_INVALID_ARGUMENT);
      expect_ok(write_updates(*optimizer, 2, int64_t{1} << 62), "write");
      EXPECT_EQ(updates_of(*optimizer, 2), int64_t{1} << 62);
      int64_t views = 0;
      expect_ok(optimizer->view_count(&views), "view_count");
      for (int64_t index = 0; index < views; ++index) {
        View view{};
        expect_ok(optimizer->view(index, ZERO_SLOT_UPDATE_COUNT, &view), "view");
        std::memcpy(&value, view.data, sizeof value);
        EXPECT_EQ(value, view.param == 0 ? 14 : int64_t{1} << 62) << view.param;
      }
      expect_same_on_all_ranks(*optimizer);
      EXPECT_NE(optimizer->describe().find("update count i64 per tensor"), std::string::npos);
      EXPECT_EQ(without->describe().find("update count"), std::string::npos);
    });
  }
}

/// A caller's own algorithm has the counts too.
TEST_P(Counts, OfAlgorithmCustomCountStepsThatFilledTheTensor) {
  for (const int64_t ranks : {1, 2}) {
    Model model;
    model.ranks = ranks;
    model.counts = {300, 700};
    model.algorithm = "custom";
    model.recipe.untouched = true;
    Manner manner;
    manner.stage = GetParam();
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begin_with(group, model, manner, {0, 1});
      for (int64_t step = 0; step < 6; ++step) {
        give(*optimizer, model, step, 0, 0);
        if (step % 3 == 2 && group->rank() == ranks - 1) give(*optimizer, model, step, 1, 1);
        expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
        expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
      }
      EXPECT_EQ(updates_of(*optimizer, 0), 6);
      EXPECT_EQ(updates_of(*optimizer, 1), 2);
    });
  }
}

/// One rank sets the value that the others have counted: step counts agree, counts of tensors do
/// not.
TEST_P(Counts, AStepCountThatOneRankSetsIsAMismatch) {
  Model model;
  model.ranks = 2;
  model.counts = {300, 31};
  model.recipe.untouched = true;
  for (const bool alike : {false, true}) {
    Manner manner;
    manner.stage = GetParam();
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begin_with(group, model, manner, {0, 1});
      for (int64_t step = 0; step < 3; ++step) {
        give(*optimizer, model, step, 0, 0);
        finish_step(*optimizer, false);
      }
      if (alike || group->rank() == 1) expect_ok(optimizer->set_i64(ZERO_KEY_STEP_COUNT, 3), "set_i64");
      give(*optimizer, model, 3, 1, 1);
      const Status status = run_task(*optimizer, optimizer->step(nullptr));
      EXPECT_EQ(status.code(), alike ? ZERO_OK : ZERO_E_MISMATCH) << status.text();
      EXPECT_TRUE(alike || (contains(status, "rank 1 has update count 3 of \"p1\"") && contains(status, "rank 0 has update count 0 of \"p1\"")))
          << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::test::update_counts_test
