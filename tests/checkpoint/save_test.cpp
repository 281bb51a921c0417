/// @file Saves are written, found and read back, at any number of ranks.
#include "tests/checkpoint/sample_run.h"
#include "tests/checkpoint/scratch_folder.h"
#include "tests/forwarded_calls.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace zero::tests {
namespace {

using namespace checkpoint;

void expect_found(const Folder &saves, int64_t index, const std::string &name, int64_t readers = 1) {
  FoundSave found;
  const Status status = find_save(saves, index, &found);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(found.name, name);
  const Status compared = compare_sample(saves, found.name, found.manifest, readers);
  EXPECT_TRUE(compared.ok()) << compared.text();
}

class SavesOf : public ::testing::TestWithParam<int64_t> {};

TEST_P(SavesOf, AnyRanksAreReadByAnyRanks) {
  for (const bool model : {true, false}) {
    const ScratchFolder scratch;
    const Folder saves = scratch.open();
    const SampleSaved saved = save_sample(saves, {.ranks = GetParam(), .model = model, .scale = 7}, 5);
    ASSERT_TRUE(saved.status.ok()) << saved.status.text();
    for (int64_t readers = 1; readers <= 8; ++readers) expect_found(saves, 0, saved.name, readers);
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, SavesOf, ::testing::Values(1, 2, 3, 4, 5, 8));

/// On a disk, past the page cache where it can.
TEST(Save, OfManyBlocksIsVerified) {
  const ScratchFolder scratch(::testing::TempDir());
  const Folder saves = scratch.open();
  const SampleSaved saved = save_sample(saves, {.ranks = 2, .scale = 1400}, 5);
  ASSERT_TRUE(saved.status.ok()) << saved.status.text();
  FoundSave found;
  ASSERT_TRUE(find_save(saves, 0, &found).ok());
  EXPECT_GT(found.manifest.nbytes(), 50 << 20);
  SaveReader reader(found.manifest, {.staging_nbytes = 4 << 20});
  ASSERT_TRUE(reader.open(saves, found.name, 0).ok());
  const Status status = reader.verify(nullptr);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(reader.counts().nbytes, found.manifest.nbytes());
  expect_found(saves, 0, saved.name, 3);
}

TEST(Save, AnEmptyFolderHasNone) {
  const ScratchFolder scratch;
  FoundSave found;
  EXPECT_EQ(find_save(scratch.open(), 0, &found).code(), ZERO_E_NOT_FOUND);
}

TEST(Save, TheNewestIsFoundAndTheOnesBeforeItByIndex) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  std::vector<std::string> names;
  for (uint64_t step = 1; step <= 3; ++step) names.push_back(save_sample(saves, {}, step).name);
  for (int64_t index = 0; index < 3; ++index) expect_found(saves, index, names[static_cast<size_t>(2 - index)]);
  FoundSave found;
  EXPECT_EQ(find_save(saves, 3, &found).code(), ZERO_E_NOT_FOUND);
}

TEST(Save, ADamagedNewestIsPassedOverAndSaysWhy) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string first = save_sample(saves, {}, 1).name;
  const std::string second = save_sample(saves, {}, 2).name;
  std::filesystem::resize_file(scratch.path() + "/" + second + "/state-00002-of-00002.safetensors", 4096);
  FoundSave found;
  ASSERT_TRUE(find_save(saves, 0, &found).ok());
  EXPECT_EQ(found.name, first);
  EXPECT_EQ(found.passed_over, 1);
  std::filesystem::resize_file(scratch.path() + "/" + first + "/manifest.safetensors", 100);
  const Status none = find_save(saves, 0, &found);
  EXPECT_EQ(none.code(), ZERO_E_CHECKPOINT);
  for (const char *part : {"damaged saves: 2", "state-00002-of-00002.safetensors has 4096 bytes, expected",
                           "manifest.safetensors is damaged"}) {
    EXPECT_NE(std::strstr(none.text(), part), nullptr) << none.text();
  }
}

TEST(Save, RotationKeepsTheNewestOfTheRunAndNoOtherRunIsTouched) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  SaveDescription foreign = sample_description({.model = false}, 1, "ffeeddccbbaa99887766554433221100");
  ASSERT_TRUE(save_sample(saves, foreign, {}, {}).status.ok());
  for (uint64_t step = 1; step <= 5; ++step) ASSERT_TRUE(save_sample(saves, {}, step, {.keep = 2}).status.ok());
  std::vector<SaveEntry> entries;
  ASSERT_TRUE(list_saves(saves, &entries).ok());
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].step, 5U);
  EXPECT_EQ(entries[1].step, 4U);
  EXPECT_EQ(entries[2].id, foreign.id);
}

