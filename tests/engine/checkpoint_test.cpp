/// @file Saves and loads by several ranks: what goes wrong goes wrong alike on all of them, and costs nothing that was there before.
#include "core/file_calls.h"
#include "tests/engine/saved_runs.h"
#include "tests/sizes.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>

namespace zero::test::checkpoint_test {
namespace {

Manner manner_of(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 4096;
  manner.source = ZERO_SOURCE_SHARDS;
  return manner;
}

std::shared_ptr<Optimizer> begun(const std::shared_ptr<Group> &group, int64_t stage, Model model = saved_model()) {
  model.ranks = group->size();
  return begun_optimizer(group, model, manner_of(stage));
}

std::shared_ptr<Optimizer> sealed(const std::shared_ptr<Group> &group, int64_t stage, Model model = saved_model()) {
  model.ranks = group->size();
  return make_optimizer(group, model, manner_of(stage));
}

/// Every rank's status, to be compared after the world has ended.
class Statuses {
 public:
  void add(int64_t rank, const Status &status) {
    const std::lock_guard lock(mutex_);
    by_rank_[rank] = status;
  }
  /// The same code and text on all ranks.
  void expect_alike(int32_t code, const char *text) const {
    ASSERT_FALSE(by_rank_.empty());
    for (const auto &[rank, status] : by_rank_) {
      EXPECT_EQ(status.code(), code) << "rank " << rank << ": " << status.text();
      EXPECT_STREQ(status.text(), by_rank_.begin()->second.text());
      EXPECT_TRUE(contains(status, text)) << status.text();
    }
  }

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, Status> by_rank_;
};

/// The system's calls on files, of which some fail.
class SomeFail final : public FileCalls {
 public:
  /// The reason for which a call of that name on a file of that name fails; 0: it does not.
  using Fails = std::function<int(const char *call, const std::string &name)>;
  explicit SomeFail(Fails fails) : fails_(std::move(fails)) {}

  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override {
    if (refuses("open", name)) return OwnedFd();
    OwnedFd opened = system_.open_at(folder, name, flags, mode);
    const std::lock_guard lock(mutex_);
    if (opened.valid()) names_[opened.get()] = name;
    return opened;
  }
  int make_folder(int folder, const char *name, mode_t mode) override {
    return refuses("mkdir", name) ? -1 : system_.make_folder(folder, name, mode);
  }
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override {
    return refuses("read", name_of(file)) ? -1 : system_.read_at(file, out, nbytes, offset);
  }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    return refuses("write", name_of(file)) ? -1 : system_.write_at(file, data, nbytes, offset);
  }
  int set_direct(int file, bool direct) override { return system_.set_direct(file, direct); }
  int allocate(int file, int64_t nbytes) override { return refuses("allocate", name_of(file)) ? -1 : system_.allocate(file, nbytes); }
  int truncate(int file, int64_t nbytes) override { return refuses("truncate", name_of(file)) ? -1 : system_.truncate(file, nbytes); }
  int sync(int file) override { return refuses("sync", name_of(file)) ? -1 : system_.sync(file); }
  int close(OwnedFd file) override {
    const bool refused = refuses("close", name_of(file.get()));
    const int status = system_.close(std::move(file));
    if (!refused) return status;
    errno = EIO;
    return -1;
  }
  int rename(int folder, const char *from, int to_folder, const char *to) override {
    return refuses("rename", to) ? -1 : system_.rename(folder, from, to_folder, to);
  }
  int unlink(int folder, const char *name, int flags) override { return system_.unlink(folder, name, flags); }
  int stat(int file, struct stat *out) override { return system_.stat(file, out); }
  int stat_at(int folder, const char *name, struct stat *out) override { return system_.stat_at(folder, name, out); }
  int list(int folder, std::vector<FolderEntry> *out) override { return system_.list(folder, out); }
  int64_t free_nbytes(int file) override { return system_.free_nbytes(file); }

  int64_t refused() const { return refused_.load(); }

 private:
  std::string name_of(int file) {
    const std::lock_guard lock(mutex_);
    return names_[file];
  }
  bool refuses(const char *call, const std::string &name) {
    const int reason = fails_(call, name);
    if (reason == 0) return false;
    refused_.fetch_add(1);
    errno = reason;
    return true;
  }

  const Fails fails_;
  FileCalls &system_ = system_file_calls();
  std::mutex mutex_;
  std::map<int, std::string> names_;
  std::atomic<int64_t> refused_{0};
};

void damage(const std::string &path, int64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
  ASSERT_TRUE(file.good()) << path;
}

class SavedStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, SavedStages, testing::Range<int64_t>(0, 4));

