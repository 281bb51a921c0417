/// @file Manifests: what goes in comes out, and one whose sum is right is still not trusted.
#include "checkpoint/manifest.h"

#include "checkpoint/description_json.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/save_reader.h"
#include "core/hash.h"
#include "tests/checkpoint/sample_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>

namespace zero::tests {
namespace {

using namespace checkpoint;

Manifest sample_manifest(const SampleShape &shape = {}) {
  Manifest manifest;
  manifest.description = sample_description(shape, 12);
  std::vector<int64_t> writers;
  assign_model_files(&manifest.description, 4000, &writers);
  const FilePlan plan(manifest.description);
  for (int64_t file = 0; file < plan.file_count(); ++file) {
    manifest.files.push_back({file, 1000 + file * kBlockNbytes, std::vector<uint64_t>(static_cast<size_t>(file + 1), 7)});
  }
  return manifest;
}

std::vector<std::byte> encoded(const Manifest &manifest) {
  std::vector<std::byte> bytes;
  const Status status = encode_manifest(manifest, &bytes);
  EXPECT_TRUE(status.ok()) << status.text();
  return bytes;
}

void set_sum(std::vector<std::byte> *bytes) {
  const Hash128 sum = hash128_of(bytes->data(), bytes->size() - 16);
  std::memcpy(bytes->data() + bytes->size() - 16, &sum.low, 8);
  std::memcpy(bytes->data() + bytes->size() - 8, &sum.high, 8);
}

/// The manifest with one text in place of another of the same length, and the right sum.
Status decode_with(std::vector<std::byte> bytes, const std::string &from, const std::string &to) {
  EXPECT_EQ(from.size(), to.size());
  const std::string text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) std::memcpy(bytes.data() + at, to.data(), to.size());
  set_sum(&bytes);
  Manifest manifest;
  return decode_manifest(bytes, "m", &manifest);
}

TEST(Manifest, WhatGoesInComesOut) {
  for (const int64_t ranks : {1, 3}) {
    const Manifest manifest = sample_manifest({.ranks = ranks});
    const std::vector<std::byte> bytes = encoded(manifest);
    Manifest again;
    const Status status = decode_manifest(bytes, "m", &again);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(encoded(again), bytes);
    EXPECT_EQ(description_text(again.description), description_text(manifest.description));
    EXPECT_EQ(again.description.sections[0].cuts, manifest.description.sections[0].cuts);
    EXPECT_EQ(again.files[2].block_hashes, manifest.files[2].block_hashes);
    EXPECT_TRUE(prove_cover(again).ok());
  }
}

TEST(Manifest, TheLargestStepAndUnusualNamesSurvive) {
  Manifest manifest = sample_manifest();
  manifest.description.step = UINT64_MAX;
  manifest.description.sections[0].tensors[0].name = "a:b/../\"\\\n\xc3\xa9";
  Manifest again;
  ASSERT_TRUE(decode_manifest(encoded(manifest), "m", &again).ok());
  EXPECT_EQ(again.description.step, UINT64_MAX);
  EXPECT_EQ(again.description.sections[0].tensors[0].name, "a:b/../\"\\\n\xc3\xa9");
}

TEST(Manifest, ANewerVersionIsRefusedWithBothNumbers) {
  const Status status = decode_with(encoded(sample_manifest()), R"("zero.version":"1")", R"("zero.version":"2")");
  EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
  EXPECT_NE(std::strstr(status.text(), "version 2"), nullptr) << status.text();
  EXPECT_NE(std::strstr(status.text(), "version 1"), nullptr) << status.text();
}

TEST(Manifest, UnknownFieldsAreIgnored) {
  std::string text = description_text(sample_description({}, 1));
  text.insert(1, R"("later":{"x":[1,2]},)");
  SaveDescription description;
  EXPECT_TRUE(parse_description(text, "m", &description).ok());
}

TEST(Manifest, LiesWithARightSumAreRefused) {
  const std::vector<std::byte> bytes = encoded(sample_manifest());
  const std::pair<const char *, const char *> lies[] = {
      {R"("prefix":"","ranks":2)", R"("prefix":"","ranks":9)"},
      {R"("model_files":)", R"("model_filez":)"},
      {R"("name":"norm.weight")", R"("name":"head.weight")"},
      {R"("shape":[37])", R"("shape":[38])"},
      {R"("shape":[37])", R"("shape":[-7])"},
      {R"("shape":[37])", R"("shape":[.7])"},
      {R"("placement":"pieces")", R"("placement":"nowher")"},
      {R"("per":256)", R"("per":-56)"},
      {R"("copy_entries":130)", R"("copy_entries":-30)"},
      {R"("type":"F32")", R"("type":"F33")"},
      {R"("scope":"one")", R"("scope":"two")"},
      {R"("step":12)", R"("step":-2)"},
      {R"("tied_to":"embed.weight")", R"("tied_to":["bed.weight"])"},
      {"\"cuts.0\":", "\"cuts.7\":"},
      {"\"block_first\":", "\"block_firsd\":"},
      {R"("zero.save":"0)", R"("zero.save":"1)"},
  };
  for (const auto &[from, to] : lies) {
    const Status status = decode_with(bytes, from, to);
    EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT) << from << " -> " << to << ": " << status.text();
  }
  std::printf("%zu lies\n", std::size(lies));
}

