/// @file Parameters from plain safetensors, by several ranks: the values of the file in every world, and an error that names file and cause
/// for all that is not a model of this shape.
#include "tests/engine/exports.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <mutex>

namespace zero::test::import_test {
namespace {

using namespace exports;

std::string name_of(int64_t id) { return "p" + std::to_string(id); }

/// Values that no test begins with.
std::vector<float> values_of(const Model &model, int64_t id) {
  std::vector<float> values;
  for (int64_t index = 0; index < model.counts[static_cast<size_t>(id)]; ++index) values.push_back(value_at(99, static_cast<uint64_t>(id), index));
  return values;
}

PlainTensors plain_of(const Model &model, DType dtype = DType::f32) {
  PlainTensors tensors;
  for (int64_t id = 0; id < model.tensors(); ++id) tensors.push_back(plain_tensor(name_of(id), model.shape(id), values_of(model, id), dtype));
  return tensors;
}

/// The parameter as the optimizer has it, widened to fp32.
std::vector<float> read_param(Optimizer &optimizer, const Model &model, int64_t id) {
  const int64_t count = model.counts[static_cast<size_t>(id)];
  std::vector<std::byte> stored(static_cast<size_t>(count * dtype_nbytes(model.dtype(id))));
  expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_PARAM, 0, stored.data(), count)), "read");
  return decode(stored.data(), model.dtype(id), count);
}

void expect_values(Optimizer &optimizer, const Model &model, DType of_file = DType::f32) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t from = model.shared(id) ? 0 : id;
    const std::vector<std::byte> in_file = encode(values_of(model, from), of_file);
    const std::vector<std::byte> here = encode(decode(in_file.data(), of_file, model.counts[static_cast<size_t>(id)]), model.dtype(id));
    const std::vector<float> expected = decode(here.data(), model.dtype(id), model.counts[static_cast<size_t>(id)]);
    EXPECT_EQ(differing(read_param(optimizer, model, id), expected), 0) << name_of(id);
  }
}

/// Loads on every rank of a world, and returns the status, which is the same on all ranks.
Status load_in_world(const Model &model, int64_t ranks, int64_t stage, const std::string &path, const CheckpointKeys &keys = {},
                     int32_t part = ZERO_PART_PARAMS, const std::function<void(Checkpoint &)> &prepare = {}) {
  std::mutex mutex;
  std::vector<Status> all;
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, stage, model);
    const auto checkpoint = checkpoint_of(optimizer, keys);
    if (prepare) prepare(*checkpoint);
    const Status status = load(*checkpoint, path, part);
    const std::lock_guard lock(mutex);
    all.push_back(status);
  });
  for (const Status &status : all) {
    EXPECT_EQ(status.code(), all[0].code()) << status.text();
    EXPECT_STREQ(status.text(), all[0].text());
  }
  return all[0];
}

void expect_error(const Status &status, int32_t code, std::initializer_list<const char *> texts) {
  EXPECT_EQ(status.code(), code) << status.text();
  for (const char *text : texts) EXPECT_TRUE(contains(status, text)) << text << " is not in: " << status.text();
}

class ImportStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, ImportStages, testing::Range<int64_t>(0, 4));

/// One file, a folder with one, a folder with an index: sizes 0, 1, odd, and fewer than ranks.
TEST_P(ImportStages, ValuesAreThoseOfTheFileInEveryWorld) {
  SaveFolder folder;
  Model model = saved_model();
  model.counts.push_back(3);
  model.recipe.frozen_every = 4;
  write_plain(folder.path() + "/other.safetensors", plain_of(model));
  write_plain_folder(folder.path() + "/several", plain_of(model), 3);
  std::filesystem::create_directory(folder.path() + "/single");
  write_plain(folder.path() + "/single/adapter.safetensors", plain_of(model));
  const std::string paths[] = {folder.path() + "/other.safetensors", folder.path() + "/several", folder.path() + "/single/",
                               folder.path() + "/several/model.safetensors.index.json", folder.path()};
  for (int64_t ranks = 1; ranks <= 4; ++ranks) {
    for (const std::string &path : paths) {
      std::atomic<int64_t> nbytes{0};
      run_world(ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = sealed(group, GetParam(), model);
        zero_checkpoint_result result{};
        expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS, &result), path.c_str());
        EXPECT_EQ(result.converted + result.missing + result.extra, 0);
        EXPECT_EQ(result.file_count, path.find("several") != std::string::npos ? 3 : 1);
        nbytes += result.nbytes;
        expect_values(*optimizer, model);
        step_alone(*optimizer, model, 0);
      });
      EXPECT_EQ(nbytes, 4813 * 4) << "each byte is read by one rank";
    }
  }
}