/// At each call on a file of one rank, or on those of rank 0: the disk is full, or reports an error.
TEST_P(SavedStages, AFailedSaveCostsNothing) {
  struct Failure {
    const char *call;
    const char *file;
    int reason;
  };
  std::vector<Failure> failures = {{"mkdir", "save-", ENOSPC},
                                   {"open", "state-00002", EACCES},
                                   {"allocate", "state-00002", ENOSPC},
                                   {"write", "state-00001", EIO},
                                   {"write", "model-00002", ENOSPC},
                                   {"sync", "state-00002", EIO},
                                   {"close", "state-00001", EDQUOT},
                                   {"write", "manifest", ENOSPC},
                                   {"sync", "manifest", EIO},
                                   {"rename", "manifest.safetensors", EIO}};
  int64_t refused = 0;
  for (const Failure &failure : failures) {
    SaveFolder folder;
    Statuses statuses;
    SomeFail calls([&](const char *call, const std::string &name) {
      return std::strcmp(call, failure.call) == 0 && name.starts_with(failure.file) ? failure.reason : 0;
    });
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const Model model = saved_model();
      const auto optimizer = begun(group, GetParam());
      const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_SYNC, 1}});
      step_alone(*optimizer, model, 0);
      expect_ok(save(*checkpoint, folder.path()), "first save");
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      {
        static std::unique_ptr<FileCallsReplaced> replaced;
        if (group->rank() == 0) replaced = std::make_unique<FileCallsReplaced>(calls);
        expect_ok(group->queue()->run(barrier(*group)), "barrier");
        step_alone(*optimizer, model, 1);
        const std::vector<std::byte> before = read_slots(*optimizer, model);
        statuses.add(group->rank(), save(*checkpoint, folder.path()));
        EXPECT_EQ(read_slots(*optimizer, model), before);
        expect_ok(group->queue()->run(barrier(*group)), "barrier");
        if (group->rank() == 0) replaced.reset();
        expect_ok(group->queue()->run(barrier(*group)), "barrier");
      }
      EXPECT_EQ(folder.saves().size(), 1U) << failure.call << " " << failure.file;
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      step_alone(*optimizer, model, 2);
      expect_ok(save(*checkpoint, folder.path()), "third save");
    });
    statuses.expect_alike(ZERO_E_SYSTEM, failure.file);
    EXPECT_GT(calls.refused(), 0) << failure.call << " " << failure.file;
    EXPECT_EQ(folder.saves().size(), 2U) << failure.call << " " << failure.file;
    EXPECT_EQ(folder.entries().size(), 2U) << "leftovers of " << failure.call << " " << failure.file;
    refused += calls.refused();
  }
  std::printf("stage %lld: failures = %zu, calls that were refused = %lld\n", static_cast<long long>(GetParam()), failures.size(),
              static_cast<long long>(refused));
}

/// The newest is passed over for what is damaged in it, and the ranks agree on which one they take.
TEST_P(SavedStages, ADamagedSaveIsPassedOver) {
  SaveFolder folder;
  std::vector<std::byte> first;
  const Model model = saved_model();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, GetParam());
    const auto checkpoint = checkpoint_of(optimizer);
    step_alone(*optimizer, model, 0);
    expect_ok(save(*checkpoint, folder.path()), "save");
    const std::vector<std::byte> slots = read_slots(*optimizer, model);
    if (group->rank() == 0) first = slots;
    step_alone(*optimizer, model, 1);
    expect_ok(save(*checkpoint, folder.path()), "save");
  });
  const std::string newest = folder.path() + "/" + folder.saves().back();
  damage(newest + "/state-00002-of-00002.safetensors", 4096 + 17);
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, GetParam());
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
    EXPECT_EQ(result.fallback, 1);
    EXPECT_EQ(result.step, 1);
    EXPECT_EQ(read_slots(*optimizer, model), first);
  });
  // Asked for by name it is an error, and the optimizer is sealed and nothing else.
  Statuses statuses;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, GetParam());
    const auto checkpoint = checkpoint_of(optimizer);
    statuses.add(group->rank(), load(*checkpoint, newest));
    EXPECT_EQ(run_task(*optimizer, optimizer->step(nullptr)).code(), ZERO_E_STATE);
    expect_ok(load(*checkpoint, folder.path()), "load");
    EXPECT_EQ(read_slots(*optimizer, model), first);
    step_alone(*optimizer, model, 1);
  });
  statuses.expect_alike(ZERO_E_CHECKPOINT, "state-00002-of-00002.safetensors");
  damage(newest + "/manifest.safetensors", 40);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, GetParam());
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
    EXPECT_EQ(result.fallback, 1);
    EXPECT_EQ(read_slots(*optimizer, model), first);
  });
}

