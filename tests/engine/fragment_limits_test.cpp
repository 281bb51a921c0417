/// @file Fragments, delay and mix of replicas: saves, bytes and memory, lost ranks, edges and refusals.
#include "tests/engine/fragment_models.h"
#include "tests/engine/fragment_rule.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/refused_keys.h"
#include "tests/engine/saved_runs.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace zero::test::fragment_limits_test {
namespace {

/// At every step of a period, also while an exchange is under way, and from there in another stage.
TEST(FragmentSaves, NeedASynchronisationAndGoOnWithTheBitsOfTheUndisturbedRun) {
  for (const Turns &turns : {Turns{4, 2, 0, 0, 0.7, 0.9}, Turns{4, 2, 1, 0.5, 0.7, 0.9}, Turns{3, 1, 0, 0.5}, Turns{3, 1, 2, 0}}) {
    for (int64_t saved = 3; saved < 3 + turns.period; ++saved) {
      Model model = fragment_model({2, 2}, turns);
      model.algorithm = "adamw";
      model.recipe.average = true;
      Manner manner;
      manner.stage = saved % 4;
      manner.overlap = saved % 2 == 0;
      Manner other;
      other.stage = 3 - manner.stage;
      const SaveFolder folder;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = begun_optimizer(group, model, manner);
        ASSERT_NE(optimizer, nullptr);
        train_steps(*optimizer, model, manner, 0, saved);
        const bool together = turns.fragments == 1 && turns.mix == 0 && saved % turns.period == turns.delay && saved > turns.period;
        const Status status = save(*checkpoint_of(optimizer), folder.path());
        EXPECT_EQ(status.code(), together ? ZERO_OK : ZERO_E_STATE) << status.text();
        EXPECT_EQ(contains(status, "zero_optimizer_sync comes before"), !together) << status.text();
        expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
        expect_same_on_all_ranks(*optimizer);
        if (!together) expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
        train_steps(*optimizer, model, manner, saved, saved + 7);
        const std::vector<std::byte> expected = read_slots(*optimizer, model);
        const auto resumed = make_optimizer(group, model, other);
        ASSERT_TRUE(load(*checkpoint_of(resumed), folder.path()).ok());
        train_steps(*resumed, model, other, saved, saved + 7);
        EXPECT_EQ(read_slots(*resumed, model), expected) << "saved after " << saved << " rank " << group->rank() << "\n" << model.text();
        // An exchange that is under way is dropped.
        ASSERT_TRUE(load(*checkpoint_of(optimizer), folder.path()).ok());
        train_steps(*optimizer, model, manner, saved, saved + 7);
        EXPECT_EQ(read_slots(*optimizer, model), expected) << "loaded again, saved after " << saved << " rank " << group->rank();
      });
    }
  }
}

/// The mix is a hyper-parameter, which a save keeps.
TEST(FragmentSaves, KeepTheMix) {
  Model model = fragment_model({2, 1}, {4, 2, 1, 0.5});
  const SaveFolder folder;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, Manner{});
    ASSERT_NE(optimizer, nullptr);
    expect_ok(optimizer->set_f64(0, ZERO_KEY_SYNC_MIX, 0.75), "set_f64");
    EXPECT_EQ(optimizer->set_f64(0, ZERO_KEY_SYNC_MIX, 1.5).code(), ZERO_E_INVALID_ARGUMENT);
    train_steps(*optimizer, model, Manner{}, 0, 3);
    expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
    const auto resumed = make_optimizer(group, model, Manner{});
    expect_ok(load(*checkpoint_of(resumed), folder.path()), "load");
    double mix = 0;
    expect_ok(resumed->get_f64(0, ZERO_KEY_SYNC_MIX, &mix), "get_f64");
    EXPECT_EQ(mix, 0.75);
  });
}

/// A begin drops it too, and training goes on from the values that were written.
TEST(Fragments, ThatAreUnderWayAreDroppedByBegin) {
  Model model = fragment_model({3, 1}, {4, 2, 1, 0});
  for (const bool overlap : {false, true}) {
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      Manner manner;
      manner.overlap = overlap;
      const auto optimizer = begun_optimizer(group, model, manner);
      ASSERT_NE(optimizer, nullptr);
      train_steps(*optimizer, model, manner, 0, 2);  // the exchange of fragment 1 has begun
      const std::vector<float> ones(257, 1);
      expect_ok(run_task(*optimizer, optimizer->write(4, ZERO_SLOT_PARAM, 0, ones.data(), 257)), "write");
      expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
      expect_ok(optimizer->set_f64(0, ZERO_KEY_LR, 0), "set_f64");
      const std::vector<float> before = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
      for (int64_t step = 2; step < 6; ++step) {
        const zero_step_result result = train_step(*optimizer, model, manner, step);
        EXPECT_EQ(result.synced, step == 4 ? 1 : 0) << step;
        EXPECT_EQ(differing(read_slot(*optimizer, model, ZERO_SLOT_PARAM), before), 0) << step;
      }
    });
  }
}