/// Values of other float dtypes are rounded once, and counted.
TEST_P(ImportStages, OtherFloatDtypesAreRoundedOnce) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  for (const DType in_file : {DType::f32, DType::f16, DType::bf16}) {
    for (const DType here : {DType::f32, DType::f16, DType::bf16}) {
      Model model = saved_model();
      model.recipe.dtype = here;
      model.recipe.master = here == DType::f32 ? ZERO_MASTER_F32 : ZERO_MASTER_NONE;
      write_plain(path, plain_of(model, in_file));
      run_world(2, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = sealed(group, GetParam(), model);
        zero_checkpoint_result result{};
        expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS, &result), "load");
        EXPECT_EQ(result.converted, in_file == here ? 0 : 7);
        expect_values(*optimizer, model, in_file);
      });
    }
  }
}

/// 1 + 2^-8 + 2^-40 lies above a tie of bf16 that fp32 would round it to.
TEST(Imported, DoublesAreRoundedOnce) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  Model model = saved_model();
  model.counts = {6};
  const double values[] = {1 + 0x1p-8 + 0x1p-40, -1 - 0x1p-8 - 0x1p-40, 1 + 0x1p-8 - 0x1p-40, 0.1, HUGE_VAL, 0};
  const float nearest[] = {1 + 0x1p-7F, -1 - 0x1p-7F, 1, 0.10009765625F, HUGE_VALF, 0};
  PlainTensor tensor{"p0", "F64", {6}, {}};
  tensor.bytes.resize(sizeof values);
  std::memcpy(tensor.bytes.data(), values, sizeof values);
  write_plain(path, {tensor});
  for (const int64_t master : {ZERO_MASTER_NONE + 0, ZERO_MASTER_F32 + 0}) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      if (dtype == DType::f32 && master == ZERO_MASTER_NONE) continue;
      model.recipe.dtype = dtype;
      model.recipe.master = master;
      run_world(1, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = sealed(group, 0, model);
        expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS), "load");
        const std::vector<float> found = read_param(*optimizer, model, 0);
        if (dtype == DType::bf16 && master == ZERO_MASTER_NONE) {
          EXPECT_EQ(std::memcmp(found.data(), nearest, sizeof nearest), 0) << found[0] << " " << found[1] << " " << found[2] << " " << found[3];
        } else if (dtype == DType::f32) {
          for (size_t i = 0; i < 6; ++i) EXPECT_EQ(found[i], static_cast<float>(values[i]));
        } else {
          float masters[6];
          expect_ok(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_MASTER, 0, masters, 6)), "read");
          for (size_t i = 0; i < 6; ++i) EXPECT_EQ(masters[i], static_cast<float>(values[i]));
        }
      });
    }
  }
}

/// The first and the last tensor are one here. A file has either name or both.
TEST_P(ImportStages, TiedNamesMayBeMissing) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  Model model = saved_model();
  model.counts.back() = model.counts.front();
  model.recipe.tied = true;
  PlainTensors both = plain_of(model);
  both.back().bytes = both.front().bytes;
  PlainTensors first(both.begin(), both.end() - 1);
  PlainTensors last(both.begin() + 1, both.end());
  PlainTensors differ = both;
  differ.back().bytes.back() ^= std::byte{1};
  PlainTensors other_shape = both;
  other_shape.back() = plain_tensor(both.back().name, {5}, {1, 2, 3, 4, 5});
  for (const PlainTensors &tensors : {both, first, last}) {
    write_plain(path, tensors);
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = sealed(group, GetParam(), model);
      zero_checkpoint_result result{};
      expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS, &result), "load");
      EXPECT_EQ(result.extra + result.missing, 0);
      expect_values(*optimizer, model);
    });
  }
  write_plain(path, differ);
  expect_error(load_in_world(model, 3, GetParam(), path), ZERO_E_CHECKPOINT, {"\"p0\" and \"p7\"", "differ", "tied", path.c_str()});
  write_plain(path, other_shape);
  expect_error(load_in_world(model, 3, GetParam(), path), ZERO_E_CHECKPOINT, {"\"p7\" has shape [5]", path.c_str(), "[3000] here"});
}

