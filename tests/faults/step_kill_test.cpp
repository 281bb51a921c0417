/// @file Trainings of which one process is killed at any moment of a step: every living rank is told who was lost, its optimizer refuses
/// all that follows, and what it holds can be released. In every stage, with and without overlap, also where ranks write into the memory of
/// one another.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/faults/shared_counter.h"
#include "tests/group/process_ranks.h"
#include "tests/sizes.h"

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
enum Verdict { kGood = 0, kNotTold = 1, kGoesOn = 2, kAcquires = 3 };

struct Training {
  Model model;
  Manner manner;
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

/// Steps until one fails; half of them split where the manner says so.
Status step_until_error(Optimizer &optimizer, const Training &training) {
  const std::vector<float> gradient(101'000, 0.5F);
  for (int64_t step = 0;; ++step) {
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

/// What is left to a rank that was told.
Verdict after_error(Optimizer &optimizer, const Status &told) {
  if (told.code() != ZERO_E_PEER_LOST) return kNotTold;
  zero_verify_result verified{};
  if (run_task(optimizer, optimizer.step(nullptr)).ok() || run_task(optimizer, optimizer.verify(&verified)).ok()) return kGoesOn;
  void *address = nullptr;
  return run_task(optimizer, optimizer.param_acquire(0, nullptr, 0, &address)).ok() ? kAcquires : kGood;
}

TEST(StepKill, EveryLivingRankIsToldAndItsOptimizerRefusesWhatFollows) {
  const int kills = full_tests() ? 1000 : 60;
  std::mt19937_64 random(2027);
  for (int kill = 0; kill < kills; ++kill) {
    const Training training = random_training(random);
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
          begun.add();
          const Status told = step_until_error(*optimizer, training);
          write_text(out_fd, std::to_string(now_ns()) + " " + status_name(told.code()) + ": " + told.text());
          return static_cast<int>(after_error(*optimizer, told));
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
      ASSERT_EQ(results.exit_codes[rank], kGood) << "kill " << kill << ": " << training.text() << results.describe();
      EXPECT_NE(results.texts[rank].find("rank " + std::to_string(victim) + " (process "), std::string::npos) << results.describe();
      EXPECT_LE(std::stoll(results.texts[rank]) - killed_ns, kToldNs) << training.text() << results.describe();
    }
  }
}

}  // namespace
}  // namespace zero::test::step_kill_test