int64_t sent_across(const Optimizer &optimizer) {
  int64_t nbytes = 0;
  for (const OperationKind kind : {OperationKind::reduce_scatter, OperationKind::all_gather, OperationKind::all_reduce})
    nbytes += optimizer.traffic(kind).sent_nbytes;
  return nbytes;
}

/// Four tensors of 8 Ki elements. A step that meets sends its share, all others only their votes.
TEST(Fragments, AreSentInEvenShares) {
  for (const int64_t replica_ranks : {1, 2}) {
    for (const int64_t code : {ZERO_CODE_NONE, ZERO_CODE_I4}) {
      for (const int64_t delay : {0, 1}) {
        Model model = fragment_model({2, replica_ranks}, {8, 4, delay, 0});
        model.counts = {8192, 8192, 8192, 8192};
        model.recipe.sync_code = code;
        Manner manner;
        manner.stage = replica_ranks - 1;
        manner.norm = false;
        manner.overlap = delay > 0;
        manner.bucket_nbytes = 4096;  // so that every rank has its share of every fragment
        run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
          const auto optimizer = begun_optimizer(group, model, manner);
          ASSERT_NE(optimizer, nullptr);
          const std::string described = optimizer->describe();
          EXPECT_NE(described.find("fragments: 4 of whole tensors, the largest of 8192 elements; one after every 2 steps"),
                    std::string::npos)
              << described;
          EXPECT_EQ(
              described.find("delay: results are used 1 step after their values; exchanges go on behind these steps") != std::string::npos,
              delay == 1)
              << described;
          int64_t plain = 0;
          for (int64_t step = 0; step < 16; ++step) {
            const int64_t before = sent_across(*optimizer);
            const int64_t synced = train_step(*optimizer, model, manner, step).synced;
            const int64_t after = sent_across(*optimizer);
            EXPECT_EQ(synced, step >= delay && (step + 1 - delay) % 2 == 0 ? 1 : 0);
            if (step == 0) plain = after - before;
            if (delay > 0) continue;  // what runs behind steps is counted when it is sent
            const int64_t share = (code == ZERO_CODE_NONE ? 8192 * 4 : 8192 / 256 * 132) / replica_ranks;
            const int64_t extra = after - before - plain - (synced == 1 ? share : 0);
            EXPECT_GE(extra, synced == 1 ? 1 : 0) << step;
            EXPECT_LE(extra, synced == 1 ? 8192 : 0) << step;
          }
          expect_ok(run_task(*optimizer, optimizer->sync(nullptr)), "sync");
          const int64_t whole = 4 * (code == ZERO_CODE_NONE ? 8192 * 4 : 8192 / 256 * 132) / replica_ranks;
          // Two periods and a full synchronisation; with a delay the last fragment came before it.
          const int64_t extra = sent_across(*optimizer) - 16 * plain - 3 * whole;
          EXPECT_GE(extra, 0);
          EXPECT_LE(extra, 10 * 8192);
        });
      }
    }
  }
}

/// Beside the workspace without a delay: the largest fragment over the ranks of a replica, twice with averages.
TEST(Fragments, TakeTheMemoryOfTheFormula) {
  Every every(3);
  for (const bool average : {false, true}) {
    for (const int64_t stage : {0, 2}) {
      if (!every.next()) continue;
      int64_t nbytes[2] = {0, 0};
      for (const int64_t delay : {0, 1}) {
        Model model = fragment_model({2, 2}, {4, 2, delay, 0});
        model.counts = {100 * 1024, 50 * 1024, 50 * 1024};
        model.recipe.average = average;
        Manner manner;
        manner.stage = stage;
        manner.bucket_nbytes = 4096;  // so that every rank has its share of every fragment
        run_world(4, [&](const std::shared_ptr<Group> &group) {
          const auto optimizer = begun_optimizer(group, model, manner);
          ASSERT_NE(optimizer, nullptr);
          train_steps(*optimizer, model, manner, 0, 5);
          MemoryUse workspace{};
          expect_ok(optimizer->memory(ZERO_MEMORY_WORKSPACE, &workspace), "memory");
          if (group->rank() == 0) nbytes[delay] = workspace.peak_nbytes;
        });
      }
      const int64_t formula = 4 * 100 * 1024 / (stage == 0 ? 1 : 2) * (average ? 2 : 1);
      EXPECT_GE(nbytes[1] - nbytes[0], formula);
      EXPECT_LE(nbytes[1] - nbytes[0], formula + 8192) << "stage " << stage;
    }
  }
}

