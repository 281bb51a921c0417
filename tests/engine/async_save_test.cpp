/// @file Asynchronous saves: each holds the step it was called after, whatever comes behind it, and costs later steps nothing but time.
#include "tests/engine/saved_runs.h"
#include "tests/forwarded_calls.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

namespace zero::test::async_save_test {
namespace {

constexpr int64_t kSteps = 5;

/// The system's calls on files, slowly, and from some moment on failing.
class SlowCalls final : public tests::ForwardedCalls {
 public:
  explicit SlowCalls(int64_t microseconds) : microseconds_(microseconds) {}

  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds_));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (held_.load() > 0 && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!full_.load()) return ForwardedCalls::write_at(file, data, std::min<size_t>(nbytes, 65'536), offset);
    errno = ENOSPC;
    return -1;
  }

  void fill_disk() { full_.store(true); }
  /// Nothing is written until so many have let go.
  void hold(int64_t count) { held_.store(count); }
  void let_go() { held_.fetch_sub(1); }

 private:
  const int64_t microseconds_;
  std::atomic<bool> full_{false};
  std::atomic<int64_t> held_{0};
};

/// A save that was begun.
struct Begun {
  std::shared_ptr<Checkpoint> checkpoint;
  std::shared_ptr<Operation> operation;
  std::shared_ptr<zero_checkpoint_result> result = std::make_shared<zero_checkpoint_result>();

  Status wait() const { return checkpoint->queue()->wait(operation); }
};

Begun begin_save(std::shared_ptr<Checkpoint> checkpoint, const std::string &folder) {
  Begun begun{std::move(checkpoint), nullptr};
  begun.operation = test::begin_save(*begun.checkpoint, folder, begun.result.get());
  return begun;
}

struct Case {
  int64_t stage;
  int64_t ranks;
  int64_t snapshot;
  int64_t large;  ///< elements of the largest tensor
};

std::string name_of(const testing::TestParamInfo<Case> &info) {
  const Case &each = info.param;
  return "Stage" + std::to_string(each.stage) + "Ranks" + std::to_string(each.ranks) + (each.snapshot == ZERO_SNAPSHOT_LAZY ? "Lazy" : "Copy") +
         (each.large > 100'000 ? "Large" : "Small");
}

std::vector<Case> cases() {
  std::vector<Case> cases;
  Every every(5);
  for (const int64_t snapshot : {ZERO_SNAPSHOT_COPY + 0, ZERO_SNAPSHOT_LAZY + 0}) {
    for (int64_t stage = 0; stage < 4; ++stage) {
      for (const int64_t ranks : {1, 2, 3}) {
        for (const int64_t large : {3000, 300'000}) {
          if (every.next()) cases.push_back({stage, ranks, snapshot, large});
        }
      }
    }
  }
  return cases;
}

Model model_of(const Case &each) {
  Model model = saved_model();
  model.counts[0] = each.large;
  model.ranks = each.ranks;
  return model;
}

Manner manner_of(const Case &each, bool overlaps) {
  Manner manner;
  manner.stage = each.stage;
  manner.bucket_nbytes = 65'536;
  manner.overlap = overlaps;
  manner.source = ZERO_SOURCE_SHARDS;
  return manner;
}

CheckpointKeys keys_of(const Case &each) {
  return {{ZERO_KEY_CHECKPOINT_SNAPSHOT, each.snapshot}, {ZERO_KEY_CHECKPOINT_STAGING_BYTES, 65'536}};
}

std::vector<std::byte> undisturbed(const Case &each, int64_t steps) {
  std::vector<std::byte> slots;
  run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(each);
    const auto optimizer = begun_optimizer(group, model, manner_of(each, false));
    step_alone(*optimizer, model, 0, steps);
    const std::vector<std::byte> mine = read_slots(*optimizer, model);
    if (group->rank() == 0) slots = mine;
  });
  return slots;
}

/// What a folder's newest save, or the one at the path, holds.
std::vector<std::byte> loaded(const Case &each, const std::string &path, int64_t *out_step = nullptr) {
  std::vector<std::byte> slots;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Model model = model_of(each);
    model.ranks = 2;
    const auto optimizer = make_optimizer(group, model, manner_of(each, false));
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_ALL, &result), "load");
    const std::vector<std::byte> mine = read_slots(*optimizer, model);
    if (group->rank() != 0) return;
    slots = mine;
    if (out_step != nullptr) *out_step = result.step;
  });
  return slots;
}

