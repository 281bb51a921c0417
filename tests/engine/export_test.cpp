/// @file Parameters as plain safetensors, from several ranks: the values of the run in every world, stage and dtype.
#include "checkpoint/open_save.h"
#include "tests/engine/exports.h"
#include "tests/forwarded_calls.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zero::test::export_test {
namespace {

namespace fs = std::filesystem;
using namespace exports;

std::string name_of(int64_t id) { return "p" + std::to_string(id); }

/// A slot of each tensor, as the optimizer gives it.
std::vector<std::vector<std::byte>> read_all(Optimizer &optimizer, const Model &model, int32_t slot, int64_t nbytes) {
  std::vector<std::vector<std::byte>> all;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    std::vector<std::byte> values(static_cast<size_t>(count * nbytes));
    expect_ok(run_task(optimizer, optimizer.read(id, slot, 0, values.data(), count)), "read");
    all.push_back(std::move(values));
  }
  return all;
}

class ExportStages : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Stage, ExportStages, testing::Range<int64_t>(0, 4));

/// Into one file, a folder, and a folder of small files; loaded again by a world of another size, without a bit of difference.
TEST_P(ExportStages, WhatIsExportedHasTheBitsOfTheRun) {
  const Model model = odd_model();
  for (int64_t ranks = 1; ranks <= 4; ++ranks) {
    SaveFolder folder;
    std::vector<std::vector<std::byte>> expected;
    const std::string paths[] = {folder.path() + "/one.safetensors", folder.path() + "/whole/", folder.path() + "/small"};
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun(group, GetParam(), model);
      step_alone(*optimizer, model, 0, 2);
      zero_checkpoint_result result{};
      for (const std::string &path : paths) {
        const bool small = path.ends_with("small");
        const auto checkpoint = checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_FILE_BYTES, small ? 4096 : int64_t{1} << 30}});
        expect_ok(export_to(*checkpoint, path, ZERO_EXPORT_AS_KEPT, &result), path.c_str());
        EXPECT_EQ(result.step, 2);
        const int64_t files = path.ends_with("tensors") ? 1 : std::min<int64_t>(ranks, 3);  // p0 is most of the model
        EXPECT_TRUE(small ? result.file_count > 3 : result.file_count == files) << path << " has " << result.file_count << " files";
      }
      const auto values = read_all(*optimizer, model, ZERO_SLOT_PARAM, 4);
      if (group->rank() == 0) expected = values;
      step_alone(*optimizer, model, 2);
    });
    for (const std::string &path : paths) {
      std::map<std::string, std::string> metadata;
      const auto found = read_export(path, &metadata);
      ASSERT_EQ(found.size(), static_cast<size_t>(model.tensors())) << path;
      EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
      for (int64_t id = 0; id < model.tensors(); ++id) {
        const PlainTensor &tensor = found.at(name_of(id));
        EXPECT_EQ(tensor.shape, model.shape(id));
        EXPECT_EQ(tensor.type, "F32");
        EXPECT_EQ(tensor.bytes, expected[static_cast<size_t>(id)]) << path << " " << name_of(id);
      }
      run_world(5 - ranks, [&](const std::shared_ptr<Group> &group) {
        const auto optimizer = sealed(group, 3 - GetParam(), model);
        expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS), "load");
        EXPECT_EQ(read_all(*optimizer, model, ZERO_SLOT_PARAM, 4), expected);
      });
    }
    EXPECT_EQ(fs::exists(folder.path() + "/whole/model.safetensors"), ranks == 1);
    EXPECT_EQ(fs::exists(folder.path() + "/whole/model.safetensors.index.json"), ranks > 1);
  }
}

