/// @file Sharded buffers against plain arrays.
#include "engine/buffer/buffer.h"
#include "tests/engine/rank_worlds.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <utility>

namespace zero::test::buffer_test {
namespace {

Status run_task(Buffer &buffer, Task task) { return buffer.queue()->run(std::move(task)); }

std::shared_ptr<Buffer> make_buffer(const std::shared_ptr<Group> &group, const char *weights, DType dtype, int64_t count) {
  Config config;
  EXPECT_TRUE(config.set_str(ZERO_KEY_SHARD_WEIGHTS, weights).ok());
  std::shared_ptr<Buffer> buffer;
  const Status status = group->queue()->run(Buffer::create(group, config, dtype, count, &buffer));
  EXPECT_TRUE(status.ok()) << status.text();
  return buffer;
}

/// Every operation on one buffer of i64; values tell who wrote what where.
void exercise(const std::shared_ptr<Group> &group, const char *weights, int64_t count) {
  const std::shared_ptr<Buffer> buffer = make_buffer(group, weights, DType::i64, count);
  ASSERT_NE(buffer, nullptr);
  const auto elements = static_cast<size_t>(count);
  std::vector<int64_t> contribution(elements);
  for (size_t i = 0; i < elements; ++i) contribution[i] = (group->rank() + 1) * static_cast<int64_t>(i);
  ASSERT_TRUE(run_task(*buffer, buffer->reduce_scatter(contribution.data(), count, ReduceOp::sum)).ok());
  const int64_t factor = group->size() * (group->size() + 1) / 2;
  const Buffer::Shard shard = buffer->shard();
  EXPECT_EQ(shard.data == nullptr, shard.count == 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(shard.data) % 64, 0U);
  for (int64_t i = 0; i < shard.count; ++i) EXPECT_EQ(static_cast<int64_t *>(shard.data)[i], factor * (shard.offset + i));

  void *whole = nullptr;
  ASSERT_TRUE(run_task(*buffer, buffer->whole_acquire(&whole)).ok());
  EXPECT_EQ(whole == nullptr, count == 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(whole) % 64, 0U);
  for (int64_t i = 0; i < count; ++i) EXPECT_EQ(std::exchange(static_cast<int64_t *>(whole)[i], -1), factor * i);
  EXPECT_EQ(run_task(*buffer, buffer->whole_acquire(&whole)).code(), ZERO_E_STATE);
  EXPECT_TRUE(buffer->whole_release().ok());
  EXPECT_EQ(buffer->whole_release().code(), ZERO_E_STATE);

  // What was written there was not kept.
  ASSERT_TRUE(run_task(*buffer, buffer->whole_acquire(&whole)).ok());
  for (int64_t i = 0; i < count; ++i) EXPECT_EQ(static_cast<int64_t *>(whole)[i], factor * i);
  EXPECT_TRUE(buffer->whole_release().ok());

  // Ranges overlap at random; all ranks know what the highest writer leaves behind.
  std::vector<int64_t> expected(elements);
  for (int64_t i = 0; i < count; ++i) expected[static_cast<size_t>(i)] = factor * i;
  std::mt19937_64 random(static_cast<uint64_t>(count) + 17);
  for (int round = 0; round < 4; ++round) {
    Range mine;
    std::vector<int64_t> values;
    for (int64_t rank = 0; rank < group->size(); ++rank) {
      const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(count + 1));
      const Range range{begin, begin + static_cast<int64_t>(random() % static_cast<uint64_t>(count - begin + 1))};
      if (rank == group->rank()) mine = range;
      for (int64_t i = range.begin; i < range.end; ++i) {
        const int64_t value = round * 1'000'000 + rank * 100'000 + i;
        expected[static_cast<size_t>(i)] = value;
        if (rank == group->rank()) values.push_back(value);
      }
    }
    ASSERT_TRUE(run_task(*buffer, buffer->write(mine.begin, values.data(), mine.count())).ok());
    std::vector<int64_t> read(static_cast<size_t>(mine.count()));
    ASSERT_TRUE(run_task(*buffer, buffer->read(mine.begin, read.data(), mine.count())).ok());
    for (size_t i = 0; i < read.size(); ++i) EXPECT_EQ(read[i], expected[static_cast<size_t>(mine.begin) + i]);
  }
  EXPECT_EQ(buffer->accounting().now(ZERO_MEMORY_BUFFER), buffer->accounting().now(ZERO_MEMORY_TOTAL));
}

class BufferRanks : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Ranks, BufferRanks, testing::Values(1, 2, 3, 5, 8));

