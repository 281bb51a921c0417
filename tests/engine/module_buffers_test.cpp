/// @file Module buffers: whole on every rank, brought in line by rule, compared at seal, counted.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstring>

namespace zero::test::module_buffers_test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};
constexpr int64_t kCounts[] = {1, 0, 300, 17, 1000};

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16; }

/// What a rank writes into a buffer.
std::vector<std::byte> values_of(int64_t rank, int64_t buffer, DType dtype, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value_at(77, static_cast<uint64_t>(rank * 1000 + buffer), i));
  if (dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16) return encode(values, dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(count * dtype_nbytes(dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    const double wide = static_cast<double>(values[i]) * 1e-3;
    const auto whole = static_cast<int64_t>(values[i] * 1000);
    const void *from = dtype == DType::f64 ? static_cast<const void *>(&wide) : &whole;
    std::memcpy(bytes.data() + i * static_cast<size_t>(dtype_nbytes(dtype)), from, static_cast<size_t>(dtype_nbytes(dtype)));
  }
  return bytes;
}

/// What is expected after a synchronisation: the mean in the reference kernels' order, rank 0's, or its own.
std::vector<std::byte> synchronised(int64_t rank, int64_t ranks, int64_t buffer, DType dtype, int64_t count, int32_t rule) {
  if (rule == ZERO_SYNC_NONE) return values_of(rank, buffer, dtype, count);
  std::vector<std::byte> out = values_of(0, buffer, dtype, count);
  if (rule == ZERO_SYNC_BROADCAST) return out;
  std::vector<std::vector<std::byte>> given;
  std::vector<const void *> sources;
  for (int64_t other = 0; other < ranks; ++other) given.push_back(values_of(other, buffer, dtype, count));
  for (const std::vector<std::byte> &one : given) sources.push_back(one.data());
  if (count > 0) {
    kernels::supported().front()->reduce({out.data(), sources.data(), ranks, count, dtype, ReduceOp::avg, static_cast<double>(ranks)});
  }
  return out;
}

struct Registered {
  DType dtype;
  int64_t count;
  int32_t rule;
};

std::vector<Registered> add_all(Optimizer &optimizer) {
  std::vector<Registered> all;
  for (const int64_t count : kCounts) {
    for (const DType dtype : kDTypes) {
      for (int32_t rule = ZERO_SYNC_NONE; rule <= ZERO_SYNC_BROADCAST; ++rule) {
        if (rule == ZERO_SYNC_AVERAGE && !is_float(dtype)) continue;
        int64_t id = -1;
        const std::string name = "b" + std::to_string(all.size());
        EXPECT_TRUE(optimizer.add_module_buffer(name.c_str(), static_cast<int32_t>(dtype), &count, 1, rule, &id).ok());
        EXPECT_EQ(id, std::ssize(all));
        all.push_back({dtype, count, rule});
      }
    }
  }
  return all;
}

std::shared_ptr<Optimizer> new_optimizer(const std::shared_ptr<Group> &group) {
  std::shared_ptr<Optimizer> optimizer;
  EXPECT_TRUE(Optimizer::create(group, Config(), &optimizer).ok());
  const int64_t count = 1000;
  int64_t id = -1;
  EXPECT_TRUE(optimizer->add_param(nullptr, "weight", ZERO_DTYPE_F32, &count, 1, &id).ok());
  return optimizer;
}

void check_memory(const Optimizer &optimizer, const std::vector<Registered> &all) {
  int64_t nbytes = 0;
  for (const Registered &buffer : all) nbytes += buffer.count * dtype_nbytes(buffer.dtype);
  MemoryUse use{};
  ASSERT_TRUE(optimizer.memory(ZERO_MEMORY_MODULE_BUFFER, &use).ok());
  EXPECT_EQ(use.formula_nbytes, nbytes);
  EXPECT_EQ(use.now_nbytes, use.formula_nbytes + use.constant_nbytes);
  MemoryUse total{};
  ASSERT_TRUE(optimizer.memory(ZERO_MEMORY_TOTAL, &total).ok());
  EXPECT_LE(total.now_nbytes, total.formula_nbytes + total.constant_nbytes);
}

TEST(ModuleBuffers, AreSynchronisedByRule) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    run_world(ranks, [&](const std::shared_ptr<Group> &group) {
      const std::shared_ptr<Optimizer> optimizer = new_optimizer(group);
      const std::vector<Registered> all = add_all(*optimizer);
      ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
      check_memory(*optimizer, all);
      std::vector<std::byte *> addresses;
      for (int64_t id = 0; id < std::ssize(all); ++id) {
        const Registered &buffer = all[static_cast<size_t>(id)];
        void *data = nullptr;
        int64_t count = -1;
        ASSERT_TRUE(optimizer->module_buffer(id, &data, &count).ok());
        EXPECT_EQ(count, buffer.count);
        EXPECT_EQ(data == nullptr, count == 0);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0U);
        const std::vector<std::byte> values = values_of(group->rank(), id, buffer.dtype, count);
        const std::vector<std::byte> zeros(values.size());
        EXPECT_TRUE(values.empty() || std::memcmp(data, zeros.data(), zeros.size()) == 0);
        if (!values.empty()) std::memcpy(data, values.data(), values.size());
        addresses.push_back(static_cast<std::byte *>(data));
      }
      ASSERT_TRUE(run_task(*optimizer, optimizer->sync_module_buffers()).ok());
      for (int64_t id = 0; id < std::ssize(all); ++id) {
        const Registered &buffer = all[static_cast<size_t>(id)];
        const std::vector<std::byte> expected = synchronised(group->rank(), ranks, id, buffer.dtype, buffer.count, buffer.rule);
        const std::byte *data = addresses[static_cast<size_t>(id)];
        EXPECT_TRUE(expected.empty() || std::memcmp(data, expected.data(), expected.size()) == 0) << "buffer " << id;
      }
    });
  }
}

