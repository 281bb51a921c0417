/// @file What tools say about saves: lists, descriptions, differences, exports, and what may be pruned.
#include "checkpoint/difference.h"
#include "checkpoint/inspect.h"
#include "checkpoint/save_export.h"
#include "checkpoint/tensor_files.h"
#include "tests/checkpoint/sample_run.h"
#include "tests/checkpoint/scratch_folder.h"
#include "tests/forwarded_calls.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace zero::tests {
namespace {

using namespace checkpoint;
using nlohmann::json;

/// A source in which one element of one entry is another.
class ChangedSource final : public BlockSource {
 public:
  ChangedSource(const SaveDescription &description, std::string name)
      : description_(description), source_(description), name_(std::move(name)) {}
  Status copy(const EntrySource &entry, int64_t offset, std::span<std::byte> out) override {
    ZERO_TRY(source_.copy(entry, offset, out));
    if (entry.section < 0) return {};
    const SavedTensor &tensor = description_.sections[static_cast<size_t>(entry.section)].tensors[static_cast<size_t>(entry.tensor)];
    if (tensor.name + " " + tensor.slots[static_cast<size_t>(entry.slot)].name == name_ && offset == 0) out.back() ^= std::byte{1};
    return {};
  }

 private:
  const SaveDescription &description_;
  SampleSource source_;
  const std::string name_;
};

/// Saves step 5 of a run of `ranks`, one slot of it changed; a description as the caller left it.
std::string save_changed(const Folder &saves, SaveDescription description, const std::string &name) {
  std::vector<int64_t> writers;
  assign_model_files(&description, 1 << 30, &writers);
  const std::string folder = save_name(description.step, description.id);
  Manifest manifest{description, std::vector<FileReport>(static_cast<size_t>(FilePlan(description).file_count()))};
  Status status = create_save(saves, folder, true);
  ChangedSource source(description, name);
  for (int64_t rank = 0; rank < description.rank_count && status.ok(); ++rank) {
    SaveWriter writer(description, SaveWriter::files_of(description, writers, rank), {.staging_nbytes = 2 << 20});
    status = writer.open(saves, folder, 0);
    if (status.ok()) status = writer.preallocate();
    if (status.ok()) status = writer.write(source, nullptr);
    for (const FileReport &report : writer.reports()) manifest.files[static_cast<size_t>(report.file)] = report;
  }
  bool maybe = false;
  if (status.ok()) status = commit_save(saves, folder, manifest, true, &maybe);
  EXPECT_TRUE(status.ok()) << status.text();
  return folder;
}

struct Opened {
  Opened(const Folder &saves, std::string save) : name(std::move(save)) {
    std::vector<std::byte> bytes;
    const Status status = read_manifest(saves, name, true, &bytes, &manifest);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  std::string name;
  Manifest manifest;
};

json diff(const Folder &saves, const Opened &a, const Opened &b) {
  std::string plain;
  std::string text;
  int64_t count = 0;
  const Status status = diff_saves({saves, a.name, a.manifest}, {saves, b.name, b.manifest}, {}, nullptr, &plain, &text, &count);
  EXPECT_TRUE(status.ok()) << status.text();
  const json found = json::parse(text);
  EXPECT_EQ(static_cast<int64_t>(found.size()), count);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), '\n'), count);
  return found;
}

TEST(Difference, SavesOfOtherRanksAreTheSameWhenTheirValuesAre) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  // Copies of ranks are as many as there are ranks: left out here.
  SaveDescription one = sample_description({.ranks = 1, .extras = false}, 5);
  SaveDescription four = sample_description({.ranks = 4, .model = false, .extras = false}, 5);
  for (SaveDescription *description : {&one, &four}) {
    for (SavedTensor &tensor : description->sections[0].tensors) {
      std::erase_if(tensor.slots, [](const SavedSlot &slot) { return slot.placement == Placement::per_rank; });
    }
  }
  // The sample's bytes follow from names in files; a parameter in pieces has another one there, so the model is left out of both.
  for (SavedTensor &tensor : one.sections[0].tensors) {
    for (SavedSlot &slot : tensor.slots) slot.placement = Placement::pieces;
  }
  const Opened a(saves, save_changed(saves, one, "none"));
  const Opened b(saves, save_changed(saves, four, "none"));
  EXPECT_EQ(diff(saves, a, b), json::array());
}

TEST(Difference, OneBitOfOneSlotIsFoundWhereverItLies) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const Opened a(saves, save_changed(saves, sample_description({.ranks = 2}, 5), "none"));
  for (const std::string name : {"embed.weight param", "embed.weight second_moment", "norm.weight update_count", "fc.weight first_scale"}) {
    const Opened b(saves, save_changed(saves, sample_description({.ranks = 2}, 5), name));
    const json found = diff(saves, a, b);
    ASSERT_EQ(found.size(), 1U) << found;
    EXPECT_EQ(found[0]["name"], name);
    EXPECT_EQ(found[0]["difference"], "has other values");
  }
}