/// Rank 2 leaves before the step whose values are exchanged, or while they are, or before the words at the end.
TEST(Fragments, ARankThatLeavesIsAnErrorOnAllRanksBeforeTheResultIsUsed) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    for (const int64_t left : {1, 2, 3}) {
      for (const bool overlap : {false, true}) {
        Model model = fragment_model({3, 1}, {6, 2, 2, 0.5});
        run_world(3, [&](const std::shared_ptr<Group> &group) {
          Manner manner;
          manner.stage = stage;
          manner.overlap = overlap;
          const auto optimizer = begun_optimizer(group, model, manner);
          ASSERT_NE(optimizer, nullptr);
          const bool leaves = group->rank() == 2;
          Status status;
          int64_t made = 0;
          for (; made < (leaves ? left : 5) && status.ok(); ++made) {
            for (int64_t id = 0; id < model.tensors() && status.ok(); ++id) {
              const std::vector<float> zeros(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
              status = optimizer->grad_ready(id, zeros.data(), 0, std::ssize(zeros));
            }
            if (status.ok()) status = run_task(*optimizer, optimizer->step(nullptr));
          }
          if (leaves) return;
          EXPECT_EQ(status.code(), ZERO_E_PEER_LEFT) << "rank " << group->rank() << " stage " << stage << " " << status.text();
          EXPECT_GE(made, 3);
        });
      }
    }
  }
}

/// They are compared where the first result is used.
TEST(Fragments, DifferentMixesAreAnErrorOnAllRanks) {
  Model model = fragment_model({2, 2}, {4, 2, 1, 0.5});
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, Manner{});
    ASSERT_NE(optimizer, nullptr);
    expect_ok(optimizer->set_f64(0, ZERO_KEY_SYNC_MIX, group->rank() >= 2 ? 0.25 : 0.5), "set_f64");
    train_steps(*optimizer, model, Manner{}, 0, 2);
    give_gradients(*optimizer, model, Manner{}, 2);
    const Status status = run_task(*optimizer, optimizer->step(nullptr));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_TRUE(contains(status, "ZERO_KEY_SYNC_MIX = ")) << status.text();
  });
}

TEST(Fragments, AreRefusedByNameWhereTheyCannotAct) {
  constexpr int32_t kInvalid = ZERO_E_INVALID_ARGUMENT;
  constexpr int32_t kUnsupported = ZERO_E_UNSUPPORTED;
  const std::pair<int32_t, int64_t> never = {ZERO_KEY_SYNC_PERIOD, 1};
  const std::pair<int32_t, int64_t> ring = {ZERO_KEY_NEIGHBOURS, ZERO_NEIGHBOURS_RING};
  const Refused all[] = {
      {{{ZERO_KEY_SYNC_FRAGMENTS, 5}}, {}, kInvalid, "ZERO_KEY_SYNC_FRAGMENTS is 5, but must divide ZERO_KEY_SYNC_PERIOD, which is 12"},
      {{{ZERO_KEY_SYNC_FRAGMENTS, 24}}, {}, kInvalid, "is 24, but must divide ZERO_KEY_SYNC_PERIOD, which is 12"},
      {{{ZERO_KEY_SYNC_FRAGMENTS, 4}, {ZERO_KEY_SYNC_DELAY, 3}}, {}, kInvalid, "ZERO_KEY_SYNC_DELAY is 3, but must be below"},
      {{{ZERO_KEY_SYNC_DELAY, 12}}, {}, kInvalid, "ZERO_KEY_SYNC_PERIOD / ZERO_KEY_SYNC_FRAGMENTS, which is 12 / 1"},
      {{never, {ZERO_KEY_SYNC_FRAGMENTS, 1}}, {}, kInvalid, "ZERO_KEY_SYNC_FRAGMENTS is set, but has no effect while ZERO_KEY_SYNC_PERIOD"},
      {{never, {ZERO_KEY_SYNC_DELAY, 0}}, {}, kInvalid, "ZERO_KEY_SYNC_DELAY is set, but has no effect while ZERO_KEY_SYNC_PERIOD"},
      {{never}, {{ZERO_KEY_SYNC_MIX, 0.5}}, kInvalid, "ZERO_KEY_SYNC_MIX is set, but has no effect while ZERO_KEY_SYNC_PERIOD"},
      {{ring, {ZERO_KEY_SYNC_FRAGMENTS, 4}}, {}, kUnsupported, "ZERO_NEIGHBOURS_RING and ZERO_KEY_SYNC_FRAGMENTS 4, but a round"},
      {{ring, {ZERO_KEY_SYNC_DELAY, 2}}, {}, kUnsupported, "ZERO_NEIGHBOURS_RING and ZERO_KEY_SYNC_DELAY 2, but a round"},
      {{ring}, {{ZERO_KEY_SYNC_MIX, 0.5}}, kUnsupported, "ZERO_NEIGHBOURS_RING and ZERO_KEY_SYNC_MIX 0.5, but an outer step"},
  };
  run_world(4, [&](const std::shared_ptr<Group> &group) {
    for (const Refused &refused : all) expect_refused(group, {{ZERO_KEY_REPLICA_RANKS, 2}, {ZERO_KEY_SYNC_PERIOD, 12}}, refused);
  });
}