TEST(Saved, NothingIsWrittenWhereRanksDisagree) {
  SaveFolder one;
  SaveFolder other;
  const Model model = saved_model();
  Statuses folders;
  Statuses steps;
  Statuses lists;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, 1);
    const auto checkpoint = checkpoint_of(optimizer);
    folders.add(group->rank(), save(*checkpoint, group->rank() == 2 ? other.path() : one.path()));
    float mine = 0;
    const int64_t shape = 1;
    const auto with_tensor = checkpoint_of(optimizer);
    if (group->rank() != 1) expect_ok(with_tensor->things().add_tensor("loss", ZERO_DTYPE_F32, &shape, 1, &mine, ZERO_SCOPE_ONE), "add_tensor");
    lists.add(group->rank(), save(*with_tensor, one.path()));
    EXPECT_TRUE(one.entries().empty());
    EXPECT_TRUE(other.entries().empty());
    expect_ok(save(*checkpoint, one.path()), "save");
    step_alone(*optimizer, model, 0);
  });
  folders.expect_alike(ZERO_E_MISMATCH, "differ between ranks");
  lists.expect_alike(ZERO_E_MISMATCH, "rank 1 has");
}

TEST(Saved, CallsInTheWrongPhaseChangeNothing) {
  SaveFolder folder;
  const Model model = saved_model();
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto early = sealed(group, 1);
    EXPECT_EQ(save(*checkpoint_of(early), folder.path()).code(), ZERO_E_STATE);
    const auto optimizer = begun(group, 1);
    const auto checkpoint = checkpoint_of(optimizer);
    void *data = nullptr;
    int64_t accumulate = 0;
    // On one rank alone it is everybody's error.
    if (group->rank() == 1) expect_ok(optimizer->grad_acquire(0, &data, &accumulate), "grad_acquire");
    EXPECT_EQ(save(*checkpoint, folder.path()).code(), ZERO_E_STATE);
    EXPECT_EQ(load(*checkpoint, folder.path()).code(), ZERO_E_STATE);
    expect_ok(run_task(*optimizer, optimizer->reduce(nullptr)), "reduce");
    EXPECT_EQ(save(*checkpoint, folder.path()).code(), ZERO_E_STATE);
    expect_ok(run_task(*optimizer, optimizer->apply()), "apply");
    expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
    EXPECT_TRUE(folder.entries().empty());
    EXPECT_EQ(load(*checkpoint, folder.path()).code(), ZERO_E_NOT_FOUND);
    step_alone(*optimizer, model, 1);
    expect_ok(save(*checkpoint, folder.path()), "save");
  });
  EXPECT_EQ(folder.saves().size(), 1U);
}

TEST(Saved, OnlyTheNewestOfTheRunAreKept) {
  SaveFolder folder;
  const Model model = saved_model();
  const auto train_and_save = [&](int64_t first, int64_t last) {
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = sealed(group, 2);
      const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_KEEP, 2}});
      const Status found = load(*checkpoint, folder.path());
      if (found.code() == ZERO_E_NOT_FOUND) expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_LOCAL)), "begin");
      for (int64_t step = first; step < last; ++step) {
        step_alone(*optimizer, model, step);
        expect_ok(save(*checkpoint, folder.path()), "save");
      }
    });
  };
  train_and_save(0, 4);
  const std::vector<std::string> kept = folder.saves();
  ASSERT_EQ(kept.size(), 2U);
  train_and_save(4, 5);
  EXPECT_EQ(folder.saves().size(), 2U);
  EXPECT_EQ(folder.saves().front(), kept.back());
}