/// Writers that store a shared tensor once name its other names in the metadata.
TEST(Imported, TiesOfTheFileGiveBothNamesTheirValues) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  Model model = saved_model();
  model.counts.back() = model.counts.front();
  PlainTensors tensors = plain_of(model);
  tensors.pop_back();
  write_plain(path, tensors);
  expect_error(load_in_world(model, 2, 2, path), ZERO_E_CHECKPOINT, {path.c_str(), "lacks 1 of the names", "\"p7\""});
  write_plain(path, tensors, {{"format", "pt"}, {"p7", "p0"}});
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, 2, model);
    expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS), "load");
    EXPECT_EQ(differing(read_param(*optimizer, model, 7), values_of(model, 0)), 0);
  });
}

TEST(Imported, NamesMayDifferByRule) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  const Model model = saved_model();
  PlainTensors tensors = plain_of(model);
  for (PlainTensor &tensor : tensors) tensor.name = "base." + tensor.name;
  tensors.push_back(plain_tensor("base.mask", {4}, {1, 2, 3, 4}));
  write_plain(path, tensors);
  const auto rename = [](Checkpoint &checkpoint) {
    for (int64_t id = 0; id < 8; ++id) expect_ok(checkpoint.rename(("base." + name_of(id)).c_str(), name_of(id).c_str()), "rename");
  };
  expect_error(load_in_world(model, 2, 3, path), ZERO_E_CHECKPOINT, {path.c_str(), "lacks 8 of the names", "zero_checkpoint_rename"});
  expect_error(load_in_world(model, 2, 3, path, {}, ZERO_PART_PARAMS, rename), ZERO_E_CHECKPOINT,
               {path.c_str(), "has 1 names that are not here", "base.mask", "ZERO_KEY_CHECKPOINT_EXTRA = 1"});
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, 3, model);
    const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_EXTRA, 1}});
    rename(*checkpoint);
    zero_checkpoint_result result{};
    expect_ok(load(*checkpoint, path, ZERO_PART_PARAMS, &result), "load");
    EXPECT_EQ(result.extra, 1);
    EXPECT_EQ(checkpoint->skipped(), "extra \"base.mask\"\n");
    expect_values(*optimizer, model);
  });
}

/// Found before a value is read: a run goes on with the values that it had.
TEST_P(ImportStages, FilesOfAnotherModelChangeNothing) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  const Model model = saved_model();
  struct Wrong {
    std::function<void(PlainTensors &)> change;
    std::vector<const char *> texts;
  };
  const Wrong wrongs[] = {
      {[](PlainTensors &all) { all[1] = plain_tensor("p1", {18}, std::vector<float>(18)); }, {"\"p1\" has shape [18]", "but [17] here"}},
      {[](PlainTensors &all) { all[0] = plain_tensor("p0", {30, 100}, std::vector<float>(3000)); }, {"\"p0\" has shape [30, 100]"}},
      {[](PlainTensors &all) { all[1].type = "I32"; }, {"\"p1\"", "i32, which no parameter can have"}},
      {[](PlainTensors &all) { all[1] = {"p1", "F8_E4M3", {17}, std::vector<std::byte>(17)}; }, {"\"p1\"", "8-bit codes, but no scales"}},
      {[](PlainTensors &all) { all.pop_back(); }, {"lacks 1 of the names", "\"p7\"", "ZERO_KEY_CHECKPOINT_MISSING = 1"}},
      {[](PlainTensors &all) { all.push_back(plain_tensor("q", {1}, {1})); }, {"has 1 names", "\"q\"", "ZERO_KEY_CHECKPOINT_EXTRA = 1"}},
  };
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, GetParam(), model);
    step_alone(*optimizer, model, 0);
    const std::vector<std::byte> before = read_slots(*optimizer, model);
    const auto checkpoint = checkpoint_of(optimizer);
    for (const Wrong &wrong : wrongs) {
      if (group->rank() == 0) {
        PlainTensors tensors = plain_of(model);
        wrong.change(tensors);
        write_plain(path, tensors);
      }
      const Status status = load(*checkpoint, path, ZERO_PART_PARAMS);
      EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT);
      EXPECT_TRUE(contains(status, path.c_str())) << status.text();
      for (const char *text : wrong.texts) EXPECT_TRUE(contains(status, text)) << text << " is not in: " << status.text();
      EXPECT_EQ(read_slots(*optimizer, model), before);
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
    }
    step_alone(*optimizer, model, 1);
  });
}