/// Three tensors train. A fourth has no elements, a fifth is frozen, and a sixth is another name of the first.
TEST(Fragments, AreAtMostTheTensorsThatTrain) {
  for (const int64_t fragments : {3, 4}) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      Config config;
      for (const auto &[key, value] :
           {std::pair{ZERO_KEY_REPLICA_RANKS, int64_t{1}}, {ZERO_KEY_SYNC_PERIOD, 12}, {ZERO_KEY_SYNC_FRAGMENTS, fragments}})
        expect_ok(config.set_i64(key, value), "set_i64");
      std::shared_ptr<Optimizer> optimizer;
      ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
      Config frozen;
      Config tied;
      expect_ok(frozen.set_i64(ZERO_KEY_FROZEN, 1), "set_i64");
      expect_ok(tied.set_i64(ZERO_KEY_TIED_TO, 0), "set_i64");
      const std::pair<int64_t, const Config *> tensors[] = {{5, nullptr}, {1, nullptr}, {300, nullptr},
                                                            {0, nullptr}, {7, &frozen}, {5, &tied}};
      int64_t id = -1;
      for (const auto &[count, options] : tensors) {
        const std::string name = "w" + std::to_string(id);
        expect_ok(optimizer->add_param(options, name.c_str(), ZERO_DTYPE_F32, &count, 1, &id), "add_param");
      }
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), fragments == 3 ? ZERO_OK : ZERO_E_INVALID_ARGUMENT) << status.text();
      EXPECT_EQ(contains(status, "ZERO_KEY_SYNC_FRAGMENTS is 4, but only 3 tensors train"), fragments == 4) << status.text();
    });
  }
}

/// Fewer elements than ranks, and turns by hand only.
TEST(Fragments, MayBeSingleElements) {
  for (const int64_t period : {int64_t{2}, int64_t{1} << 40}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      Model model = fragment_model({2, 4}, {period, 2, 0, 0.5});
      model.counts = {1, 1};
      model.steps = 5;
      Manner manner;
      manner.stage = stage;
      run_world(model.ranks, [&](const std::shared_ptr<Group> &group) { follow_fragments(group, model, manner); });
    }
  }
}

TEST(Fragments, ThatRanksSetDifferentlyAreAnErrorOnAllRanks) {
  for (const int32_t key : {ZERO_KEY_SYNC_FRAGMENTS, ZERO_KEY_SYNC_DELAY}) {
    run_world(4, [&](const std::shared_ptr<Group> &group) {
      Config config;
      for (const auto &[set, value] : {std::pair{ZERO_KEY_REPLICA_RANKS, 2}, {ZERO_KEY_SYNC_PERIOD, 4}})
        expect_ok(config.set_i64(set, value), "set_i64");
      expect_ok(config.set_i64(key, group->rank() == 3 ? 2 : 1), "set_i64");
      std::shared_ptr<Optimizer> optimizer;
      ASSERT_TRUE(Optimizer::create(group, config, &optimizer).ok());
      const int64_t count = 5;
      int64_t id = 0;
      expect_ok(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id), "add_param");
      const Status status = optimizer->seal_queue()->run(optimizer->seal());
      EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
      EXPECT_TRUE(contains(status, find_key(key)->name)) << status.text();
    });
  }
}

}  // namespace
}  // namespace zero::test::fragment_limits_test