/// Names, numbers of tensors and dtypes that are not those of the save.
TEST(Loaded, AnotherModelIsAnErrorUnlessKeysAllowIt) {
  SaveFolder folder;
  Model model = saved_model();
  run_world(2, [&](const std::shared_ptr<Group> &group) { expect_ok(save(*checkpoint_of(begun(group, 1)), folder.path()), "save"); });
  const auto load_as = [&](const Model &here, const CheckpointKeys &keys, int32_t part, zero_checkpoint_result *out) {
    Statuses statuses;
    Status status;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = sealed(group, 3, here);
      const auto checkpoint = checkpoint_of(optimizer, keys);
      const Status mine = load(*checkpoint, folder.path(), part, out != nullptr && group->rank() == 0 ? out : nullptr);
      statuses.add(group->rank(), mine);
      if (group->rank() == 0) status = mine;
      if (mine.ok()) step_alone(*optimizer, here, 0);
    });
    statuses.expect_alike(status.code(), "");
    return status;
  };
  Model more = model;
  more.counts.push_back(40);
  Status status = load_as(more, {}, ZERO_PART_ALL, nullptr);
  EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
  EXPECT_TRUE(contains(status, "ZERO_KEY_CHECKPOINT_MISSING = 1") && contains(status, "\"p8\"")) << status.text();
  zero_checkpoint_result result{};
  EXPECT_TRUE(load_as(more, {{ZERO_KEY_CHECKPOINT_MISSING, 1}}, ZERO_PART_ALL, &result).ok());
  EXPECT_EQ(result.missing, 1);
  Model fewer = model;
  fewer.counts.pop_back();
  status = load_as(fewer, {}, ZERO_PART_ALL, nullptr);
  EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
  EXPECT_TRUE(contains(status, "ZERO_KEY_CHECKPOINT_EXTRA = 1") && contains(status, "\"p7\"")) << status.text();
  EXPECT_TRUE(load_as(fewer, {{ZERO_KEY_CHECKPOINT_EXTRA, 1}}, ZERO_PART_ALL, &result).ok());
  EXPECT_EQ(result.extra, 1);
  Model longer = model;
  longer.counts[1] = 18;
  status = load_as(longer, {}, ZERO_PART_ALL, nullptr);
  EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
  EXPECT_TRUE(contains(status, "\"p1\" has shape [17] in the save, but [18] here")) << status.text();
  Model other = model;
  other.algorithm = "lion";
  EXPECT_EQ(load_as(other, {}, ZERO_PART_ALL, nullptr).code(), ZERO_E_CHECKPOINT);
  EXPECT_TRUE(load_as(other, {}, ZERO_PART_PARAMS, &result).ok());
}

/// The value of an element is its master; what stands for it here is rounded from that once.
TEST(Loaded, ParametersMayHaveOtherDtypesAndMomentsByKey) {
  SaveFolder folder;
  Model model = saved_model();
  std::vector<float> expected;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, 1);
    step_alone(*optimizer, model, 0, 2);
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
    const std::vector<float> values = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
    if (group->rank() == 0) expected = values;
  });
  for (const int64_t master : {ZERO_MASTER_F32 + 0, ZERO_MASTER_REMAINDER + 0, ZERO_MASTER_NONE + 0}) {
    for (const bool averages : {false, true}) {
      Model here = model;
      here.recipe.dtype = DType::bf16;
      here.recipe.master = master;
      here.recipe.average = averages;
      run_world(3, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = sealed(group, 2, here);
        zero_checkpoint_result result{};
        expect_ok(load(*checkpoint_of(optimizer), folder.path(), ZERO_PART_ALL, &result), "load");
        EXPECT_EQ(result.converted, 7);  // those with elements
        const auto expect_values = [&](int32_t slot) { EXPECT_EQ(differing(read_slot(*optimizer, here, slot), expected), 0) << slot; };
        if (master == ZERO_MASTER_F32) expect_values(ZERO_SLOT_MASTER);
        if (averages) expect_values(ZERO_SLOT_AVERAGE);
        std::vector<float> params;
        for (int64_t id = 0; id < here.tensors(); ++id) {
          std::vector<std::byte> stored(static_cast<size_t>(here.counts[static_cast<size_t>(id)] * 2));
          expect_ok(run_task(*optimizer, optimizer->read(id, ZERO_SLOT_PARAM, 0, stored.data(), here.counts[static_cast<size_t>(id)])), "read");
          const std::vector<float> values = decode(stored.data(), DType::bf16, here.counts[static_cast<size_t>(id)]);
          params.insert(params.end(), values.begin(), values.end());
        }
        const std::vector<std::byte> rounded = encode(expected, DType::bf16);
        const std::vector<float> nearest = decode(rounded.data(), DType::bf16, std::ssize(expected));
        // Ties of a parameter with a remainder are rounded away from zero.
        EXPECT_LE(differing(params, nearest), master == ZERO_MASTER_REMAINDER ? 8 : 0);
        step_alone(*optimizer, here, 2);
      });
    }
  }
  Model bf16 = model;
  bf16.recipe.first_moment = DType::bf16;
  bf16.recipe.second_moment = DType::f8ue5m3;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, 2, bf16);
    const Status status = load(*checkpoint_of(optimizer), folder.path());
    EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
    EXPECT_TRUE(contains(status, "ZERO_KEY_CHECKPOINT_CONVERT = 1")) << status.text();
    const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_CONVERT, 1}});
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint, folder.path(), ZERO_PART_ALL, &result), "load");
    EXPECT_GT(result.converted, 7);
    EXPECT_NE(checkpoint->skipped().find("converted \"p0:first_moment\""), std::string::npos) << checkpoint->skipped();
    EXPECT_EQ(differing(read_slot(*optimizer, bf16, ZERO_SLOT_PARAM), expected), 0);
    step_alone(*optimizer, bf16, 2);
  });
}

}  // namespace
}  // namespace zero::test::checkpoint_test