/// A dtype that the parameter has is copied; others are made from the master and rounded once.
TEST_P(ExportStages, OtherDtypesAreRoundedFromTheMasterOnce) {
  for (const int64_t master : {ZERO_MASTER_F32 + 0, ZERO_MASTER_REMAINDER + 0, ZERO_MASTER_NONE + 0}) {
    Model model = odd_model();
    model.recipe.dtype = DType::bf16;
    model.recipe.master = master;
    SaveFolder folder;
    std::vector<std::vector<std::byte>> params;
    std::vector<std::vector<std::byte>> masters;
    run_world(3, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun(group, GetParam(), model);
      step_alone(*optimizer, model, 0, 2);
      const auto checkpoint = checkpoint_of(optimizer);
      expect_ok(export_to(*checkpoint, folder.path() + "/kept.safetensors"), "export");
      expect_ok(export_to(*checkpoint, folder.path() + "/bf16.safetensors", ZERO_DTYPE_BF16), "export");
      expect_ok(export_to(*checkpoint, folder.path() + "/f16", ZERO_DTYPE_F16), "export");
      expect_ok(export_to(*checkpoint, folder.path() + "/f32", ZERO_DTYPE_F32), "export");
      const auto values = read_all(*optimizer, model, ZERO_SLOT_PARAM, 2);
      std::vector<std::vector<std::byte>> exact;
      for (int64_t id = 0; id < model.tensors() && master == ZERO_MASTER_F32; ++id) {
        const int64_t count = model.counts[static_cast<size_t>(id)];
        exact.emplace_back(static_cast<size_t>(count * 4));
        if (model.frozen(id)) continue;  // it has none
        expect_ok(run_task(*optimizer, optimizer->read(id, ZERO_SLOT_MASTER, 0, exact.back().data(), count)), "read");
      }
      if (group->rank() != 0) return;
      params = values;
      masters = exact;
    });
    const auto kept = read_export(folder.path() + "/kept.safetensors");
    const auto bf16 = read_export(folder.path() + "/bf16.safetensors");
    const auto f16 = read_export(folder.path() + "/f16");
    const auto f32 = read_export(folder.path() + "/f32");
    bool finer = false;
    for (int64_t id = 0; id < model.tensors(); ++id) {
      const auto at = static_cast<size_t>(id);
      const int64_t count = model.counts[at];
      EXPECT_EQ(kept.at(name_of(id)).bytes, params[at]);
      EXPECT_EQ(bf16.at(name_of(id)).bytes, params[at]);
      EXPECT_EQ(f32.at(name_of(id)).type, "F32");
      EXPECT_EQ(f16.at(name_of(id)).type, "F16");
      const std::vector<float> exact = decode(f32.at(name_of(id)).bytes.data(), DType::f32, count);
      EXPECT_EQ(f16.at(name_of(id)).bytes, encode(exact, DType::f16));
      const std::vector<float> coarse = decode(params[at].data(), DType::bf16, count);
      const bool is_param = master == ZERO_MASTER_NONE || model.frozen(id);
      const bool is_master = master == ZERO_MASTER_F32 && !model.frozen(id);
      EXPECT_TRUE(!is_master || f32.at(name_of(id)).bytes == masters[at]) << name_of(id);
      EXPECT_TRUE(!is_param || differing(exact, coarse) == 0) << name_of(id);
      finer = finer || differing(exact, coarse) > 0;
      for (size_t i = 0; i < exact.size(); ++i) EXPECT_LE(std::abs(exact[i] - coarse[i]), std::abs(exact[i]) / 128);
    }
    EXPECT_EQ(finer, master != ZERO_MASTER_NONE);
  }
}

