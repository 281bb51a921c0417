/// @file Saves that earlier versions wrote are kept for ever: each is read, and what this version writes is the same byte for byte.
/// ZERO_WRITE_GOLDEN=FOLDER writes the save of this version there, once, when the format has got a new one.
#include "tests/checkpoint/sample_run.h"
#include "tests/checkpoint/scratch_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace zero::tests {
namespace {

using namespace checkpoint;

constexpr const char *kGolden = ZERO_GOLDEN_SAVES "/v1";

SampleSaved save_golden(const Folder &saves) {
  SaveDescription description = sample_description({.ranks = 2}, 77);
  description.id = "00112233445566770123456789abcdef";
  description.previous_id = "0011223344556677fedcba9876543210";
  std::vector<int64_t> writers;
  assign_model_files(&description, 4 << 10, &writers);
  return save_sample(saves, description, writers, {.rotate = false});
}

std::string bytes_of(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Golden, TheSaveOfVersion1IsRead) {
  Folder saves;
  ASSERT_TRUE(Folder::open(kGolden, &saves).ok());
  FoundSave found;
  const Status status = find_save(saves, 0, &found);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(found.manifest.description.step, 77U);
  for (const int64_t readers : {1, 2, 5}) {
    const Status compared = compare_sample(saves, found.name, found.manifest, readers);
    EXPECT_TRUE(compared.ok()) << compared.text();
  }
}

TEST(Golden, WhatIsWrittenHasTheSameBytes) {
  if (const char *const path = std::getenv("ZERO_WRITE_GOLDEN"); path != nullptr) {
    Folder saves;
    ASSERT_TRUE(Folder::open(path, &saves).ok());
    ASSERT_TRUE(save_golden(saves).status.ok());
  }
  const ScratchFolder scratch;
  const SampleSaved saved = save_golden(scratch.open());
  ASSERT_TRUE(saved.status.ok()) << saved.status.text();
  int64_t files = 0;
  for (const auto &entry : std::filesystem::directory_iterator(scratch.path() + "/" + saved.name)) {
    const auto golden = std::filesystem::path(kGolden) / saved.name / entry.path().filename();
    EXPECT_TRUE(bytes_of(entry.path()) == bytes_of(golden)) << entry.path().filename();
    ++files;
  }
  EXPECT_GE(files, 6);
}

}  // namespace
}  // namespace zero::tests
