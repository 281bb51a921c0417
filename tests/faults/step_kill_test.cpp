/// @file Trainings of which one process is killed at any moment of a step: every living rank is told who was lost, and its optimizer refuses
/// all that needs others. What a rank holds itself is as the last step left it, or is said to be half of the next. In every stage, with and
/// without overlap, also where ranks write into the memory of one another.
#include "tests/engine/delayed_model.h"
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/faults/shared_counter.h"
#include "tests/group/process_ranks.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <random>
#include <thread>

namespace zero::test::step_kill_test {
namespace {

constexpr int64_t kLimitMs = 30'000;
/// The promise is 100 ms; a virtual machine is not always given its cores.
constexpr int64_t kToldNs = 2'000'000'000;

/// Exit codes of a rank.
enum Verdict { kGood = 0, kNotTold = 1, kGoesOn = 2, kAcquires = 3, kTorn = 4, kDisagrees = 5 };

struct Training {
  Model model;
  Manner manner;
  /// The one of a rank's shard that an update changes.
  int32_t values_slot() const { return model.recipe.gather_code != ZERO_CODE_NONE ? ZERO_SLOT_MASTER : ZERO_SLOT_PARAM; }
  std::string text() const { return std::to_string(model.ranks) + " ranks, " + model.text() + manner.text(); }
};

Training random_training(std::mt19937_64 &random) {
  const auto below = [&random](uint64_t most) { return static_cast<int64_t>(random() % most); };
  Training training;
  training.model.ranks = 2 + below(3);
  training.model.counts = {60'000 + below(1000), 1 + below(20), 100'000 + below(1000)};
  training.model.recipe.average = below(2) == 1;
  training.manner.stage = below(4);
  training.manner.overlap = below(2) == 1;
  training.manner.norm = below(2) == 1;
  training.manner.splits = below(2) == 1;
  training.manner.one_copy = below(4) == 0;
  training.manner.bucket_nbytes = 200'000;
  return training;
}

/// Two or four replicas, which sum gradients in every step or meet after two or three.
Training random_replicas(std::mt19937_64 &random) {
  Training training = random_training(random);
  Recipe &recipe = training.model.recipe;
  training.model.ranks = 4;
  training.manner.one_copy = false;
  recipe.replica_ranks = 1 + static_cast<int64_t>(random() % 2);
  recipe.sync_period = 1 + static_cast<int64_t>(random() % 3);
  const auto code = static_cast<int64_t>(random() % 4);
  if (recipe.sync_period > 1) {
    recipe.sync_code = code;
    recipe.outer_momentum = random() % 2 == 0 ? 0.9 : 0;
  } else {
    recipe.grad_code = code;
    recipe.residual = code != ZERO_CODE_NONE && random() % 2 == 0;
  }
  return training;
}

/// Three to five replicas of one rank, or two of two, which average with their neighbours after two or three steps.
Training random_rings(std::mt19937_64 &random) {
  Training training = random_training(random);
  Recipe &recipe = training.model.recipe;
  training.model.ranks = 3 + static_cast<int64_t>(random() % 3);
  training.manner.one_copy = false;
  recipe.replica_ranks = training.model.ranks == 4 ? 1 + static_cast<int64_t>(random() % 2) : 1;
  recipe.sync_period = 2 + static_cast<int64_t>(random() % 2);
  recipe.ring = true;
  return training;
}

/// Replicas whose fragments meet in turn, most of them behind further steps.
Training random_fragments(std::mt19937_64 &random) {
  Training training = random_training(random);
  Recipe &recipe = training.model.recipe;
  training.model.ranks = 3 + static_cast<int64_t>(random() % 2);
  training.manner.one_copy = false;
  training.manner.overlap = random() % 4 > 0;
  recipe.replica_ranks = training.model.ranks == 4 ? 1 + static_cast<int64_t>(random() % 2) : 1;
  recipe.sync_period = 6;
  recipe.sync_fragments = 1 + static_cast<int64_t>(random() % 3);
  recipe.sync_delay = static_cast<int64_t>(random() % 2);
  recipe.sync_mix = random() % 2 == 0 ? 0.5 : 0;
  return training;
}

/// Codes that carry what they lose, or moments, from step to step.
Training random_carried(std::mt19937_64 &random) {
  Training training = random_training(random);
  Recipe &recipe = training.model.recipe;
  training.model.ranks = 2 + 2 * static_cast<int64_t>(random() % 2);
  training.manner.one_copy = false;
  recipe.replica_ranks = training.model.ranks / 2;
  recipe.grad_code = std::vector<int64_t>{ZERO_CODE_TOP, ZERO_CODE_SIGN, ZERO_CODE_LOW_RANK}[random() % 3];
  recipe.residual = true;
  if (recipe.grad_code == ZERO_CODE_LOW_RANK) {
    training.model.counts = {60'000, 11, 100'000};
    training.model.rows = {300, 0, 250};
    recipe.replica_ranks = 1;
  } else {
    recipe.keys = {{ZERO_KEY_CODE_AFTER, 1 + static_cast<int64_t>(random() % 3)},
                   {ZERO_KEY_CODE_FREEZE, static_cast<int64_t>(random() % 2)}};
  }
  return training;
}

/// Stage 3, in which parameters are shared by one or two of four ranks.
Training random_param_ranks(std::mt19937_64 &random) {
  Training training = random_training(random);
  training.model.ranks = 4;
  training.manner.stage = 3;
  training.manner.one_copy = false;
  training.manner.param_ranks = 1 + static_cast<int64_t>(random() % 2);
  return training;
}

/// Parameters that follow their masters by differences.
Training random_differences(std::mt19937_64 &random) {
  Training training = random_training(random);
  training.manner.stage = 1 + static_cast<int64_t>(random() % 2);
  training.manner.one_copy = false;
  training.model.recipe.gather_code = 1 + static_cast<int64_t>(random() % 3);
  return training;
}

/// Steps that apply the gradients of the step before, while those of this one are being reduced.
Training random_delays(std::mt19937_64 &random) {
  Training training = random_training(random);
  training.model = delayed(training.model);
  training.manner.stage = static_cast<int64_t>(random() % 2);
  training.manner.overlap = random() % 4 > 0;
  training.manner.one_copy = false;
  return training;
}

using Bytes = std::vector<std::byte>;

void append(Bytes &bytes, const void *data, int64_t count) {
  const auto *begin = static_cast<const std::byte *>(data);
  bytes.insert(bytes.end(), begin, begin + count * static_cast<int64_t>(sizeof(float)));
}

/// What lies on this rank.
struct Lying {
  Bytes shards;
  Bytes params;            ///< whole ones; none in stage 3
  bool arrived = false;    ///< they were all there
};

Status look_at_shards(Optimizer &optimizer, const Training &training, int64_t views, Bytes *out) {
  out->clear();
  for (int64_t i = 0; i < views; ++i) {
    for (const int32_t slot : {training.values_slot(), int32_t{ZERO_SLOT_FIRST_MOMENT}, int32_t{ZERO_SLOT_SECOND_MOMENT}}) {
      View view{};
      ZERO_TRY(optimizer.view(i, slot, &view));
      append(*out, view.data, view.count);
    }
  }
  return {};
}

Status look_at_params(Optimizer &optimizer, const Training &training, Bytes *out) {
  out->clear();
  for (int64_t id = 0; id < training.model.tensors() && training.manner.stage < 3; ++id) {
    void *data = nullptr;
    ZERO_TRY(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data)));
    append(*out, data, training.model.counts[static_cast<size_t>(id)]);
    (void)optimizer.param_release(id);  // an optimizer that is lost releases nothing
  }
  return {};
}

