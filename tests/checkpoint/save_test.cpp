/// @file Saves are written, found and read back, at any number of ranks.
#include "tests/checkpoint/sample_run.h"
#include "tests/checkpoint/scratch_folder.h"

#include <gtest/gtest.h>

#include <fstream>

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
  EXPECT_NE(found.why.find("state-00002-of-00002.safetensors has 4096 bytes, expected"), std::string::npos) << found.why;
  std::filesystem::resize_file(scratch.path() + "/" + first + "/manifest.safetensors", 100);
  EXPECT_EQ(find_save(saves, 0, &found).code(), ZERO_E_CHECKPOINT);
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

TEST(Save, AWriterWhoseFolderWasSweptFails) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string first = save_sample(saves, {}, 1).name;
  bool swept = false;
  const SampleSaved saved = save_sample(saves, {}, 2, {.as_rank = [&](int rank) {
    if (rank != 1 || std::exchange(swept, true)) return;
    for (const auto &entry : std::filesystem::directory_iterator(scratch.path())) {
      if (entry.path().filename() != first) std::filesystem::rename(entry.path(), scratch.path() + "/dead-x");
    }
  }});
  EXPECT_FALSE(saved.status.ok());
  expect_found(saves, 0, first);
}

}  // namespace
}  // namespace zero::tests