/// As they are kept they are codes with scales, which a load takes; with a dtype they are values.
TEST_P(ExportStages, EightBitParametersHaveScalesOrBecomeValues) {
  Model model = odd_model();
  model.recipe.coded = true;
  SaveFolder folder;
  std::vector<std::vector<std::byte>> masters;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, GetParam(), model);
    step_alone(*optimizer, model, 0, 2);
    const auto checkpoint = checkpoint_of(optimizer);
    expect_ok(export_to(*checkpoint, folder.path() + "/kept"), "export");
    expect_ok(export_to(*checkpoint, folder.path() + "/f32.safetensors", ZERO_DTYPE_F32), "export");
  });
  const auto kept = read_export(folder.path() + "/kept");
  const auto f32 = read_export(folder.path() + "/f32.safetensors");
  EXPECT_EQ(kept.at("p0").type, "F8_E4M3");
  EXPECT_EQ(kept.at("p0:param_scale").shape, (std::vector<int64_t>{12}));
  EXPECT_EQ(kept.at("p1").type, "F32") << "too few elements for codes";
  EXPECT_EQ(f32.size(), static_cast<size_t>(model.tensors()));
  Model plain = odd_model();
  const auto load_both = [&](const std::string &path) {
    std::vector<float> values;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = sealed(group, GetParam(), plain);
      zero_checkpoint_result result{};
      expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS, &result), path.c_str());
      EXPECT_EQ(result.extra, 0);
      const std::vector<float> found = read_slot(*optimizer, plain, ZERO_SLOT_PARAM);
      if (group->rank() == 0) values = found;
    });
    return values;
  };
  const std::vector<float> codes = load_both(folder.path() + "/kept");
  const std::vector<float> exact = load_both(folder.path() + "/f32.safetensors");
  ASSERT_EQ(codes.size(), exact.size());
  EXPECT_GT(differing(codes, exact), 0);
  for (size_t i = 0; i < codes.size(); ++i) EXPECT_NEAR(codes[i], exact[i], 0.07) << i;
}

/// Tensors larger than staging buffers, at odd places: pieces of them begin and end in the middle of lines, and of what ranks hold.
TEST_P(ExportStages, LargeTensorsAreMadeInPieces) {
  Model model = saved_model();
  model.counts = {3, 600'001, 1'300'001};
  model.recipe.coded = true;
  model.recipe.frozen_every = 3;  // the last has no master
  SaveFolder folder;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto checkpoint = checkpoint_of(begun(group, GetParam(), model));
    expect_ok(export_to(*checkpoint, folder.path() + "/kept.safetensors"), "export");
    expect_ok(export_to(*checkpoint, folder.path() + "/f32.safetensors", ZERO_DTYPE_F32), "export");
    expect_ok(export_to(*checkpoint, folder.path() + "/bf16", ZERO_DTYPE_BF16), "export");
  });
  const auto f32 = read_export(folder.path() + "/f32.safetensors");
  const auto bf16 = read_export(folder.path() + "/bf16");
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const std::vector<float> exact = decode(f32.at(name_of(id)).bytes.data(), DType::f32, model.counts[static_cast<size_t>(id)]);
    EXPECT_TRUE(bf16.at(name_of(id)).bytes == encode(exact, DType::bf16)) << name_of(id);
  }
  Model plain = model;
  plain.recipe.coded = false;
  plain.recipe.frozen_every = 0;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, 0, plain);
    expect_ok(load(*checkpoint_of(optimizer), folder.path() + "/kept.safetensors", ZERO_PART_PARAMS), "load");
    const auto decoded = read_all(*optimizer, plain, ZERO_SLOT_PARAM, 4);
    EXPECT_TRUE(decoded[0] == f32.at("p0").bytes);
    EXPECT_TRUE(decoded[2] == f32.at("p2").bytes) << "values of codes";
  });
}

/// Written once, under the name that it is tied to; the metadata has the other.
TEST_P(ExportStages, TiedTensorsAreWrittenOnce) {
  Model model = saved_model();
  model.counts.back() = model.counts.front();
  model.recipe.tied = true;
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  std::vector<std::vector<std::byte>> expected;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, GetParam(), model);
    expect_ok(export_to(*checkpoint_of(optimizer), path), "export");
    const auto values = read_all(*optimizer, model, ZERO_SLOT_PARAM, 4);
    if (group->rank() == 0) expected = values;
  });
  std::map<std::string, std::string> metadata;
  const auto found = read_export(path, &metadata);
  EXPECT_EQ(found.size(), 7U);
  EXPECT_FALSE(found.contains("p7"));
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"p7", "p0"}}));
  model.recipe.tied = false;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, GetParam(), model);
    expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS), "load");
    EXPECT_EQ(read_all(*optimizer, model, ZERO_SLOT_PARAM, 4), expected);
  });
}

