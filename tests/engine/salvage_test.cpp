/// @file What a rank still reads after others were lost: its own shards, and parameters that it holds whole, as they were after the last step
/// that ended; an error where a step had begun to change them.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/stumbling_transport.h"
#include "tests/engine/training.h"
#include "tests/group/thread_ranks.h"
#include "tests/status_text.h"

#include "group/collectives.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

namespace zero::test::salvage_test {
namespace {

constexpr int32_t kSlots[] = {ZERO_SLOT_PARAM, ZERO_SLOT_FIRST_MOMENT, ZERO_SLOT_SECOND_MOMENT};

struct Setting {
  int64_t stage;
  bool overlap;
  int64_t per_host;  ///< ranks of a host; 0: all share one
  bool one_copy = false;
  int64_t param_ranks = 0;
};

std::string name_of(const testing::TestParamInfo<Setting> &info) {
  const Setting &setting = info.param;
  return "Stage" + std::to_string(setting.stage) + (setting.overlap ? "Overlap" : "") + (setting.per_host > 0 ? "Hosts" : "") +
         (setting.one_copy ? "OneCopy" : "") + (setting.param_ranks > 0 ? "ParamsOver" + std::to_string(setting.param_ranks) : "");
}

Model model_of(const Setting &setting) {
  Model model;
  model.ranks = setting.per_host > 0 ? 4 : 3;
  model.counts = {3000, 40, 0, 2500, 5000};
  return model;
}

Manner manner_of(const Setting &setting) {
  Manner manner;
  manner.stage = setting.stage;
  manner.overlap = setting.overlap;
  manner.one_copy = setting.one_copy;
  manner.param_ranks = setting.param_ranks;
  manner.bucket_nbytes = 8192;
  return manner;
}

/// A piece of a slot that lies on this rank.
struct Piece {
  View view;
  int32_t slot;
  std::vector<float> values;
};

/// Through views, which need no other rank.
std::vector<Piece> own_pieces(Optimizer &optimizer, int64_t views) {
  std::vector<Piece> pieces;
  for (int64_t i = 0; i < views; ++i) {
    for (const int32_t slot : kSlots) {
      View view{};
      expect_ok(optimizer.view(i, slot, &view), "view");
      const auto *values = static_cast<const float *>(view.data);
      pieces.push_back({view, slot, std::vector<float>(values, values + view.count)});
    }
  }
  return pieces;
}

/// What a rank had while all were there.
struct Held {
  int64_t views = 0;
  std::vector<Piece> pieces;
  std::vector<std::vector<float>> whole;  ///< by parameter
};

Held hold(Optimizer &optimizer, const Model &model) {
  Held held;
  expect_ok(optimizer.view_count(&held.views), "view_count");
  held.pieces = own_pieces(optimizer, held.views);
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    std::vector<float> values(static_cast<size_t>(count));
    void *data = nullptr;
    expect_ok(run_task(optimizer, optimizer.param_acquire(id, values.data(), count, &data)), "param_acquire");
    expect_ok(optimizer.param_release(id), "param_release");
    held.whole.push_back(std::move(values));
  }
  // Parameters of other ranks than the one that leaves next may still be under way.
  expect_ok(optimizer.group()->queue()->run(barrier(*optimizer.group())), "barrier");
  return held;
}

bool same(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

Status read_piece(Optimizer &optimizer, const Piece &piece, std::vector<float> *out) {
  out->assign(piece.values.size(), 0);
  return run_task(optimizer, optimizer.read(piece.view.param, piece.slot, piece.view.offset, out->data(), piece.view.count));
}

/// Views, reads and acquires return what was held, and go on doing so while peers may still run.
void expect_salvages(Optimizer &optimizer, const Model &model, const Setting &setting, const Held &held) {
  for (int look = 0; look < 2; ++look) {
    const std::vector<Piece> now = own_pieces(optimizer, held.views);
    for (size_t i = 0; i < now.size(); ++i) {
      EXPECT_TRUE(same(now[i].values, held.pieces[i].values)) << "view of slot " << now[i].slot;
      std::vector<float> read;
      expect_ok(read_piece(optimizer, held.pieces[i], &read), "read");
      EXPECT_TRUE(same(read, held.pieces[i].values)) << "read of slot " << now[i].slot;
    }
    for (int64_t id = 0; id < model.tensors(); ++id) {
      const std::vector<float> &expected = held.whole[static_cast<size_t>(id)];
      void *data = nullptr;
      const Status acquired = run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data));
      if (setting.stage == 3 && !expected.empty()) {
        EXPECT_TRUE(poisons_group(acquired.code())) << acquired.text();
        continue;
      }
      expect_ok(acquired, "param_acquire");
      const auto *values = static_cast<const float *>(data);
      EXPECT_TRUE(same({values, values + expected.size()}, expected)) << "parameter " << id;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void expect_half_applied(const Status &status) {
  EXPECT_EQ(status.code(), ZERO_E_CORRUPT) << status.text();
  EXPECT_TRUE(contains(status, "the step was half applied")) << status.text();
  EXPECT_TRUE(contains(status, "load a save")) << status.text();
}

void expect_none_salvaged(Optimizer &optimizer, const Setting &setting, const Held &held) {
  View view{};
  void *data = nullptr;
  std::vector<float> read;
  expect_half_applied(optimizer.view(0, ZERO_SLOT_PARAM, &view));
  expect_half_applied(read_piece(optimizer, held.pieces.front(), &read));
  if (setting.stage < 3) expect_half_applied(run_task(optimizer, optimizer.param_acquire(0, nullptr, 0, &data)));
}

/// All that needs other ranks, and all else.
void expect_others_fail(Optimizer &optimizer) {
  int64_t count = 0;
  float value = 0;
  zero_verify_result verified{};
  for (const Status &status :
       {optimizer.view_count(&count), optimizer.slot_count(0, &count), optimizer.param_release(0),
        optimizer.grad_ready(0, &value, 0, 1), run_task(optimizer, optimizer.step(nullptr)), run_task(optimizer, optimizer.gather()),
        run_task(optimizer, optimizer.verify(&verified)), run_task(optimizer, optimizer.begin(ZERO_SOURCE_SHARDS)),
        run_task(optimizer, optimizer.write(0, ZERO_SLOT_PARAM, 0, &value, 1)),
        run_task(optimizer, optimizer.read(0, ZERO_SLOT_PARAM, 0, &value, 0))}) {
    EXPECT_TRUE(poisons_group(status.code())) << status.text();
    EXPECT_TRUE(contains(status, "this optimizer has failed before")) << status.text();
  }
}

/// Runs body(optimizer, held, leaves) after one step, on each rank; the last is the one that leaves.
template <class Body>
void run_setting(const Setting &setting, Body &&body) {
  const Model model = model_of(setting);
  run_hosts(model.ranks, setting.per_host, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner_of(setting));
    (void)train_step(*optimizer, model, manner_of(setting), 0);
    const Held held = hold(*optimizer, model);
    body(*optimizer, held, group->rank() == model.ranks - 1);
  });
}

class Salvage : public testing::TestWithParam<Setting> {
 protected:
  const Setting setting_ = GetParam();
  const Model model_ = model_of(setting_);
  const Manner manner_ = manner_of(setting_);

