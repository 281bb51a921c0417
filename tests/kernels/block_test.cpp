/// @file The windows of pieces: the arrays that they report for the next load. update_test.cpp
/// tests their loads and stores.
#include "kernels/block.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace zero::kernels::block_test {
namespace {

constexpr int64_t kCount = 3000;

/// Memory that is never read.
class Memory {
 public:
  Elements of(DType dtype) { return {bytes_[next_++].data(), dtype, scales_.data()}; }

 private:
  std::array<std::array<std::byte, 8 * kCount>, 8> bytes_;
  std::array<float, kCount> scales_;
  size_t next_ = 0;
};

using Asked = std::vector<std::pair<const void *, int64_t>>;

/// Addresses and element sizes of the requested arrays.
Asked asked(const UpdateSegment &piece, const UpdateScalars &scalars = {}) {
  const Block block(active(), piece, scalars);
  Asked result;
  for (int i = 0; i < block.ahead()->count; ++i) {
    result.emplace_back(block.ahead()->arrays[i].data, block.ahead()->arrays[i].element_nbytes);
  }
  return result;
}

TEST(Block, WhatIsUsedInPlaceIsAskedForByTheLoopItself) {
  Memory memory;
  const UpdateSegment piece{
      .param = memory.of(DType::f32), .grad = memory.of(DType::f32), .state = {memory.of(DType::f32)}, .count = kCount};
  EXPECT_EQ(asked(piece), Asked{});
  UpdateSegment narrow = piece;
  narrow.grad = memory.of(DType::bf16);
  EXPECT_EQ(asked(narrow, {.hyper = {}, .grad_factor = 0.5F}), Asked{}) << "kernels widen and scale gradients";
}

TEST(Block, NarrowSlotsAreAskedFor) {
  Memory memory;
  UpdateSegment piece{.param = memory.of(DType::bf16), .grad = memory.of(DType::f16), .state = {memory.of(DType::f8e4m3)}, .count = kCount};
  const Asked wanted{{piece.param.data, 2}, {piece.state[0].data, 1}};
  EXPECT_EQ(asked(piece), wanted);
  piece.master = memory.of(DType::f32);
  EXPECT_EQ(asked(piece), Asked{wanted[1]}) << "the parameter is only written";
  piece.master = memory.of(DType::u16);
  EXPECT_EQ(asked(piece), (Asked{{piece.master.data, 2}, wanted[0], wanted[1]})) << "both halves are read";
}

TEST(Block, GradientsThatAreLimitedAreAskedFor) {
  Memory memory;
  const UpdateSegment piece{.param = memory.of(DType::f32), .grad = memory.of(DType::f32), .count = kCount};
  EXPECT_EQ(asked(piece, {.hyper = {}, .clip_value = 1}), (Asked{{piece.grad.data, 4}}));
}

TEST(Block, ContributionsOfRanksAreAskedForWhereThePieceLiesInThem) {
  Memory memory;
  const UpdateSegment piece{.param = memory.of(DType::f32), .grad = memory.of(DType::f32), .count = kCount};
  UpdateSegment summed = piece;
  const std::vector<const void *> sources(Ahead::kMost + 1, memory.of(DType::f32).data);
  summed.sources = sources;
  summed.peers_offset = 100;
  const void *first = static_cast<const float *>(sources[0]) + 100;
  EXPECT_EQ(asked(summed), Asked(Ahead::kMost, {first, 4})) << "as many as there is room for";
}

TEST(Block, TheNextWindowBeginsWhereThisOneEnds) {
  Memory memory;
  const UpdateSegment piece{.param = memory.of(DType::bf16), .grad = memory.of(DType::bf16), .count = kCount};
  const UpdateScalars scalars{};
  Block block(active(), piece, scalars);
  EXPECT_EQ(block.move(0), Block::kMost);
  EXPECT_EQ(block.ahead()->begin, Block::kMost);
  EXPECT_EQ(block.move(2 * Block::kMost), kCount - 2 * Block::kMost);
  EXPECT_EQ(block.ahead()->begin, kCount);
}

}  // namespace
}  // namespace zero::kernels::block_test