TEST(Exported, SeveralOptimizersHavePrefixes) {
  const Model model = odd_model();
  SaveFolder folder;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto one = begun(group, 3, model);
    const auto two = begun(group, 1, model);
    const auto checkpoint = checkpoint_of(one);
    expect_ok(checkpoint->add_optimizer("second.", two), "add_optimizer");
    expect_ok(export_to(*checkpoint, folder.path() + "/both"), "export");
    const auto same_names = checkpoint_of(one);
    expect_ok(same_names->add_optimizer("p", two), "add_optimizer");
    expect_ok(export_to(*same_names, folder.path() + "/named"), "export");
  });
  EXPECT_EQ(read_export(folder.path() + "/both").size(), static_cast<size_t>(2 * model.tensors()));
  EXPECT_TRUE(read_export(folder.path() + "/named").contains("pp1"));
}

/// The system's calls, of which those that open files of saves are counted.
class CountedOpens final : public tests::ForwardedCalls {
 public:
  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override {
    const std::string opened = name;
    if (opened.starts_with("model-") || opened.starts_with("state-")) count_.fetch_add(1);
    return ForwardedCalls::open_at(folder, name, flags, mode);
  }
  int64_t count() const { return count_.load(); }

 private:
  std::atomic<int64_t> count_{0};
};

/// By a tool, without ranks: a read costs a walk over the tensors of a file, so that it serves many of them.
TEST(Exported, ASaveOfManyTensorsIsReadInFewPieces) {
  SaveFolder folder;
  Model model = saved_model();
  model.counts.assign(1500, 17);
  for (const bool model_files : {true, false}) {
    const std::string saves = folder.path() + (model_files ? "/whole" : "/pieces");
    fs::create_directory(saves);
    std::vector<std::vector<std::byte>> expected;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto optimizer = begun(group, 1, model);
      expect_ok(save(*checkpoint_of(optimizer, {{ZERO_KEY_CHECKPOINT_MODEL_FILES, model_files ? 1 : 0}}), saves), "save");
      const auto values = read_all(*optimizer, model, ZERO_SLOT_PARAM, 4);
      if (group->rank() == 0) expected = values;
    });
    std::shared_ptr<checkpoint::OpenSave> opened;
    expect_ok(checkpoint::OpenSave::open(saves, &opened), "open");
    CountedOpens calls;
    {
      const FileCallsReplaced replaced(calls);
      expect_ok(opened->export_to(saves + "/export"), "export");
    }
    EXPECT_LE(calls.count(), 4);
    const auto found = read_export(saves + "/export");
    ASSERT_EQ(found.size(), 1500U);
    for (int64_t id = 0; id < model.tensors(); ++id) EXPECT_EQ(found.at(name_of(id)).bytes, expected[static_cast<size_t>(id)]) << id;
  }
}

TEST(Exported, ADamagedSaveLeavesNoExport) {
  SaveFolder folder;
  const Model model = odd_model();
  run_world(2, [&](const std::shared_ptr<Group> &group) { expect_ok(save(*checkpoint_of(begun(group, 1, model)), folder.path()), "save"); });
  const std::string damaged = folder.path() + "/" + folder.saves().at(0) + "/model-00002-of-00002.safetensors";
  std::shared_ptr<checkpoint::OpenSave> opened;
  expect_ok(checkpoint::OpenSave::open(folder.path(), &opened), "open");
  {
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4200);
    file.put('!');
    ASSERT_TRUE(file.good());
  }
  SaveFolder target;
  fs::create_directory(target.path() + "/there");
  for (const char *name : {"/new", "/there", "/one.safetensors"}) {
    const Status status = opened->export_to(target.path() + name);
    EXPECT_EQ(status.code(), ZERO_E_CHECKPOINT) << status.text();
    EXPECT_TRUE(contains(status, "model-00002-of-00002.safetensors")) << status.text();
  }
  EXPECT_EQ(target.entries(), std::vector<std::string>{"there"});
  EXPECT_TRUE(fs::is_empty(target.path() + "/there"));
  const Status refused = opened->export_to(folder.path());
  EXPECT_EQ(refused.code(), ZERO_E_INVALID_ARGUMENT) << refused.text();
}

}  // namespace
}  // namespace zero::test::export_test