TEST(Manifest, ChangedNumbersWithARightSumAreRefused) {
  const Manifest manifest = sample_manifest();
  const std::vector<std::byte> bytes = encoded(manifest);
  // file_nbytes, block_first and cuts: every word changed to something else.
  const size_t data = (bytes.size() > 8192 && std::to_integer<int>(bytes[4096]) == 0) ? 8192 : 4096;
  const auto files = manifest.files.size();
  size_t hashes = 0;
  for (const FileReport &file : manifest.files) hashes += file.block_hashes.size();
  const size_t cuts = manifest.description.sections[0].cuts.size();
  int64_t refused = 0;
  for (size_t word = 0; word < 2 * files + 1 + hashes + cuts; ++word) {
    if (word >= 2 * files + 1 && word < 2 * files + 1 + hashes) continue;  // any hash may be one
    for (const int64_t value : {int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{12345678901}}) {
      std::vector<std::byte> changed = bytes;
      std::memcpy(changed.data() + data + word * 8, &value, 8);
      set_sum(&changed);
      Manifest found;
      EXPECT_EQ(decode_manifest(changed, "m", &found).code(), ZERO_E_CHECKPOINT) << word << " = " << value;
      ++refused;
    }
  }
  EXPECT_GE(refused, 100);
}

/// A section of more ranks than the save has, as a hostile file may have many of, is refused before anything is done for each rank.
TEST(Manifest, SectionsOfMoreRanksThanTheSaveAreRefused) {
  SaveDescription description = sample_description({.model = false}, 1);
  Section many;
  many.kind = "buffer";
  many.rank_count = int64_t{1} << 61;
  description.sections.push_back(many);
  const Status status = check_description(description);
  EXPECT_EQ(status.code(), ZERO_E_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(status.text(), "but must have 1 to 2, the ranks of the save"), nullptr) << status.text();
  const Status decoded = decode_with(encoded(sample_manifest()), R"("prefix":"data.","ranks":2)", R"("prefix":"data.","ranks":3)");
  EXPECT_EQ(decoded.code(), ZERO_E_CHECKPOINT);
  EXPECT_NE(std::strstr(decoded.text(), "has 3 ranks of 2"), nullptr) << decoded.text();
}

TEST(Manifest, DescriptionsThatCannotBeSavedAreRefused) {
  const auto refused = [](auto change) {
    SaveDescription description = sample_description({}, 1);
    std::vector<int64_t> writers;
    assign_model_files(&description, 1 << 20, &writers);
    EXPECT_TRUE(check_description(description).ok());
    change(&description);
    EXPECT_EQ(check_description(description).code(), ZERO_E_INVALID_ARGUMENT);
  };
  refused([](SaveDescription *d) { d->sections[0].tensors[1].name = d->sections[0].tensors[0].name; });
  refused([](SaveDescription *d) { d->sections[0].tensors[1].name = "__metadata__"; });
  refused([](SaveDescription *d) { d->sections[0].tensors[1].name = std::string(256, 'n'); });
  refused([](SaveDescription *d) { d->sections[0].tensors[0].slots[1].name = "a:b"; });
  refused([](SaveDescription *d) { d->sections[0].cuts[1] = -1; });
  refused([](SaveDescription *d) { d->sections[0].cuts.pop_back(); });
  refused([](SaveDescription *d) { d->sections[0].state_files = {0, 0}; });
  refused([](SaveDescription *d) { d->sections[0].state_files = {0, 2}; });
  refused([](SaveDescription *d) { d->extras[1].name = "embed.weight:master"; });
  refused([](SaveDescription *d) { d->extras[0].shape = {-1}; });
  refused([](SaveDescription *d) { d->id = "../../etc"; });
  refused([](SaveDescription *d) { d->texts["x"] = "\xff"; });
  refused([](SaveDescription *d) { d->sections[0].tensors[0].model_file = -1; });
}

TEST(Manifest, ModelFilesAreBalancedOverRanksAndCutAtALimit) {
  SaveDescription description = sample_description({.ranks = 3, .scale = 50}, 1);
  std::vector<int64_t> writers;
  assign_model_files(&description, int64_t{1} << 40, &writers);
  EXPECT_EQ(writers, (std::vector<int64_t>{0, 1, 2}));
  assign_model_files(&description, 1, &writers);
  EXPECT_EQ(writers.size(), 5U);  // one for each tensor that is not tied; what is empty takes no room
  EXPECT_TRUE(std::is_sorted(writers.begin(), writers.end()));
}

TEST(Manifest, OfAThousandTensorsOnAThousandRanksIsSmallAndProved) {
  Manifest manifest;
  SaveDescription &description = manifest.description;
  description = sample_description({.ranks = 1, .minimal = true}, 1);
  Section &section = description.sections[0];
  description.rank_count = section.rank_count = 1024;
  description.extras.clear();
  const SavedTensor tensor = section.tensors[0];
  section.tensors.clear();
  section.cuts.clear();
  for (int64_t t = 0; t < 1000; ++t) {
    section.tensors.push_back(tensor);
    section.tensors.back().name += std::to_string(t);
    section.tensors.back().shape = {1024, 256};
    section.tensors.back().slots = {{"master", DiskType::f32, {}, 1, Placement::pieces, 0}};
    for (int64_t rank = 0; rank <= 1024; ++rank) section.cuts.push_back(rank * 256);
  }
  for (int64_t file = 0; file < 1024; ++file) manifest.files.push_back({file, 2 << 20, {1, 2}});
  const std::vector<std::byte> bytes = encoded(manifest);
  EXPECT_LT(bytes.size(), size_t{9} << 20);
  Manifest found;
  ASSERT_TRUE(decode_manifest(bytes, "m", &found).ok());
  EXPECT_TRUE(prove_cover(found).ok());
}

}  // namespace
}  // namespace zero::tests