TEST(Save, LeftoversOfTheRunAreSwept) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string own = std::string(kSampleRun).substr(0, 16) + "0123456789abcdef";
  const std::string other = "ffffffffffffffff0123456789abcdef";
  for (const std::string &name : {save_name(9, own), "dead-" + save_name(8, own), save_name(9, other)}) {
    std::filesystem::create_directory(scratch.path() + "/" + name);
    std::ofstream(scratch.path() + "/" + name + "/state-00001-of-00002.safetensors") << "half";
  }
  ASSERT_TRUE(save_sample(saves, {}, 1).status.ok());
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/" + save_name(9, own)));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/dead-" + save_name(8, own)));
  EXPECT_TRUE(std::filesystem::exists(scratch.path() + "/" + save_name(9, other)));
}

TEST(Save, ASaveThatWasThoughtDeadButIsCommittedComesBack) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string name = save_sample(saves, {}, 3).name;
  std::filesystem::rename(scratch.path() + "/" + name, scratch.path() + "/dead-" + name);
  ASSERT_TRUE(save_sample(saves, {}, 4).status.ok());
  expect_found(saves, 1, name);
}

/// Another job sweeps the folder of a save while its manifest is put into place.
class SweptAtCommit final : public ForwardedCalls {
 public:
  SweptAtCommit(std::string saves, bool made_anew) : saves_(std::move(saves)), made_anew_(made_anew) {}
  int rename(int folder, const char *from, int to_folder, const char *to) override {
    const int result = ForwardedCalls::rename(folder, from, to_folder, to);
    if (std::string(to) != kManifestName) return result;
    for (const auto &entry : std::filesystem::directory_iterator(saves_)) {
      const std::string path = entry.path();
      std::filesystem::rename(path, saves_ + "/dead-" + entry.path().filename().string());
      if (made_anew_) std::filesystem::create_directory(path);
      break;
    }
    return result;
  }

 private:
  const std::string saves_;
  const bool made_anew_;
};

TEST(Save, AWriterWhoseFolderIsSweptIsNotAcknowledged) {
  for (const bool made_anew : {false, true}) {
    const ScratchFolder scratch;
    const Folder saves = scratch.open();
    SweptAtCommit calls(scratch.path(), made_anew);
    const FileCallsReplaced replaced(calls);
    const SampleSaved saved = save_sample(saves, {}, 2);
    EXPECT_EQ(saved.status.code(), ZERO_E_SYSTEM);
    EXPECT_NE(std::strstr(saved.status.text(), "was renamed or removed while it was written"), nullptr) << saved.status.text();
    EXPECT_FALSE(saved.committed);
    EXPECT_TRUE(saved.maybe);
  }
}

/// A save of the sample's run with an id that ends in 16 times `digit`.
std::string save_as(const Folder &saves, uint64_t step, const std::string &created, char digit, const SampleOptions &options = {}) {
  SaveDescription description = sample_description({.minimal = true}, step);
  description.created = created;
  description.id = std::string(kSampleRun).substr(0, 16) + std::string(16, digit);
  std::vector<int64_t> writers;
  assign_model_files(&description, 1 << 20, &writers);
  const SampleSaved saved = save_sample(saves, description, writers, options);
  EXPECT_TRUE(saved.status.ok()) << saved.status.text();
  return saved.name;
}

std::vector<std::string> names_in(const Folder &saves) {
  std::vector<SaveEntry> entries;
  EXPECT_TRUE(list_saves(saves, &entries).ok());
  std::vector<std::string> names;
  for (const SaveEntry &entry : entries) names.push_back(entry.name);
  return names;
}

TEST(Save, OfTwoSavesOfOneStepTheLaterIsTheNewerWhateverItsName) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string earlier = save_as(saves, 5, "2026-01-01T00:00:00Z", 'f');
  const std::string later = save_as(saves, 5, "2026-01-02T00:00:00Z", '0', {.rotate = false});
  FoundSave found;
  ASSERT_TRUE(find_save(saves, 0, &found).ok());
  EXPECT_EQ(found.name, later);
  std::vector<std::string> old;
  ASSERT_TRUE(prunable_saves(saves, 1, &old).ok());
  EXPECT_EQ(old, std::vector<std::string>{earlier});
  RotateCounts counts;
  FoundSave before;
  ASSERT_TRUE(find_save(saves, 1, &before).ok());
  ASSERT_TRUE(rotate_saves(saves, earlier, before.manifest, 1, true, &counts).ok());
  EXPECT_EQ(counts.removed, 0) << "a newer save was removed";
  ASSERT_TRUE(rotate_saves(saves, later, found.manifest, 1, true, &counts).ok());
  EXPECT_EQ(counts.removed, 1);
  EXPECT_GT(counts.freed_nbytes, 0);
  EXPECT_EQ(names_in(saves), std::vector<std::string>{later});
}