TEST(ModuleBuffers, MustBeTheSameOnAllRanks) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = new_optimizer(group);
    const int64_t count = 4;
    int64_t id = -1;
    const int32_t rule = group->rank() == 0 ? ZERO_SYNC_AVERAGE : ZERO_SYNC_BROADCAST;
    ASSERT_TRUE(optimizer->add_module_buffer("mean", ZERO_DTYPE_F32, &count, 1, rule, &id).ok());
    const Status status = group->queue()->run(optimizer->seal());
    EXPECT_EQ(status.code(), ZERO_E_MISMATCH);
    EXPECT_NE(std::string(status.text()).find("module buffer 0 \"mean\" f32[4] averaged"), std::string::npos) << status.text();
  });
}

TEST(ModuleBuffers, AreCheckedWhenRegistered) {
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const std::shared_ptr<Optimizer> optimizer = new_optimizer(group);
    const int64_t count = 4;
    const int64_t negative = -1;
    int64_t id = -7;
    const auto add = [&](const char *name, int32_t dtype, const int64_t *shape, int32_t rule) {
      return optimizer->add_module_buffer(name, dtype, shape, 1, rule, &id).code();
    };
    EXPECT_EQ(add("mean", ZERO_DTYPE_I64, &count, ZERO_SYNC_AVERAGE), ZERO_E_UNSUPPORTED);
    EXPECT_EQ(add("mean", ZERO_DTYPE_F8_E4M3, &count, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add("mean", 99, &count, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add("mean", ZERO_DTYPE_F32, &negative, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add("mean", ZERO_DTYPE_F32, &count, 3), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add("", ZERO_DTYPE_F32, &count, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add("weight", ZERO_DTYPE_F32, &count, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(id, -7);
    EXPECT_EQ(add("mean", ZERO_DTYPE_F32, &count, ZERO_SYNC_NONE), ZERO_OK);
    const int64_t all = int64_t{1} << 56;
    EXPECT_EQ(add("with mean too large", ZERO_DTYPE_F64, &all, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(add("mean", ZERO_DTYPE_F32, &count, ZERO_SYNC_NONE), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->add_param(nullptr, "mean", ZERO_DTYPE_F32, &count, 1, &id).code(), ZERO_E_INVALID_ARGUMENT);
    void *data = nullptr;
    EXPECT_EQ(optimizer->module_buffer(0, &data, &id).code(), ZERO_E_STATE);
    EXPECT_EQ(run_task(*optimizer, optimizer->sync_module_buffers()).code(), ZERO_E_STATE);
    ASSERT_TRUE(group->queue()->run(optimizer->seal()).ok());
    EXPECT_EQ(add("late", ZERO_DTYPE_F32, &count, ZERO_SYNC_NONE), ZERO_E_STATE);
    EXPECT_EQ(optimizer->module_buffer(1, &data, &id).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(data, nullptr);
  });
}

}  // namespace
}  // namespace zero::test::module_buffers_test