/// Steps until one fails; half of them split where the manner says so. *out_last: what lay on this rank after the last one that ended.
Status step_until_error(Optimizer &optimizer, const Training &training, int64_t views, Lying *out_last) {
  const std::vector<float> gradient(101'000, 0.5F);
  for (int64_t step = 0;; ++step) {
    ZERO_TRY(look_at_shards(optimizer, training, views, &out_last->shards));
    out_last->arrived = false;
    ZERO_TRY(look_at_params(optimizer, training, &out_last->params));
    out_last->arrived = true;
    for (int64_t id = training.model.tensors() - 1; id >= 0; --id) {
      if (training.manner.stage == 3) {
        void *address = nullptr;
        ZERO_TRY(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &address)));
        ZERO_TRY(optimizer.param_release(id));
      }
      ZERO_TRY(optimizer.grad_ready(id, gradient.data(), 0, training.model.counts[static_cast<size_t>(id)]));
    }
    if (!training.manner.splits || step % 2 == 0) {
      ZERO_TRY(run_task(optimizer, optimizer.step(nullptr)));
      continue;
    }
    ZERO_TRY(run_task(optimizer, optimizer.reduce(nullptr)));
    ZERO_TRY(run_task(optimizer, optimizer.apply()));
    ZERO_TRY(run_task(optimizer, optimizer.gather()));
  }
}

bool is_half_applied(const Status &status) {
  return status.code() == ZERO_E_CORRUPT && contains(status, "the step was half applied");
}