/// Refuses to take the commit away from one save.
class OneSaveStays final : public ForwardedCalls {
 public:
  explicit OneSaveStays(std::string path) : path_(std::move(path)) {}
  int rename(int folder, const char *from, int to_folder, const char *to) override {
    std::error_code ignored;
    const bool inside = std::filesystem::equivalent(path_, "/proc/self/fd/" + std::to_string(folder), ignored);
    if (inside) return errno = EACCES, -1;
    return ForwardedCalls::rename(folder, from, to_folder, to);
  }

 private:
  const std::string path_;
};

TEST(Save, RotationGoesOnAfterASaveThatCannotBeRemoved) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  std::vector<std::string> names;
  for (const char digit : {'1', '2', '3', '4'}) {
    names.push_back(save_as(saves, static_cast<uint64_t>(digit - '0'), "", digit, {.rotate = false}));
  }
  const std::string leftover = save_name(9, std::string(kSampleRun).substr(0, 16) + "0123456789abcdef");
  std::filesystem::create_directory(scratch.path() + "/" + leftover);
  FoundSave newest;
  ASSERT_TRUE(find_save(saves, 0, &newest).ok());
  RotateCounts counts;
  {
    OneSaveStays calls(scratch.path() + "/" + names[1]);
    const FileCallsReplaced replaced(calls);
    const Status status = rotate_saves(saves, names[3], newest.manifest, 1, true, &counts);
    EXPECT_EQ(status.code(), ZERO_E_SYSTEM);
    EXPECT_NE(std::strstr(status.text(), names[1].c_str()), nullptr) << status.text();
  }
  EXPECT_EQ(counts.removed, 2);
  EXPECT_EQ(counts.swept, 1);
  EXPECT_EQ(names_in(saves), (std::vector<std::string>{names[3], names[1]}));
  expect_found(saves, 1, names[1]);
  ASSERT_TRUE(rotate_saves(saves, names[3], newest.manifest, 1, true, &counts).ok());
  EXPECT_EQ(names_in(saves), std::vector<std::string>{names[3]});
}

TEST(Save, OneThatIsNotThereCannotBeDeleted) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  int64_t freed = 0;
  const Status status = delete_save(saves, save_name(1, kSampleRun), true, &freed);
  EXPECT_EQ(status.code(), ZERO_E_NOT_FOUND) << status.text();
}

/// The order of syncs and removals.
class NotedCalls final : public ForwardedCalls {
 public:
  int sync(int file) override {
    order += "s";
    return ForwardedCalls::sync(file);
  }
  int unlink(int folder, const char *name, int flags) override {
    order += "u";
    return ForwardedCalls::unlink(folder, name, flags);
  }
  std::string order;
};

/// Before the sync, a power cut could bring the manifest back, but not the files.
TEST(Save, ADeletionThatWasInterruptedIsMadeDurableBeforeFilesGo) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string old = save_as(saves, 1, "", '1');
  const std::string newest = save_as(saves, 2, "", '2');
  std::filesystem::rename(scratch.path() + "/" + old + "/" + kManifestName, scratch.path() + "/" + old + "/" + kManifestDeleted);
  FoundSave found;
  ASSERT_TRUE(find_save(saves, 0, &found).ok());
  NotedCalls calls;
  const FileCallsReplaced replaced(calls);
  RotateCounts counts;
  ASSERT_TRUE(rotate_saves(saves, newest, found.manifest, 0, true, &counts).ok());
  EXPECT_EQ(counts.swept, 1);
  EXPECT_EQ(calls.order.substr(0, 2), "su") << calls.order;
}

/// No memory is left once files are listed or removed.
class NoMemoryToRemove final : public ForwardedCalls {
 public:
  int unlink(int, const char *, int) override {
    ++calls;
    throw std::bad_alloc();
  }
  int calls = 0;
};

TEST(Save, ARemovalWithoutMemoryLeavesTheRestForTheSweep) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  SaveDescription description = sample_description({.minimal = true}, 3);
  std::vector<int64_t> writers;
  assign_model_files(&description, 1 << 20, &writers);
  const std::string name = save_name(3, description.id);
  ASSERT_TRUE(create_save(saves, name, true).ok());
  SaveWriter writer(description, SaveWriter::files_of(description, writers, 0), {.staging_nbytes = 2 << 20});
  ASSERT_TRUE(writer.open(saves, name, 0).ok());
  ASSERT_TRUE(writer.preallocate().ok());
  {
    NoMemoryToRemove calls;
    const FileCallsReplaced replaced(calls);
    writer.remove();
    remove_save(saves, name);
    EXPECT_GE(calls.calls, 2);
  }
  EXPECT_TRUE(std::filesystem::exists(scratch.path() + "/" + name));
  ASSERT_TRUE(save_sample(saves, {.minimal = true}, 4).status.ok());
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/" + name));
}

}  // namespace
}  // namespace zero::tests