class InBackground : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Saves, InBackground, testing::ValuesIn(cases()), name_of);

/// Steps follow at once; the writer is so slow that lazy saves of large tensors make an update wait.
TEST_P(InBackground, HoldTheStepTheyWereCalledAfter) {
  const Case &each = GetParam();
  for (const bool overlaps : {false, true}) {
    SaveFolder folder;
    SlowCalls calls(each.large > 100'000 ? 300 : 2000);
    // Of a lazy save, whose steps wait for the writer, nobody could let go.
    if (each.snapshot == ZERO_SNAPSHOT_COPY) calls.hold(each.ranks);
    std::vector<std::byte> at_call;
    std::vector<std::byte> at_end;
    std::atomic<int64_t> ended_early{0};
    {
      const FileCallsReplaced replaced(calls);
      run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
        const Model model = model_of(each);
        const auto optimizer = begun_optimizer(group, model, manner_of(each, overlaps));
        step_alone(*optimizer, model, 0, 2);
        const std::vector<std::byte> before = read_slots(*optimizer, model);
        const Begun begun = begin_save(checkpoint_of(optimizer, keys_of(each)), folder.path());
        step_alone(*optimizer, model, 2, kSteps);
        if (begun.operation->done()) ended_early.fetch_add(1);
        calls.let_go();
        const std::vector<std::byte> after = read_slots(*optimizer, model);
        expect_ok(begun.wait(), "save_async");
        EXPECT_EQ(begun.result->step, 2);
        EXPECT_GT(begun.result->stall_ns, 0);
        const bool copies = each.snapshot == ZERO_SNAPSHOT_COPY;
        EXPECT_GE(begun.result->snapshot_nbytes, copies ? 1 : 0);
        EXPECT_LE(begun.result->snapshot_nbytes, copies ? each.large * 100 : 65'536);
        if (group->rank() != 0) return;
        at_call = before;
        at_end = after;
      });
    }
    EXPECT_EQ(loaded(each, folder.path()), at_call) << overlaps;
    EXPECT_EQ(at_end, undisturbed(each, kSteps)) << overlaps;
    EXPECT_TRUE(each.snapshot == ZERO_SNAPSHOT_LAZY || ended_early.load() == 0) << "a save ended before it was written";
  }
}

class EitherSnapshot : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Snapshot, EitherSnapshot, testing::Values(ZERO_SNAPSHOT_COPY + 0, ZERO_SNAPSHOT_LAZY + 0));

TEST_P(EitherSnapshot, SavesFollowOneAnother) {
  const Case each{2, 3, GetParam(), 3000};
  SaveFolder folder;
  run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(each);
    const auto optimizer = begun_optimizer(group, model, manner_of(each, true));
    const auto checkpoint = checkpoint_of(optimizer, keys_of(each));
    std::vector<Begun> saves;
    for (int64_t step = 0; step < kSteps; ++step) {
      step_alone(*optimizer, model, step);
      saves.push_back(begin_save(checkpoint, folder.path()));
      EXPECT_EQ(checkpoint->check_idle().code(), ZERO_E_STATE);
    }
    // One that waits comes behind them.
    expect_ok(save(*checkpoint, folder.path()), "save");
    for (const Begun &begun : saves) EXPECT_TRUE(begun.operation->done());
    for (const Begun &begun : saves) expect_ok(begun.wait(), "save_async");
    expect_ok(checkpoint->check_idle(), "check_idle");
  });
  const std::vector<std::string> saves = folder.saves();
  ASSERT_EQ(saves.size(), static_cast<size_t>(kSteps + 1));
  for (int64_t step = 0; step < kSteps; ++step) {
    int64_t found = 0;
    EXPECT_EQ(loaded(each, folder.path() + "/" + saves[static_cast<size_t>(step)], &found), undisturbed(each, step + 1)) << step;
    EXPECT_EQ(found, step + 1);
  }
}

