/// @file Large tensors on their way from plain files and saves, in pieces: the same bits in any world.
#include "tests/engine/exports.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace zero::test::plain_pieces_test {
namespace {

using namespace exports;

/// Reads slots of all tensors on rank 0 of a world into which `path` was loaded.
std::vector<std::byte> loaded_slots(const Model &model, int64_t ranks, int64_t stage, const std::string &path, int32_t part) {
  std::vector<std::byte> slots;
  run_world(ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, stage, model);
    expect_ok(load(*checkpoint_of(optimizer), path, part), path.c_str());
    const std::vector<std::byte> mine = read_slots(*optimizer, model);
    if (group->rank() == 0) slots = mine;
  });
  return slots;
}

/// A shard has more elements than a piece. Codes and scales of 8-bit parameters, masters and averages do not depend on where pieces end.
TEST(PlainPieces, PiecesHaveTheBitsOfTheWhole) {
  SaveFolder folder;
  const std::string path = folder.path() + "/model.safetensors";
  Model model = saved_model();
  model.counts = {3, 3'200'001, 70};
  PlainTensors tensors;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    std::vector<float> values;
    for (int64_t index = 0; index < model.counts[static_cast<size_t>(id)]; ++index) values.push_back(value_at(5, static_cast<uint64_t>(id), index));
    tensors.push_back(plain_tensor("p" + std::to_string(id), {model.counts[static_cast<size_t>(id)]}, values));
  }
  write_plain(path, tensors);
  model.recipe.coded = true;
  model.recipe.average = true;
  const std::vector<std::byte> one = loaded_slots(model, 1, 0, path, ZERO_PART_PARAMS);
  EXPECT_TRUE(loaded_slots(model, 2, 1, path, ZERO_PART_PARAMS) == one);
  EXPECT_TRUE(loaded_slots(model, 3, 3, path, ZERO_PART_PARAMS) == one);
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = sealed(group, 2, model);
    expect_ok(load(*checkpoint_of(optimizer), path, ZERO_PART_PARAMS), "load");
    for (const int32_t slot : {ZERO_SLOT_MASTER + 0, ZERO_SLOT_AVERAGE + 0}) {
      std::vector<std::byte> found(tensors[1].bytes.size());
      expect_ok(run_task(*optimizer, optimizer->read(1, slot, 0, found.data(), model.counts[1])), "read");
      EXPECT_TRUE(found == tensors[1].bytes) << "slot " << slot;
    }
  });
}

/// The remainder completes a bf16 parameter, piece by piece.
TEST(PlainPieces, SavesAreConvertedInPieces) {
  SaveFolder folder;
  Model saved = saved_model();
  saved.counts = {3'200'001, 5};
  saved.recipe.dtype = DType::bf16;
  saved.recipe.master = ZERO_MASTER_REMAINDER;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun(group, 1, saved);
    step_alone(*optimizer, saved, 0);
    const auto checkpoint = checkpoint_of(optimizer);
    expect_ok(save(*checkpoint, folder.path()), "save");
    expect_ok(export_to(*checkpoint, folder.path() + "/exact.safetensors", ZERO_DTYPE_F32), "export");
  });
  Model model = saved;
  model.recipe.dtype = DType::f32;
  model.recipe.master = ZERO_MASTER_F32;
  const std::vector<std::byte> one = loaded_slots(model, 1, 0, folder.path(), ZERO_PART_ALL);
  EXPECT_TRUE(loaded_slots(model, 2, 3, folder.path(), ZERO_PART_ALL) == one);
  const auto exact = read_plain(folder.path() + "/exact.safetensors");
  ASSERT_GE(one.size(), exact.at("p0").bytes.size());
  EXPECT_TRUE(std::equal(exact.at("p0").bytes.begin(), exact.at("p0").bytes.end(), one.begin())) << "the first slot is the parameter";
}

}  // namespace
}  // namespace zero::test::plain_pieces_test