/// Twice, because others may still be about to write here. Parameters that were to arrive behind the last step may be missing alone.
Verdict compare_with_last(Optimizer &optimizer, const Training &training, int64_t views, const Lying &last, bool *out_intact) {
  for (int again = 0; again < 2; ++again) {
    Lying now;
    std::vector<float> read(101'000);
    View own{0, 0, 1, nullptr};
    const Status shards = look_at_shards(optimizer, training, views, &now.shards);
    const Status params = look_at_params(optimizer, training, &now.params);
    (void)optimizer.view(0, training.values_slot(), &own);
    const Status own_read = run_task(optimizer, optimizer.read(own.param, training.values_slot(), own.offset, read.data(), own.count));
    if (!shards.ok() && !is_half_applied(shards)) return kDisagrees;
    if (!params.ok() && !is_half_applied(params)) return kDisagrees;
    if (shards.ok() != own_read.ok() || (training.manner.stage < 3 && !shards.ok() && params.ok())) return kDisagrees;
    if (shards.ok() && last.arrived && !params.ok()) return kDisagrees;
    if (params.ok() && (!last.arrived || now.params != last.params)) return kTorn;
    if (shards.ok() && now.shards != last.shards) return kTorn;
    if (shards.ok() && std::memcmp(read.data(), own.data, static_cast<size_t>(own.count) * sizeof(float)) != 0) return kTorn;
    *out_intact = shards.ok() && params.ok();
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  return kGood;
}

/// What is left to a rank that was told.
Verdict after_error(Optimizer &optimizer, const Training &training, const Status &told) {
  if (told.code() != ZERO_E_PEER_LOST) return kNotTold;
  zero_verify_result verified{};
  if (run_task(optimizer, optimizer.step(nullptr)).ok() || run_task(optimizer, optimizer.verify(&verified)).ok()) return kGoesOn;
  void *address = nullptr;
  if (training.manner.stage < 3) return kGood;
  return run_task(optimizer, optimizer.param_acquire(0, nullptr, 0, &address)).ok() ? kAcquires : kGood;
}

void kill_ranks(int kills, std::mt19937_64 random, Training (*random_one)(std::mt19937_64 &)) {
  SharedCounter intact;
  int64_t survivors = 0;
  for (int kill = 0; kill < kills; ++kill) {
    const Training training = random_one(random);
    const auto victim = static_cast<size_t>(random() % static_cast<uint64_t>(training.model.ranks));
    const auto after = std::chrono::microseconds(random() % 20'000);
    const std::string name = meeting_name();
    SharedCounter begun;
    int64_t killed_ns = 0;
    const ProcessResults results = run_process_ranks(
        training.model.ranks,
        [&](int64_t rank, int out_fd) {
          const std::shared_ptr<Group> group = connect_rank(name, rank, training.model.ranks, 1);
          const auto optimizer = begun_optimizer(group, training.model, training.manner);
          int64_t views = 0;
          Lying last;
          bool is_intact = false;
          expect_ok(optimizer->view_count(&views), "view_count");
          begun.add();
          const Status told = step_until_error(*optimizer, training, views, &last);
          write_text(out_fd, std::to_string(now_ns()) + " " + status_name(told.code()) + ": " + told.text());
          const Verdict compared = compare_with_last(*optimizer, training, views, last, &is_intact);
          if (is_intact) intact.add();
          return static_cast<int>(compared != kGood ? compared : after_error(*optimizer, training, told));
        },
        kLimitMs,
        [&](const std::vector<pid_t> &processes) {
          begun.await(training.model.ranks, kLimitMs);
          std::this_thread::sleep_for(after);
          killed_ns = now_ns();
          ::kill(processes[victim], SIGKILL);
        });
    ASSERT_FALSE(results.timed_out) << training.text() << results.describe();
    for (size_t rank = 0; rank < results.exit_codes.size(); ++rank) {
      if (rank == victim) continue;
      ++survivors;
      ASSERT_EQ(results.exit_codes[rank], kGood) << "kill " << kill << ": " << training.text() << results.describe();
      EXPECT_NE(results.texts[rank].find("rank " + std::to_string(victim) + " (process "), std::string::npos) << results.describe();
      EXPECT_LE(std::stoll(results.texts[rank]) - killed_ns, kToldNs) << training.text() << results.describe();
    }
  }
  std::printf("kills %d, survivors %lld, of which the last step is intact on %lld\n", kills, static_cast<long long>(survivors),
              static_cast<long long>(intact.value()));
  EXPECT_GT(intact.value(), 0);
}

TEST(StepKill, EveryLivingRankIsToldAndItsOptimizerRefusesWhatFollows) {
  kill_ranks(full_tests() ? 1000 : 60, std::mt19937_64(2027), random_training);
}

TEST(StepKill, LeavesMastersOfParametersThatFollowByDifferences) {
  kill_ranks(full_tests() ? 400 : 16, std::mt19937_64(2029), random_differences);
}

TEST(StepKill, ReachesTheRanksOfAllReplicas) { kill_ranks(full_tests() ? 400 : 24, std::mt19937_64(2028), random_replicas); }

TEST(StepKill, ReachesCodesThatCarryValues) { kill_ranks(full_tests() ? 400 : 24, std::mt19937_64(2033), random_carried); }

TEST(StepKill, ReachesOwnersOfSharedParameters) { kill_ranks(full_tests() ? 400 : 16, std::mt19937_64(2034), random_param_ranks); }

TEST(StepKill, ReachesReductionsBehindThePass) { kill_ranks(full_tests() ? 400 : 16, std::mt19937_64(2032), random_delays); }

TEST(StepKill, ReachesReplicasThatAreNoNeighbours) { kill_ranks(full_tests() ? 400 : 16, std::mt19937_64(2030), random_rings); }

TEST(StepKill, ReachesReplicasWhoseFragmentsTravelBehindSteps) {
  kill_ranks(full_tests() ? 400 : 16, std::mt19937_64(2031), random_fragments);
}

}  // namespace
}  // namespace zero::test::step_kill_test