TEST(Imported, WhatIsNoModelSaysWhy) {
  SaveFolder folder;
  const Model model = saved_model();
  const std::string path = folder.path() + "/model.safetensors";
  write_plain(path, plain_of(model));
  expect_error(load_in_world(model, 2, 1, path, {}, ZERO_PART_ALL), ZERO_E_INVALID_ARGUMENT, {path.c_str(), "ZERO_PART_PARAMS"});
  expect_error(load_in_world(model, 2, 1, folder.path(), {}, ZERO_PART_ALL), ZERO_E_INVALID_ARGUMENT, {"ZERO_PART_PARAMS"});
  const auto nbytes = static_cast<int64_t>(std::filesystem::file_size(path));
  for (const int64_t cut : {int64_t{0}, int64_t{7}, int64_t{40}, nbytes - 1}) {
    std::filesystem::resize_file(path, static_cast<uintmax_t>(cut));
    expect_error(load_in_world(model, 2, 1, path), ZERO_E_CHECKPOINT, {path.c_str()});
    write_plain(path, plain_of(model));
  }
  std::ofstream(path, std::ios::binary) << std::string(8, '\xff') << "{}";
  expect_error(load_in_world(model, 2, 1, path), ZERO_E_CHECKPOINT, {path.c_str(), "header"});
  // A name that is like that of a save's file, but none.
  std::filesystem::rename(path, folder.path() + "/state-dict.safetensors");
  write_plain(folder.path() + "/state-dict.safetensors", plain_of(model));
  expect_ok(load_in_world(model, 2, 1, folder.path()), "load");
  std::filesystem::rename(folder.path() + "/state-dict.safetensors", path);
  write_plain(folder.path() + "/more.safetensors", plain_of(model));
  std::filesystem::rename(path, folder.path() + "/most.safetensors");
  expect_error(load_in_world(model, 2, 1, folder.path()), ZERO_E_INVALID_ARGUMENT, {"2 files", "give the path of one"});
  expect_error(load_in_world(model, 2, 1, folder.path() + "/none.safetensors"), ZERO_E_CHECKPOINT, {"none.safetensors"});
  expect_error(load_in_world(model, 2, 1, folder.path() + "/nowhere"), ZERO_E_NOT_FOUND, {"nowhere"});
}

/// A save that was never committed has files that any reader opens. It does not count, by its own path or that of its folder.
TEST(Imported, TheRestOfASaveIsNoModel) {
  SaveFolder folder;
  const Model model = saved_model();
  run_world(2, [&](const std::shared_ptr<Group> &group) { expect_ok(save(*checkpoint_of(begun(group, 1, model)), folder.path()), "save"); });
  const std::string one = folder.path() + "/" + folder.saves().at(0);
  expect_ok(load_in_world(model, 3, 2, one), "load");
  std::filesystem::remove(one + "/manifest.safetensors");
  expect_error(load_in_world(model, 3, 2, folder.path()), ZERO_E_NOT_FOUND, {"no committed save"});
  expect_error(load_in_world(model, 3, 2, one + "/"), ZERO_E_NOT_FOUND, {"no committed save"});
  std::filesystem::rename(one, folder.path() + "/renamed");
  expect_error(load_in_world(model, 3, 2, folder.path() + "/renamed"), ZERO_E_NOT_FOUND, {"no committed save"});
  // Without its states it is a folder of plain files.
  for (const char *name : {"state-00001-of-00002.safetensors", "state-00002-of-00002.safetensors"}) {
    std::filesystem::remove(folder.path() + "/renamed/" + name);
  }
  expect_ok(load_in_world(model, 3, 2, folder.path() + "/renamed"), "load");
}

}  // namespace
}  // namespace zero::test::import_test
