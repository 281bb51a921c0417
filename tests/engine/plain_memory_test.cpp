/// @file The memory that exports and loads of plain files take. In a process of its own: memory that others gave back would hide it.
#include "group/collectives.h"
#include "tests/engine/exports.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace zero::test::plain_memory_test {
namespace {

using namespace exports;

/// Bytes that the process had resident at most since reset_peak().
int64_t peak_nbytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

/// One tensor of 192 MB is sharded over two ranks, both in this process. Each has two staging buffers of 1 MiB, pieces of values, and the
/// bytes that it sends to the other.
TEST(PlainMemory, ExportsAndLoadsHoldPiecesOnly) {
  constexpr int64_t kCount = 48 << 20;
  constexpr int64_t kMost = 32 << 20;
  SaveFolder folder;
  if (few_tests() || !reset_peak()) GTEST_SKIP() << "the peak of the process cannot be read here, or a sanitizer adds to it";
  Model model = saved_model();
  model.counts = {kCount};
  model.algorithm = "sgd";
  model.recipe.dtype = DType::bf16;
  model.recipe.master = ZERO_MASTER_F32;
  std::vector<int64_t> used;
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    Model mine = model;
    mine.ranks = 2;
    const auto optimizer = make_optimizer(group, mine, export_manner(3));
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    const auto checkpoint = checkpoint_of(optimizer);
    const auto measure = [&](const char *what, const std::function<Status()> &call) {
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      if (group->rank() == 0) reset_peak();
      const int64_t before = peak_nbytes();
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      expect_ok(call(), what);
      expect_ok(group->queue()->run(barrier(*group)), "barrier");
      if (group->rank() != 0) return;
      used.push_back(peak_nbytes() - before);
      std::printf("%s of %lld MB of parameters: peak + %.1f MB\n", what, lld(kCount * 4 >> 20), static_cast<double>(used.back()) / (1 << 20));
    };
    measure("export as values", [&] { return export_to(*checkpoint, folder.path() + "/f32.safetensors", ZERO_DTYPE_F32); });
    measure("export as it is kept", [&] { return export_to(*checkpoint, folder.path() + "/kept"); });
    measure("load", [&] { return load(*checkpoint, folder.path() + "/f32.safetensors", ZERO_PART_PARAMS); });
  });
  ASSERT_EQ(used.size(), 3U);
  for (const int64_t nbytes : used) EXPECT_LE(nbytes, kMost);
}

}  // namespace
}  // namespace zero::test::plain_memory_test
