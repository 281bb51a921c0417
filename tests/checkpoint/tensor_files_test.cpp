/// @file Plain safetensors: what is exported is read back by range, in one file or several; what is wrong with a folder is said.
#include "checkpoint/export.h"
#include "checkpoint/tensor_files.h"
#include "tests/checkpoint/sample_run.h"
#include "tests/checkpoint/scratch_folder.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

namespace zero::tests {
namespace {

using namespace checkpoint;

std::vector<ExportTensor> some_tensors() {
  return {{"a", DiskType::bf16, {700, 33}}, {"b", DiskType::u8, {1}}, {"c", DiskType::f32, {}}, {"d", DiskType::f32, {0, 7}},
          {"e", DiskType::f64, {300'000}}, {"f", DiskType::boolean, {3}}};
}

class NamedSource final : public ExportSource {
 public:
  explicit NamedSource(const ExportPlan &plan) : plan_(plan) {}
  Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) override {
    sample_bytes(1, plan_.tensors[static_cast<size_t>(tensor)].name, -1, offset, out);
    return {};
  }

 private:
  const ExportPlan &plan_;
};

class NamedSink final : public PlainSink {
 public:
  explicit NamedSink(const TensorFiles &files) : files_(files) {}
  Status take(const PlainRange &range, int64_t offset, std::span<const std::byte> data) override {
    const Entry &entry = files_.tensors()[static_cast<size_t>(range.tensor)].entry;
    EXPECT_EQ(data.size() % static_cast<size_t>(disk_type_nbytes(entry.type)), 0U);
    std::vector<std::byte> expected(data.size());
    sample_bytes(1, entry.name, -1, range.offset + offset, expected);
    EXPECT_EQ(std::memcmp(expected.data(), data.data(), data.size()), 0) << entry.name;
    nbytes += static_cast<int64_t>(data.size());
    return {};
  }
  int64_t nbytes = 0;

 private:
  const TensorFiles &files_;
};

void export_all(const std::string &path, int64_t writers, int64_t most_nbytes) {
  const ExportPlan plan = plan_export(path, some_tensors(), writers, most_nbytes);
  Status status = begin_export(plan);
  NamedSource source(plan);
  for (size_t file = 0; file < plan.files.size() && status.ok(); ++file) {
    status = write_export(plan, static_cast<int64_t>(file), {{"format", "pt"}}, {.staging_nbytes = 2 << 20}, source, nullptr);
  }
  if (status.ok()) status = end_export(plan);
  ASSERT_TRUE(status.ok()) << status.text();
}

void expect_all(const std::string &path) {
  TensorFiles files;
  const Status opened = TensorFiles::open(path, &files);
  ASSERT_TRUE(opened.ok()) << opened.text();
  EXPECT_EQ(files.metadata().at("format"), "pt");
  NamedSink sink(files);
  std::vector<PlainRange> ranges;
  int64_t nbytes = 0;
  for (const ExportTensor &tensor : some_tensors()) {
    const int64_t at = files.find(tensor.name);
    ASSERT_GE(at, 0) << tensor.name;
    const Entry &entry = files.tensors()[static_cast<size_t>(at)].entry;
    EXPECT_EQ(entry.shape, tensor.shape);
    const int64_t each = disk_type_nbytes(tensor.type);
    for (int64_t part = 0; part < 3; ++part) {
      const Range elements = even_share(entry.count(), part, 3);
      ranges.push_back({at, elements.begin * each, elements.count() * each});
      nbytes += elements.count() * each;
    }
  }
  for (const bool direct : {true, false}) {
    sink.nbytes = 0;
    const Status read = files.read(ranges, {.staging_nbytes = 2 << 20, .direct = direct}, sink, nullptr);
    ASSERT_TRUE(read.ok()) << read.text();
    EXPECT_EQ(sink.nbytes, nbytes);
  }
}

TEST(TensorFiles, WhatIsExportedIsReadBack) {
  const ScratchFolder scratch;
  for (const auto &[name, writers, most] : {std::tuple{"one.safetensors", int64_t{1}, int64_t{1}}, {"folder", int64_t{1}, int64_t{1} << 40},
                                            {"split", int64_t{1}, int64_t{1000}}, {"ranks", int64_t{3}, int64_t{1} << 40}}) {
    const std::string path = scratch.path() + "/" + name;
    ASSERT_NO_FATAL_FAILURE(export_all(path, writers, most));
    ASSERT_NO_FATAL_FAILURE(expect_all(path));
  }
  EXPECT_TRUE(std::filesystem::exists(scratch.path() + "/folder/model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(scratch.path() + "/split/model-00001-of-00004.safetensors"));
  ASSERT_NO_FATAL_FAILURE(expect_all(scratch.path() + "/split/model.safetensors.index.json"));
}

TEST(TensorFiles, AnExportReplacesAFileButNeverMixesWithAFolder) {
  const ScratchFolder scratch;
  ASSERT_NO_FATAL_FAILURE(export_all(scratch.path() + "/one.safetensors", 1, 1));
  std::ofstream(scratch.path() + "/one.safetensors.partial") << "left over";
  ASSERT_NO_FATAL_FAILURE(export_all(scratch.path() + "/one.safetensors", 1, 1));
  EXPECT_FALSE(std::filesystem::exists(scratch.path() + "/one.safetensors.partial"));
  const ExportPlan plan = plan_export(scratch.path(), some_tensors(), 1, 1);
  EXPECT_EQ(begin_export(plan).code(), ZERO_E_INVALID_ARGUMENT);
}

TEST(TensorFiles, TheModelFilesOfASaveArePlainSafetensors) {
  const ScratchFolder scratch;
  const Folder saves = scratch.open();
  const SampleSaved saved = save_sample(saves, {.ranks = 3}, 4);
  ASSERT_TRUE(saved.status.ok());
  TensorFiles files;
  const Status status = TensorFiles::open(scratch.path() + "/" + saved.name, &files);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(files.metadata().at("format"), "pt");
  const int64_t at = files.find("embed.weight");
  ASSERT_GE(at, 0);
  EXPECT_EQ(files.tensors()[static_cast<size_t>(at)].entry.shape, (std::vector<int64_t>{11, 256}));
}

void write_text(const std::string &path, const std::string &text) { std::ofstream(path, std::ios::binary) << text; }

TEST(TensorFiles, FoldersThatAreNoModelsSayWhy) {
  const ScratchFolder scratch;
  TensorFiles files;
  EXPECT_EQ(TensorFiles::open(scratch.path() + "/nowhere", &files).code(), ZERO_E_NOT_FOUND);
  EXPECT_EQ(TensorFiles::open(scratch.path(), &files).code(), ZERO_E_NOT_FOUND);
  const std::string index = scratch.path() + "/model.safetensors.index.json";
  ASSERT_NO_FATAL_FAILURE(export_all(scratch.path() + "/x.safetensors", 1, 1));
  const std::pair<const char *, const char *> wrong[] = {
      {"[]", "does not begin with"},
      {"{}", "no \"weight_map\""},
      {R"({"weight_map":[]})", "no \"weight_map\""},
      {R"({"weight_map":{"a":1}})", "is no text"},
      {R"({"weight_map":{"a":"../x.safetensors"}})", "no name of a file beside it"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "no name of a file beside it"},
      {R"({"weight_map":{"a":".x"}})", "no name of a file beside it"},
      {R"({"weight_map":{"a":""}})", "no name of a file beside it"},
      {R"({"weight_map":{"zz":"x.safetensors"}})", "does not"},
      {R"({"weight_map":{"a":"y.safetensors"}})", "y.safetensors"},
      {R"({"weight_map":{"a":"x.safetensors","a":"x.safetensors"}})", "twice"},
      {R"({"weight_map":{"a":{"a":{"a":{"a":{"a":{"a":{"a":{}}}}}}}}})", "deeper than"},
  };
  for (const auto &[text, reason] : wrong) {
    write_text(index, text);
    const Status status = TensorFiles::open(scratch.path(), &files);
    EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT) << text;
    EXPECT_NE(std::strstr(status.text(), reason), nullptr) << text << ": " << status.text();
  }
  write_text(index, R"({"weight_map":{"a":"x.safetensors"}})");
  EXPECT_TRUE(TensorFiles::open(scratch.path(), &files).ok());
  std::filesystem::remove(index);
  std::filesystem::create_symlink("x.safetensors", scratch.path() + "/model.safetensors");
  EXPECT_TRUE(TensorFiles::open(scratch.path(), &files).ok()) << "caches of models are full of links";
}

TEST(TensorFiles, AFileThatShrinksWhileItIsReadIsAnErrorNotACrash) {
  const ScratchFolder scratch;
  const std::string path = scratch.path() + "/x.safetensors";
  ASSERT_NO_FATAL_FAILURE(export_all(path, 1, 1));
  TensorFiles files;
  ASSERT_TRUE(TensorFiles::open(path, &files).ok());
  std::filesystem::resize_file(path, 5000);
  NamedSink sink(files);
  const PlainRange range{files.find("e"), 0, 8 * 300'000};
  EXPECT_EQ(files.read({&range, 1}, {}, sink, nullptr).code(), ZERO_E_CHECKPOINT);
}

}  // namespace
}  // namespace zero::tests