  void give(Optimizer &optimizer, int64_t step) const { give_gradients(optimizer, model_, manner_, step); }
  /// Until an error.
  Status try_step(Optimizer &optimizer) const {
    const std::vector<float> gradient(5000, 0.5F);
    for (int64_t id = model_.tensors() - 1; id >= 0; --id) {
      ZERO_TRY(optimizer.grad_ready(id, gradient.data(), 0, model_.counts[static_cast<size_t>(id)]));
    }
    return run_task(optimizer, optimizer.step(nullptr));
  }
  /// A collective that finds the loss, in any phase: all of a slot, of which other ranks hold parts, but for stage 0.
  Status find_loss(Optimizer &optimizer) const {
    std::vector<float> all(3000);
    const Status status = run_task(optimizer, optimizer.read(0, ZERO_SLOT_FIRST_MOMENT, 0, all.data(), 3000));
    EXPECT_EQ(status.code(), setting_.stage == 0 ? status.code() : ZERO_E_PEER_LEFT) << status.text();
    return status;
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, Salvage,
                         testing::Values(Setting{0, false, 0}, Setting{1, false, 0}, Setting{2, false, 0}, Setting{3, false, 0},
                                         Setting{0, true, 0}, Setting{1, true, 0}, Setting{2, true, 0}, Setting{3, true, 0},
                                         Setting{0, false, 2}, Setting{1, false, 2}, Setting{2, false, 2}, Setting{3, true, 2},
                                         Setting{1, false, 0, true}, Setting{2, true, 0, true}, Setting{3, false, 0, false, 1},
                                         Setting{3, true, 2, false, 2}),
                         name_of);

TEST_P(Salvage, ReturnsTheLastStepWhenARankLeftBeforeTheNext) {
  run_setting(setting_, [&](Optimizer &optimizer, const Held &held, bool leaves) {
    if (leaves) return;
    EXPECT_EQ(try_step(optimizer).code(), ZERO_E_PEER_LEFT);
    expect_salvages(optimizer, model_, setting_, held);
    expect_others_fail(optimizer);
  });
}

/// All gradients of the rank that leaves arrive, so that with overlap the others wait for it in the vote, where some might have passed.
TEST_P(Salvage, ReturnsTheLastStepWhenARankLeftWithinTheStepBeforeTheVote) {
  run_setting(setting_, [&](Optimizer &optimizer, const Held &held, bool leaves) {
    if (leaves) {
      give(optimizer, 1);
      return std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(try_step(optimizer).code(), ZERO_E_PEER_LEFT);
    expect_salvages(optimizer, model_, setting_, held);
  });
}

TEST_P(Salvage, ReturnsTheLastStepAndGradientsWhenARankLeftAfterReduce) {
  run_setting(setting_, [&](Optimizer &optimizer, const Held &held, bool leaves) {
    give(optimizer, 1);
    ASSERT_TRUE(run_task(optimizer, optimizer.reduce(nullptr)).ok());
    View before{};
    ASSERT_TRUE(optimizer.view(0, ZERO_SLOT_GRAD, &before).ok());
    const auto *gradients = static_cast<const float *>(before.data);
    const Piece expected{before, ZERO_SLOT_GRAD, std::vector<float>(gradients, gradients + before.count)};
    if (leaves) return;
    std::vector<float> read;
    EXPECT_EQ(find_loss(optimizer).ok(), setting_.stage == 0);
    expect_salvages(optimizer, model_, setting_, held);
    expect_ok(read_piece(optimizer, expected, &read), "read");
    EXPECT_TRUE(same(read, expected.values));
    expect_others_fail(optimizer);
  });
}

TEST_P(Salvage, ReturnsTheNewStepWhenARankLeftAfterIt) {
  run_setting(setting_, [&](Optimizer &optimizer, const Held &before, bool leaves) {
    (void)train_step(optimizer, model_, manner_, 1);
    const Held held = hold(optimizer, model_);
    EXPECT_FALSE(same(held.pieces.front().values, before.pieces.front().values));
    if (leaves) return;
    EXPECT_EQ(try_step(optimizer).code(), ZERO_E_PEER_LEFT);
    expect_salvages(optimizer, model_, setting_, held);
  });
}

TEST_P(Salvage, SaysThatTheStepWasHalfAppliedWhenARankLeftBehindTheUpdate) {
  std::barrier all(model_.ranks);
  run_setting(setting_, [&](Optimizer &optimizer, const Held &held, bool leaves) {
    give(optimizer, 1);
    ASSERT_TRUE(run_task(optimizer, optimizer.reduce(nullptr)).ok());
    const Status applied = run_task(optimizer, optimizer.apply());
    all.arrive_and_wait();  // an update of the one copy fails on ranks that come to it after the loss
    ASSERT_TRUE(applied.ok()) << applied.text();
    if (leaves) return;
    const Status found = find_loss(optimizer);
    if (setting_.stage == 0) expect_half_applied(found);
    expect_none_salvaged(optimizer, setting_, held);
    expect_others_fail(optimizer);
  });
}

/// Two ranks of which rank 1 gives up in the vote of its second step, which rank 0 passes. body(optimizer, held, step's error).
template <class Body>
void run_stumble(const Setting &setting, Stumble &stumble, Body &&body) {
  Model model = model_of(setting);
  model.ranks = 2;
  const std::string name = meeting_name();
  run_thread_ranks(2, [&](int64_t rank) {
    OperationQueue queue;
    std::shared_ptr<Transport> local;
    ASSERT_TRUE(queue.run(connect_local(name, rank, 2, {60'000, 65'536}, &local)).ok());
    const auto group =
        std::make_shared<Group>(std::make_shared<StumblingTransport>(local, stumble), std::make_shared<HostReducer>(1), 60'000);
    const auto optimizer = begun_optimizer(group, model, manner_of(setting));
    (void)train_step(*optimizer, model, manner_of(setting), 0);
    const Held held = hold(*optimizer, model);
    ASSERT_TRUE(queue.run(barrier(*group)).ok());
    stumble.armed = true;
    ASSERT_TRUE(queue.run(barrier(*group)).ok());
    give_gradients(*optimizer, model, manner_of(setting), 1);
    const Status failed = run_task(*optimizer, optimizer->step(nullptr));
    EXPECT_EQ(failed.code(), ZERO_E_TIMEOUT) << failed.text();
    if (rank == stumble.gives_up) stumble.gave_up = true;
    body(*optimizer, model, held);
    ASSERT_TRUE(queue.run(barrier(*group)).ok());
  });
}

TEST(SalvageVote, APeerThatPassedTheVoteWritesNothingOnceTheRankHasGivenUp) {
  for (const Setting &setting : {Setting{0, true, 0}, Setting{1, true, 0}, Setting{2, true, 0}, Setting{1, true, 0, true}}) {
    Stumble stumble;
    run_stumble(setting, stumble,
                [&](Optimizer &optimizer, const Model &model, const Held &held) { expect_salvages(optimizer, model, setting, held); });
    EXPECT_TRUE(stumble.at_the_door);
    EXPECT_FALSE(stumble.entered);
  }
}

TEST(SalvageVote, ARankThatGivesUpKnowsThatAPeerHasBegunToWrite) {
  for (const Setting &setting : {Setting{0, true, 0}, Setting{1, true, 0}, Setting{2, true, 0}, Setting{1, true, 0, true}}) {
    Stumble stumble;
    stumble.enters_first = true;
    run_stumble(setting, stumble,
                [&](Optimizer &optimizer, const Model &, const Held &held) { expect_none_salvaged(optimizer, setting, held); });
    EXPECT_TRUE(stumble.entered);
  }
}

TEST(SalvageCalls, ReadsServeARangeOfThisRankEvenIfTheyFindTheLossThemselves) {
  const Setting setting{1, false, 0};
  run_setting(setting, [](Optimizer &optimizer, const Held &held, bool leaves) {
    if (leaves) return;
    std::vector<float> read;
    expect_ok(read_piece(optimizer, held.pieces.front(), &read), "read");
    EXPECT_TRUE(same(read, held.pieces.front().values));
    const Status next = run_task(optimizer, optimizer.step(nullptr));
    EXPECT_EQ(next.code(), ZERO_E_PEER_LEFT) << next.text();
  });
}

TEST(SalvageCalls, ARankThatIsLateAtTheDeadlineIsLostToo) {
  const Setting setting{2, false, 0};
  std::atomic<int> told{0};
  run_setting(setting, [&](Optimizer &optimizer, const Held &held, bool leaves) {
    optimizer.group()->set_deadline_ms(100);
    if (leaves) {
      while (told < 2) std::this_thread::yield();
      // It runs, and finds out with its next call that the others have given up.
      zero_verify_result verified{};
      EXPECT_EQ(run_task(optimizer, optimizer.verify(&verified)).code(), ZERO_E_TIMEOUT);
      expect_salvages(optimizer, model_of(setting), setting, held);
      return;
    }
    zero_verify_result verified{};
    EXPECT_EQ(run_task(optimizer, optimizer.verify(&verified)).code(), ZERO_E_TIMEOUT);
    expect_salvages(optimizer, model_of(setting), setting, held);
    ++told;
  });
}

/// Ranks that make different calls are a defect of the program, which no call may hide.
TEST(SalvageCalls, AMismatchIsTheErrorOfReadsToo) {
  const Setting setting{1, false, 0};
  run_setting(setting, [](Optimizer &optimizer, const Held &held, bool differs) {
    zero_verify_result verified{};
    std::vector<float> read;
    const Status first = differs ? run_task(optimizer, optimizer.verify(&verified)) : read_piece(optimizer, held.pieces.front(), &read);
    EXPECT_EQ(first.code(), ZERO_E_MISMATCH) << first.text();
    View view{};
    EXPECT_EQ(read_piece(optimizer, held.pieces.front(), &read).code(), ZERO_E_MISMATCH);
    EXPECT_EQ(optimizer.view(0, ZERO_SLOT_PARAM, &view).code(), ZERO_E_MISMATCH);
  });
}

TEST(SalvageCalls, ArgumentsAreCheckedAsEver) {
  const Setting setting{1, false, 0};
  run_setting(setting, [](Optimizer &optimizer, const Held &held, bool leaves) {
    if (leaves) return;
    std::vector<float> read;
    void *data = nullptr;
    View view{};
    expect_ok(read_piece(optimizer, held.pieces.front(), &read), "read");
    EXPECT_EQ(run_task(optimizer, optimizer.read(99, ZERO_SLOT_PARAM, 0, read.data(), 1)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(run_task(optimizer, optimizer.read(0, ZERO_SLOT_PARAM, 2999, read.data(), 2)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(run_task(optimizer, optimizer.read(0, ZERO_SLOT_AVERAGE, 0, read.data(), 1)).code(), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(run_task(optimizer, optimizer.read(0, ZERO_SLOT_GRAD, 0, read.data(), 1)).code(), ZERO_E_STATE);
    EXPECT_EQ(run_task(optimizer, optimizer.param_acquire(99, nullptr, 0, &data)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(run_task(optimizer, optimizer.param_acquire(0, read.data(), 1, &data)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer.view(99, ZERO_SLOT_PARAM, &view).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer.view(0, ZERO_SLOT_GRAD, &view).code(), ZERO_E_STATE);
  });
}

}  // namespace
}  // namespace zero::test::salvage_test
