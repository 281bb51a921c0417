/// @file Exports of optimizers that keep everything on a device, and loads into them: the files and values of the host.
#include "tests/engine/device_memory.h"
#include "tests/engine/exports.h"

#include <gtest/gtest.h>

#include <string>

namespace zero::test::device_plain_files_test {
namespace {

using namespace exports;

const DeviceMemory kDevice(0);

using PlainFilesOnDevice = DeviceTest;

TEST_F(PlainFilesOnDevice, AreThoseOfTheHost) {
  Model model = odd_model();
  model.counts.push_back(70'000);
  model.recipe.dtype = DType::bf16;
  model.ranks = 2;
  for (int64_t stage = 0; stage < 4; ++stage) {
    SaveFolder folder;
    Manner manner = export_manner(stage);
    manner.remote = &kDevice;
    manner.kept_there = true;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto host = begun(group, stage, model);
      const auto device = begun_optimizer(group, model, manner);
      expect_ok(export_to(*checkpoint_of(host), folder.path() + "/host.safetensors", ZERO_DTYPE_F32), "export");
      expect_ok(export_to(*checkpoint_of(device), folder.path() + "/device.safetensors", ZERO_DTYPE_F32), "export");
      expect_ok(export_to(*checkpoint_of(device), folder.path() + "/kept"), "export");
      const auto other = make_optimizer(group, model, manner);
      expect_ok(load(*checkpoint_of(other), folder.path() + "/host.safetensors", ZERO_PART_PARAMS), "load");
      expect_ok(export_to(*checkpoint_of(other), folder.path() + "/loaded.safetensors", ZERO_DTYPE_F32), "export");
      expect_ok(export_to(*checkpoint_of(other), folder.path() + "/loaded"), "export");
    });
    const auto expected = read_export(folder.path() + "/host.safetensors");
    ASSERT_EQ(expected.size(), static_cast<size_t>(model.tensors()));
    for (const auto &[name, tensor] : expected) {
      EXPECT_TRUE(read_export(folder.path() + "/device.safetensors").at(name).bytes == tensor.bytes) << name;
      EXPECT_TRUE(read_export(folder.path() + "/loaded.safetensors").at(name).bytes == tensor.bytes) << name;
      EXPECT_TRUE(read_export(folder.path() + "/loaded").at(name).bytes == read_export(folder.path() + "/kept").at(name).bytes) << name;
    }
  }
}

}  // namespace
}  // namespace zero::test::device_plain_files_test