/// The disk fills up while steps go on: every rank's request says so, and nothing else is lost.
TEST_P(EitherSnapshot, AFullDiskCostsTheSaveOnly) {
  const Case each{1, 3, GetParam(), 300'000};
  SaveFolder folder;
  SlowCalls calls(300);
  std::mutex mutex;
  std::vector<std::string> texts;
  std::vector<std::byte> at_end;
  {
    const FileCallsReplaced replaced(calls);
    run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
      const Model model = model_of(each);
      const auto optimizer = begun_optimizer(group, model, manner_of(each, true));
      step_alone(*optimizer, model, 0, 2);
      const Begun begun = begin_save(checkpoint_of(optimizer, keys_of(each)), folder.path());
      if (group->rank() == 0) calls.fill_disk();
      step_alone(*optimizer, model, 2, kSteps);
      const Status status = begun.wait();
      EXPECT_EQ(status.code(), ZERO_E_SYSTEM) << status.text();
      const std::vector<std::byte> after = read_slots(*optimizer, model);
      const std::lock_guard lock(mutex);
      texts.emplace_back(status.text());
      if (group->rank() == 0) at_end = after;
    });
  }
  EXPECT_EQ(texts, std::vector<std::string>(3, texts.at(0)));
  EXPECT_NE(texts.at(0).find("No space left on device"), std::string::npos) << texts.at(0);
  EXPECT_EQ(at_end, undisturbed(each, kSteps));
  EXPECT_TRUE(folder.entries().empty());
}

/// Tensors of the program are free as soon as the call has returned; all handles may go before the save ends.
TEST_P(EitherSnapshot, TensorsAreTheCallersAgainAndHandlesMayGo) {
  const Case each{3, 2, GetParam(), 300'000};
  SaveFolder folder;
  SlowCalls calls(300);
  {
    const FileCallsReplaced replaced(calls);
    run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
      const Model model = model_of(each);
      auto optimizer = begun_optimizer(group, model, manner_of(each, true));
      step_alone(*optimizer, model, 0, 2);
      auto checkpoint = checkpoint_of(optimizer, keys_of(each));
      float mine = 7;
      const int64_t shape = 1;
      expect_ok(checkpoint->things().add_tensor("loss", ZERO_DTYPE_F32, &shape, 1, &mine, ZERO_SCOPE_EACH), "add_tensor");
      const Begun begun = begin_save(checkpoint, folder.path());
      mine = 8;
      checkpoint.reset();
      optimizer.reset();
      expect_ok(begun.wait(), "save_async");
    });
  }
  std::vector<std::byte> slots;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(each);
    const auto optimizer = make_optimizer(group, model, manner_of(each, false));
    const auto checkpoint = checkpoint_of(optimizer);
    float mine = 0;
    const int64_t shape = 1;
    expect_ok(checkpoint->things().add_tensor("loss", ZERO_DTYPE_F32, &shape, 1, &mine, ZERO_SCOPE_EACH), "add_tensor");
    expect_ok(load(*checkpoint, folder.path()), "load");
    EXPECT_EQ(mine, 7);
    const std::vector<std::byte> read = read_slots(*optimizer, model);
    if (group->rank() == 0) slots = read;
  });
  EXPECT_EQ(slots, undisturbed(each, 2));
}