TEST(Difference, ShapesFactsTextsAndNamesAreCompared) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const Opened a(saves, save_changed(saves, sample_description({.ranks = 2}, 5), "none"));
  SaveDescription description = sample_description({.ranks = 2}, 5);
  description.texts = {{"other", "x"}};
  description.sections[0].facts["set.0.lr"] = "0x1p-3";
  description.sections[0].tensors[1].name = "renamed";
  description.extras[0].shape = {71};
  const Opened b(saves, save_changed(saves, description, "none"));
  const json found = diff(saves, a, b);
  const auto has = [&](const char *name, const char *what) {
    return std::any_of(found.begin(), found.end(), [&](const json &one) { return one["name"] == name && one["difference"] == what; });
  };
  EXPECT_TRUE(has("text note", "only in the first"));
  EXPECT_TRUE(has("text other", "only in the second"));
  EXPECT_TRUE(has("optimizer set.0.lr", "differs"));
  EXPECT_TRUE(has("norm.weight param", "only in the first"));
  EXPECT_TRUE(has("renamed param", "only in the second"));
  EXPECT_TRUE(has("mask", "has another type or shape"));
}

/// The names and kinds of differences between a save and the same save after `change`.
template <class Change>
std::vector<std::string> changed_by(Change change) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const Opened a(saves, save_changed(saves, sample_description({.ranks = 2}, 5), "none"));
  SaveDescription description = sample_description({.ranks = 2}, 5);
  change(&description);
  const Opened b(saves, save_changed(saves, description, "none"));
  std::vector<std::string> lines;
  for (const json &one : diff(saves, a, b)) lines.push_back(one["name"].get<std::string>() + ": " + one["difference"].get<std::string>());
  return lines;
}

SavedTensor &tensor_named(SaveDescription *description, const std::string &name) {
  std::vector<SavedTensor> &tensors = description->sections[0].tensors;
  return *std::find_if(tensors.begin(), tensors.end(), [&](const SavedTensor &tensor) { return tensor.name == name; });
}

TEST(Difference, ABufferAndAnOptimizerOfOnePrefixAreTwoThings) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  SaveDescription description = sample_description({.ranks = 2}, 5);
  description.sections[1].prefix = description.sections[0].prefix;
  description.sections[1].facts = {{"algorithm", "none"}};
  const Opened save(saves, save_changed(saves, description, "none"));
  EXPECT_EQ(diff(saves, save, save), json::array());
}

TEST(Difference, FactsOfTensorsAreCompared) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(changed_by([](SaveDescription *d) { tensor_named(d, "norm.weight").facts["frozen"] = "1"; }),
            Lines{"norm.weight frozen: only in the second"});
  EXPECT_EQ(changed_by([](SaveDescription *d) { tensor_named(d, "head.weight").tied_to = "fc.weight"; }),
            Lines{"head.weight tied_to: differs"});
  EXPECT_EQ(changed_by([](SaveDescription *d) { tensor_named(d, "head.weight").shape = {256, 11}; }), Lines{"head.weight shape: differs"});
  EXPECT_EQ(changed_by([](SaveDescription *d) { tensor_named(d, "head.weight").name = "other"; }),
            (Lines{"head.weight: only in the first", "other: only in the second"}));
  EXPECT_EQ(changed_by([](SaveDescription *d) { tensor_named(d, "fc.weight").slots[0].type = DiskType::u16; }),
            Lines{"fc.weight param: has another type or shape"});
}

TEST(Difference, AnotherStepIsADifference) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const Opened a(saves, save_changed(saves, sample_description({.ranks = 2, .minimal = true}, 5), "none"));
  SaveDescription later = sample_description({.ranks = 2, .minimal = true}, 6);
  later.texts = a.manifest.description.texts;
  const Opened b(saves, save_changed(saves, later, "none"));
  const json found = diff(saves, a, b);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], json::parse(R"({"name": "step", "difference": "differs", "a": "5", "b": "6"})"));
}

TEST(Inspect, AListTellsWhatIsValidDamagedAndNotCommitted) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string good = save_sample(saves, {}, 1).name;
  const std::string bad = save_sample(saves, {}, 2).name;
  std::filesystem::resize_file(scratch.path() + "/" + bad + "/manifest.safetensors", 77);
  const std::string none = save_name(3, "ffffffffffffffff0123456789abcdef");
  std::filesystem::create_directory(scratch.path() + "/" + none);
  std::string text;
  ASSERT_TRUE(list_text(saves, TextForm::json, &text).ok());
  const json list = json::parse(text);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0]["committed"], false);
  EXPECT_EQ(list[1]["valid"], false);
  EXPECT_EQ(list[1]["status"], "ZERO_E_CHECKPOINT");
  EXPECT_EQ(list[2]["valid"], true);
  EXPECT_EQ(list[2]["name"], good);
  EXPECT_EQ(list[2]["ranks"], 2);
  ASSERT_TRUE(list_text(saves, TextForm::plain, &text).ok());
  EXPECT_NE(text.find(none + "  not committed\n"), std::string::npos) << text;
  EXPECT_NE(text.find(bad + "  DAMAGED: "), std::string::npos) << text;
  EXPECT_NE(text.find(", run " + std::string(kSampleRun) + "\n"), std::string::npos) << text;
}