TEST_P(BufferRanks, AreWhatAPlainArrayIs) {
  run_world(GetParam(), [](const std::shared_ptr<Group> &group) {
    for (const int64_t count : {0, 1, 3, 255, 256, 257, 2000, 20'001}) exercise(group, "", count);
    if (group->size() == 3) exercise(group, "0,3,1", 3000);
  });
}

TEST(Buffer, AveragesFloatsByTheTree) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Buffer> buffer = make_buffer(group, "", DType::f32, 600);
    const std::vector<float> values(600, group->rank() == 0 ? 1.0F : 2.0F);
    ASSERT_TRUE(run_task(*buffer, buffer->reduce_scatter(values.data(), 600, ReduceOp::avg)).ok());
    const Buffer::Shard shard = buffer->shard();
    for (int64_t i = 0; i < shard.count; ++i) EXPECT_EQ(static_cast<float *>(shard.data)[i], 1.5F);
    EXPECT_EQ(run_task(*buffer, buffer->reduce_scatter(values.data(), 599, ReduceOp::avg)).code(), ZERO_E_INVALID_ARGUMENT);
  });
}

TEST(Buffer, RangesOutsideAreErrorsThatLeaveTheGroupUsable) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Buffer> buffer = make_buffer(group, "", DType::u8, 10);
    char data[16] = {};
    EXPECT_EQ(run_task(*buffer, buffer->read(-1, data, 1)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(run_task(*buffer, buffer->read(0, data, 11)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(run_task(*buffer, buffer->write(INT64_MAX, data, INT64_MAX)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_TRUE(run_task(*buffer, buffer->write(10, nullptr, 0)).ok());
    std::shared_ptr<Buffer> none;
    EXPECT_EQ(group->queue()->run(Buffer::create(group, {}, DType::u8, -1, &none)).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(none, nullptr);
  });
}

TEST(Buffer, RanksThatDisagreeLearnOfIt) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    std::shared_ptr<Buffer> buffer;
    const Status status = group->queue()->run(Buffer::create(group, {}, DType::f32, 10 + group->rank(), &buffer));
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
    EXPECT_NE(std::strstr(status.text(), "zero_buffer_create(f32, count 11)"), nullptr) << status.text();
    EXPECT_EQ(buffer, nullptr);
  });
}

/// Alike or not: what one rank reads of one buffer another would not read of another.
TEST(Buffer, RanksThatUseDifferentBuffersLearnOfIt) {
  static double values[20];
  static void *whole;
  const std::function<Task(Buffer &)> calls[] = {
      [](Buffer &buffer) { return buffer.read(0, values, 10); }, [](Buffer &buffer) { return buffer.write(0, values, 10); },
      [](Buffer &buffer) { return buffer.whole_acquire(&whole); },
      [](Buffer &buffer) { return buffer.reduce_scatter(values, buffer.count(), ReduceOp::sum); }};
  for (const auto &call : calls) {
    for (const int64_t second : {10, 20}) {
      run_world(2, [&](const std::shared_ptr<Group> &group) {
        const std::shared_ptr<Buffer> buffers[] = {make_buffer(group, "", DType::f64, 10), make_buffer(group, "", DType::f64, second)};
        for (const auto &buffer : buffers) ASSERT_TRUE(run_task(*buffer, buffer->read(0, nullptr, 0)).ok());
        Buffer &mine = *buffers[group->rank()];
        const Status status = run_task(mine, call(mine));
        EXPECT_EQ(status.code(), ZERO_E_MISMATCH) << status.text();
      });
    }
  }
}

TEST(Buffer, CountsWhoseBytesNoNumberHoldsAreErrors) {
  run_world(1, [](const std::shared_ptr<Group> &group) {
    for (const int64_t count : {(int64_t{1} << 56) + 1, INT64_MAX / 8 - 256, INT64_MAX / 8, INT64_MAX}) {
      std::shared_ptr<Buffer> buffer;
      EXPECT_EQ(group->queue()->run(Buffer::create(group, {}, DType::f64, count, &buffer)).code(), ZERO_E_INVALID_ARGUMENT) << count;
    }
    std::shared_ptr<Buffer> buffer;
    EXPECT_EQ(group->queue()->run(Buffer::create(group, {}, DType::f64, int64_t{1} << 56, &buffer)).code(), ZERO_E_OUT_OF_MEMORY);
  });
}

TEST(Buffer, OneRankWithoutMemoryIsAnErrorOnAll) {
  run_world(2, [](const std::shared_ptr<Group> &group) {
    Config config;
    if (group->rank() == 1) {
      config.hook.alloc = [](uint64_t, uint64_t, void *) -> void * { return nullptr; };
      config.hook.free = [](void *, uint64_t, void *) {};
    }
    std::shared_ptr<Buffer> buffer;
    ASSERT_TRUE(group->queue()->run(Buffer::create(group, config, DType::f32, 1000, &buffer)).ok());
    void *whole = nullptr;
    const Status status = run_task(*buffer, buffer->whole_acquire(&whole));
    EXPECT_EQ(status.code(), group->rank() == 1 ? ZERO_E_OUT_OF_MEMORY : ZERO_E_PEER_FAILED) << status.text();
    EXPECT_EQ(whole, nullptr);
  });
}

}  // namespace
}  // namespace zero::test::buffer_test