/// Whatever changes values waits for a lazy save, or is refused.
TEST(LazySave, ValuesStayUntilTheyWereRead) {
  const Case each{1, 2, ZERO_SNAPSHOT_LAZY, 300'000};
  enum class Way { write, begin, init };
  for (const Way way : {Way::write, Way::begin, Way::init}) {
    SaveFolder folder;
    SlowCalls calls(300);
    {
      const FileCallsReplaced replaced(calls);
      run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
        const Model model = model_of(each);
        const auto optimizer = begun_optimizer(group, model, manner_of(each, true));
        step_alone(*optimizer, model, 0, 2);
        const Begun begun = begin_save(checkpoint_of(optimizer, keys_of(each)), folder.path());
        const std::vector<float> values(1000, 5.0F);
        if (way == Way::write) expect_ok(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_PARAM, 0, values.data(), 1000)), "write");
        if (way == Way::begin) expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
        if (way == Way::init) {
          const Status status = optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 5, 0, 0);
          EXPECT_TRUE(status.code() == ZERO_E_STATE && contains(status, "asynchronous save")) << status.text();
        }
        expect_ok(begun.wait(), "save_async");
        if (way == Way::init) expect_ok(optimizer->init_param(0, ZERO_INITIALISER_CONSTANT, 5, 0, 0), "init_param");
      });
    }
    EXPECT_EQ(loaded(each, folder.path()), undisturbed(each, 2)) << static_cast<int>(way);
  }
}

int64_t status_kb(const char *field) {
  std::ifstream lines("/proc/self/status");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field)) return std::stoll(line.substr(std::strlen(field) + 1));
  }
  return -1;
}

int64_t descriptors() {
  int64_t count = 0;
  for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) count += entry.path().empty() ? 0 : 1;
  return count;
}

/// Neither memory nor descriptors nor threads grow from one save to the next.
TEST_P(EitherSnapshot, ManySavesLeaveNothingBehind) {
  const Case each{2, 2, GetParam(), 300'000};
  const int64_t saves = full_tests() ? 1000 : few_tests() ? 20 : 60;
  const int64_t settled = saves / 5;
  SaveFolder folder;
  run_world(each.ranks, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(each);
    const auto optimizer = begun_optimizer(group, model, manner_of(each, true));
    CheckpointKeys keys = keys_of(each);
    keys.emplace_back(ZERO_KEY_CHECKPOINT_KEEP, 2);
    const auto checkpoint = checkpoint_of(optimizer, keys);
    int64_t memory = 0;
    int64_t files = 0;
    int64_t threads = 0;
    for (int64_t number = 0; number < saves; ++number) {
      const Begun begun = begin_save(checkpoint, folder.path());
      step_alone(*optimizer, model, number);
      expect_ok(begun.wait(), "save_async");
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      if (group->rank() != 0 || (number != settled && number != saves - 1)) continue;
      if (number == settled) {
        memory = status_kb("VmRSS:");
        files = descriptors();
        threads = status_kb("Threads:");
        continue;
      }
      std::printf("%lld saves: VmRSS %lld kB, then %lld kB; descriptors %lld, then %lld; threads %lld, then %lld\n",
                  static_cast<long long>(saves), static_cast<long long>(memory), static_cast<long long>(status_kb("VmRSS:")),
                  static_cast<long long>(files), static_cast<long long>(descriptors()), static_cast<long long>(threads),
                  static_cast<long long>(status_kb("Threads:")));
      // Sanitizers keep freed memory for a while, and arenas of threads a few blocks. A leak of one bucket would take more.
      EXPECT_TRUE(few_tests() || status_kb("VmRSS:") <= memory + 4096);
      EXPECT_LE(descriptors(), files + 1);  // the last threads of the other rank may still end
      EXPECT_LE(status_kb("Threads:"), threads + 1);
    }
  });
  EXPECT_EQ(folder.saves().size(), 2U);
}

}  // namespace
}  // namespace zero::test::async_save_test