/// No file is read.
class UnreadableCalls final : public ForwardedCalls {
 public:
  ssize_t read_at(int, void *, size_t, int64_t) override { return errno = EACCES, -1; }
};

TEST(Inspect, ASaveThatTheSystemRefusesToReadIsNotDamaged) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const std::string name = save_sample(saves, {.minimal = true}, 1).name;
  UnreadableCalls calls;
  const FileCallsReplaced replaced(calls);
  std::string text;
  ASSERT_TRUE(list_text(saves, TextForm::plain, &text).ok());
  EXPECT_EQ(text.find(name + "  UNREADABLE: cannot read "), 0U) << text;
  ASSERT_TRUE(list_text(saves, TextForm::json, &text).ok());
  const json list = json::parse(text);
  EXPECT_EQ(list[0]["valid"], false);
  EXPECT_EQ(list[0]["status"], "ZERO_E_SYSTEM");
}

TEST(Inspect, ADescriptionNamesEverything) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const Opened save(saves, save_sample(saves, {}, 7).name);
  const json found = json::parse(describe_text(save.manifest, "p", TextForm::json));
  EXPECT_EQ(found["step"], 7);
  EXPECT_EQ(found["sections"].size(), 2U);
  EXPECT_EQ(found["nbytes"], save.manifest.nbytes());
  const std::string text = describe_text(save.manifest, "p", TextForm::plain);
  for (const char *part : {"step 7, ", "optimizer on 2 ranks, 7 tensors", "algorithm = adamw",
                           "embed.weight [11,256]: param BF16, master F32",
                           "head.weight [11,256] tied to embed.weight", "update_count I64 x 1", "residual F32 x 130 per rank",
                           "param f8_ue5m3", "buffer \"data.\" on 2 ranks", "tensor loader [5] I64, one for each rank", "note = step",
                           "state-00002-of-00002.safetensors"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(Inspect, ExportedParametersAreThoseOfTheSave) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  for (const bool model : {true, false}) {
    const Opened save(saves, save_sample(saves, {.ranks = 3, .model = model, .scale = 300}, model ? 1 : 2).name);
    const std::string path = scratch.path() + (model ? "/export-a" : "/export-b.safetensors");
    const Status status = export_save({saves, save.name, save.manifest}, path, 1 << 20, {.staging_nbytes = 2 << 20}, nullptr);
    ASSERT_TRUE(status.ok()) << status.text();
    TensorFiles files;
    ASSERT_TRUE(TensorFiles::open(path, &files).ok());
    EXPECT_EQ(files.tensors().size(), 7U);
    const int64_t at = files.find("embed.weight");
    ASSERT_GE(at, 0);
    class Sink final : public PlainSink {
     public:
      Status take(const PlainRange &, int64_t, std::span<const std::byte> data) override {
        bytes.insert(bytes.end(), data.begin(), data.end());
        return {};
      }
      std::vector<std::byte> bytes;
    } sink;
    const PlainRange all{at, 0, files.tensors()[static_cast<size_t>(at)].entry.nbytes()};
    ASSERT_TRUE(files.read({&all, 1}, {}, sink, nullptr).ok());
    std::vector<std::byte> expected(sink.bytes.size());
    sample_bytes(model ? 1 : 2, model ? "embed.weight" : "embed.weight:param", -1, 0, expected);
    EXPECT_EQ(sink.bytes, expected);
  }
}

TEST(Prune, NamesTheOldOnesOfEachRunAndNeverTheNewest) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  std::vector<std::string> names;
  for (uint64_t step = 1; step <= 4; ++step) names.push_back(save_sample(saves, {}, step).name);
  const SaveDescription foreign = sample_description({.model = false}, 1, "ffeeddccbbaa99887766554433221100");
  ASSERT_TRUE(save_sample(saves, foreign, {}, {}).status.ok());
  std::filesystem::resize_file(scratch.path() + "/" + names[1] + "/manifest.safetensors", 77);
  std::vector<std::string> old;
  ASSERT_TRUE(prunable_saves(saves, 1, &old).ok());
  EXPECT_EQ(old, (std::vector<std::string>{names[0], names[2]}));  // names[1] cannot be read
  EXPECT_EQ(prunable_saves(saves, 0, &old).code(), ZERO_E_INVALID_ARGUMENT);
  int64_t freed = 0;
  ASSERT_TRUE(delete_save(saves, names[0], true, &freed).ok());
  EXPECT_GT(freed, 0);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/" + names[0]));
}

}  // namespace
}  // namespace zero::tests
