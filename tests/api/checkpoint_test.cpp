/// @file Checkpoints as programs use them: the short form, several things in one save, requests,
/// and ranks that are lost.
#include "api_world.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace zero::test::checkpoint_test {
namespace {

constexpr int64_t kCount = 3000;

/// A new folder, removed with all that is in it.
class Folder {
 public:
  Folder() {
    static std::atomic<int64_t> count{0};
    path_ = std::filesystem::path(testing::TempDir()) / ("zero_api." + std::to_string(::getpid()) + "." + std::to_string(++count));
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder &) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const char *path() const { return path_.c_str(); }
  int64_t entries() const { return std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()); }

 private:
  std::filesystem::path path_;
};

std::string meeting_name() {
  static std::atomic<int64_t> count{0};
  return "libzero-checkpoint-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// Runs body(group, rank) on ranks that are threads.
void run_ranks(int64_t size, const std::function<void(zero_group *, int64_t)> &body) {
  const std::string name = meeting_name();
  std::vector<std::thread> ranks;
  for (int64_t rank = 0; rank < size; ++rank) {
    ranks.emplace_back([&, rank] {
      zero_group *group = nullptr;
      ZERO_EXPECT_OK(zero_group_create_local(name.c_str(), rank, size, nullptr, &group));
      if (group != nullptr) body(group, rank);
      zero_group_release(group);
    });
  }
  for (std::thread &rank : ranks) rank.join();
}

/// Sealed: two tensors and a module buffer.
zero_optimizer *sealed_optimizer(zero_group *group, int64_t stage) {
  zero_config *config = nullptr;
  zero_optimizer *optimizer = nullptr;
  int64_t id = 0;
  ZERO_EXPECT_OK(zero_config_create(&config));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
  ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_DIVISOR, ZERO_DIVISOR_ONE));
  ZERO_EXPECT_OK(zero_optimizer_create(group, config, &optimizer));
  for (const char *name : {"weight", "bias"}) ZERO_EXPECT_OK(zero_optimizer_add_param(optimizer, nullptr, name, ZERO_DTYPE_F32, &kCount, 1, &id));
  const int64_t shape = 5;
  ZERO_EXPECT_OK(zero_optimizer_add_module_buffer(optimizer, "mean", ZERO_DTYPE_F32, &shape, 1, ZERO_SYNC_NONE, &id));
  ZERO_EXPECT_OK(zero_optimizer_seal(optimizer));
  zero_config_release(config);
  return optimizer;
}

/// Rank 0 gives the gradients.
void take_step(zero_optimizer *optimizer, int64_t rank, float value) {
  const std::vector<float> grad(kCount, value);
  for (int64_t id = 1; id >= 0 && rank == 0; --id) ZERO_EXPECT_OK(zero_optimizer_grad_ready(optimizer, id, grad.data(), 0, kCount, nullptr));
  ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, nullptr));
}

std::vector<float> read_all(zero_optimizer *optimizer) {
  std::vector<float> all;
  for (int64_t id = 0; id < 2; ++id) {
    for (const int32_t slot : {ZERO_SLOT_PARAM + 0, ZERO_SLOT_FIRST_MOMENT + 0, ZERO_SLOT_SECOND_MOMENT + 0}) {
      std::vector<float> values(kCount);
      ZERO_EXPECT_OK(zero_optimizer_read(optimizer, id, slot, 0, values.data(), kCount, nullptr));
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

float *mean_of(zero_optimizer *optimizer) {
  void *data = nullptr;
  int64_t count = 0;
  ZERO_EXPECT_OK(zero_optimizer_module_buffer(optimizer, 0, &data, &count));
  return static_cast<float *>(data);
}

TEST(Checkpoint, TheShortFormGoesOnWhereItStopped) {
  const Folder folder;
  std::vector<float> expected;
  run_ranks(3, [&](zero_group *group, int64_t rank) {
    zero_optimizer *optimizer = sealed_optimizer(group, 3);
    int64_t found = -1;
    ZERO_EXPECT_OK(zero_optimizer_resume(optimizer, folder.path(), nullptr, &found));
    EXPECT_EQ(found, 0);
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
    for (int step = 0; step < 2; ++step) {
      take_step(optimizer, rank, 0.5F);
      mean_of(optimizer)[1] = static_cast<float>(10 * step + rank);
      ZERO_EXPECT_OK(zero_optimizer_save(optimizer, folder.path(), nullptr));
    }
    const std::vector<float> values = read_all(optimizer);
    if (rank == 0) expected = values;
    zero_optimizer_release(optimizer);
  });
  EXPECT_EQ(folder.entries(), 2);
  run_ranks(2, [&](zero_group *group, int64_t rank) {
    zero_optimizer *optimizer = sealed_optimizer(group, 1);
    int64_t found = -1;
    int64_t steps = -1;
    ZERO_EXPECT_OK(zero_optimizer_resume(optimizer, folder.path(), nullptr, &found));
    ZERO_EXPECT_OK(zero_optimizer_get_i64(optimizer, ZERO_KEY_STEP_COUNT, &steps));
    EXPECT_EQ(found, 1);
    EXPECT_EQ(steps, 2);
    EXPECT_EQ(read_all(optimizer), expected);
    EXPECT_EQ(mean_of(optimizer)[1], static_cast<float>(10 + rank));
    take_step(optimizer, rank, 1);
    zero_optimizer_release(optimizer);
  });
}

/// Two optimizers, a buffer, tensors of one rank and of each, and texts.
class Many {
 public:
  Many(zero_group *group, int64_t rank, bool begins) : rank_(rank) {
    for (size_t i = 0; i < optimizers_.size(); ++i) {
      optimizers_[i] = sealed_optimizer(group, static_cast<int64_t>(2 * i));
      const int32_t begun = begins ? zero_optimizer_begin(optimizers_[i], ZERO_SOURCE_LOCAL) : ZERO_OK;
      EXPECT_EQ(ZERO_OK, begun) << last_text();
    }
    ZERO_EXPECT_OK(zero_buffer_create(group, nullptr, ZERO_DTYPE_I64, 1000, &buffer_));
    ZERO_EXPECT_OK(zero_checkpoint_create(group, nullptr, &checkpoint_));
    ZERO_EXPECT_OK(zero_checkpoint_add_optimizer(checkpoint_, "first.", optimizers_[0]));
    ZERO_EXPECT_OK(zero_checkpoint_add_optimizer(checkpoint_, "second.", optimizers_[1]));
    ZERO_EXPECT_OK(zero_checkpoint_add_buffer(checkpoint_, "table", buffer_));
    const int64_t shape = 2;
    ZERO_EXPECT_OK(zero_checkpoint_add_tensor(checkpoint_, "one", ZERO_DTYPE_F64, &shape, 1, one.data(), ZERO_SCOPE_ONE));
    ZERO_EXPECT_OK(zero_checkpoint_add_tensor(checkpoint_, "each", ZERO_DTYPE_F64, &shape, 1, each.data(), ZERO_SCOPE_EACH));
  }
  Many(const Many &) = delete;
  ~Many() {
    for (zero_optimizer *optimizer : optimizers_) zero_optimizer_release(optimizer);
    zero_buffer_release(buffer_);
    zero_checkpoint_release(checkpoint_);
  }
  void train() {
    for (size_t i = 0; i < optimizers_.size(); ++i) take_step(optimizers_[i], rank_, static_cast<float>(1 + i));
    std::vector<int64_t> values(1000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i * i);
    ZERO_EXPECT_OK(zero_buffer_write(buffer_, 0, values.data(), rank_ == 0 ? 1000 : 0, nullptr));
    one = {1.5, static_cast<double>(rank_)};
    each = {2.5, static_cast<double>(rank_)};
    ZERO_EXPECT_OK(zero_checkpoint_set_text(checkpoint_, "data", rank_ == 0 ? "epoch 3\nbatch \"17\"" : "of another rank"));
  }
  std::vector<float> values() {
    std::vector<float> all = read_all(optimizers_[0]);
    const std::vector<float> more = read_all(optimizers_[1]);
    all.insert(all.end(), more.begin(), more.end());
    std::vector<int64_t> table(1000);
    ZERO_EXPECT_OK(zero_buffer_read(buffer_, 0, table.data(), 1000, nullptr));
    for (const int64_t value : table) all.push_back(static_cast<float>(value));
    return all;
  }
  std::string text() const {
    std::array<char, 64> out{};
    ZERO_EXPECT_OK(zero_checkpoint_get_text(checkpoint_, "data", out.data(), std::ssize(out), nullptr));
    return out.data();
  }
  zero_checkpoint *checkpoint() { return checkpoint_; }

  std::array<double, 2> one{};
  std::array<double, 2> each{};

 private:
  const int64_t rank_;
  std::array<zero_optimizer *, 2> optimizers_{};
  zero_buffer *buffer_ = nullptr;
  zero_checkpoint *checkpoint_ = nullptr;
};

zero_checkpoint_result empty_result() {
  zero_checkpoint_result result;
  ZERO_EXPECT_OK(zero_checkpoint_result_init(&result, sizeof result));
  return result;
}

TEST(Checkpoint, SeveralThingsAreInOneSave) {
  const Folder folder;
  std::vector<float> expected;
  run_ranks(2, [&](zero_group *group, int64_t rank) {
    Many many(group, rank, true);
    many.train();
    zero_checkpoint_result result = empty_result();
    ZERO_EXPECT_OK(zero_checkpoint_save(many.checkpoint(), folder.path(), nullptr, &result));
    EXPECT_EQ(result.step, 1);
    EXPECT_GT(result.file_count, 3);
    const std::vector<float> values = many.values();
    if (rank == 0) expected = values;
  });
  EXPECT_EQ(folder.entries(), 1);
  run_ranks(3, [&](zero_group *group, int64_t rank) {
    Many many(group, rank, false);
    ZERO_EXPECT_OK(zero_checkpoint_load(many.checkpoint(), folder.path(), ZERO_PART_ALL, nullptr, nullptr));
    EXPECT_EQ(many.values(), expected);
    EXPECT_EQ(many.text(), "epoch 3\nbatch \"17\"");
    EXPECT_EQ(many.one, (std::array<double, 2>{1.5, 0}));
    EXPECT_EQ(many.each, (std::array<double, 2>{2.5, rank < 2 ? static_cast<double>(rank) : 0}));
  });
}

TEST(Checkpoint, NamesOfASaveMayBeOthersHere) {
  const Folder folder;
  std::vector<float> expected;
  run_ranks(2, [&](zero_group *group, int64_t rank) {
    zero_optimizer *optimizer = sealed_optimizer(group, 2);
    zero_checkpoint *checkpoint = nullptr;
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
    take_step(optimizer, rank, 2);
    ZERO_EXPECT_OK(zero_checkpoint_create(group, nullptr, &checkpoint));
    ZERO_EXPECT_OK(zero_checkpoint_add_optimizer(checkpoint, "old.", optimizer));
    ZERO_EXPECT_OK(zero_checkpoint_save(checkpoint, folder.path(), nullptr, nullptr));
    const std::vector<float> values = read_all(optimizer);
    if (rank == 0) expected.assign(values.begin(), values.begin() + kCount);
    zero_checkpoint_release(checkpoint);
    zero_optimizer_release(optimizer);
  });
  run_ranks(1, [&](zero_group *group, int64_t) {
    zero_optimizer *optimizer = sealed_optimizer(group, 0);
    zero_checkpoint *checkpoint = nullptr;
    ZERO_EXPECT_OK(zero_checkpoint_create(group, nullptr, &checkpoint));
    ZERO_EXPECT_OK(zero_checkpoint_add_optimizer(checkpoint, "new.", optimizer));
    EXPECT_TRUE(failed_with(zero_checkpoint_load(checkpoint, folder.path(), ZERO_PART_PARAMS, nullptr, nullptr), ZERO_E_CHECKPOINT, "new.weight"));
    ZERO_EXPECT_OK(zero_checkpoint_rename(checkpoint, "old.*", "new.*"));
    zero_checkpoint_result result = empty_result();
    ZERO_EXPECT_OK(zero_checkpoint_load(checkpoint, folder.path(), ZERO_PART_PARAMS, nullptr, &result));
    std::vector<float> values = read_all(optimizer);
    values.resize(kCount);
    EXPECT_EQ(values, expected);
    std::array<char, 64> skipped{};
    ZERO_EXPECT_OK(zero_checkpoint_skipped(checkpoint, skipped.data(), std::ssize(skipped), nullptr));
    EXPECT_STREQ(skipped.data(), "");
    zero_checkpoint_release(checkpoint);
    zero_optimizer_release(optimizer);
  });
}

/// As a file and as a folder, by calls that wait and by requests.
TEST(Checkpoint, ParametersTravelAsPlainFiles) {
  const Folder folder;
  const std::string file = std::string(folder.path()) + "/model.safetensors";
  const std::string whole = std::string(folder.path()) + "/tuned";
  std::vector<float> expected;
  run_ranks(3, [&](zero_group *group, int64_t rank) {
    zero_optimizer *optimizer = sealed_optimizer(group, 3);
    zero_checkpoint *checkpoint = nullptr;
    zero_request *request = nullptr;
    zero_checkpoint_result result = empty_result();
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
    take_step(optimizer, rank, 2);
    ZERO_EXPECT_OK(zero_checkpoint_create(group, nullptr, &checkpoint));
    ZERO_EXPECT_OK(zero_checkpoint_add_optimizer(checkpoint, "model.", optimizer));
    ZERO_EXPECT_OK(zero_checkpoint_export(checkpoint, file.c_str(), ZERO_EXPORT_AS_KEPT, nullptr, &result));
    EXPECT_EQ(result.file_count, 1);
    EXPECT_EQ(static_cast<uintmax_t>(result.nbytes), std::filesystem::file_size(file));
    ZERO_EXPECT_OK(zero_checkpoint_export_async(checkpoint, whole.c_str(), ZERO_DTYPE_F32, nullptr, nullptr, &request));
    ZERO_EXPECT_OK(zero_request_wait(request));
    zero_request_release(request);
    const std::vector<float> values = read_all(optimizer);
    if (rank == 0) expected = values;
    zero_checkpoint_release(checkpoint);
    zero_optimizer_release(optimizer);
  });
  run_ranks(2, [&](zero_group *group, int64_t) {
    zero_optimizer *optimizer = sealed_optimizer(group, 1);
    for (const std::string &path : {file, whole}) {
      zero_checkpoint *checkpoint = nullptr;
      zero_checkpoint_result result = empty_result();
      ZERO_EXPECT_OK(zero_checkpoint_create(group, nullptr, &checkpoint));
      ZERO_EXPECT_OK(zero_checkpoint_add_optimizer(checkpoint, "", optimizer));
      EXPECT_TRUE(failed_with(zero_checkpoint_load(checkpoint, path.c_str(), ZERO_PART_PARAMS, nullptr, nullptr), ZERO_E_CHECKPOINT, path.c_str()));
      EXPECT_TRUE(failed_with(zero_checkpoint_load(checkpoint, path.c_str(), ZERO_PART_ALL, nullptr, nullptr), ZERO_E_INVALID_ARGUMENT,
                              "ZERO_PART_PARAMS"));
      ZERO_EXPECT_OK(zero_checkpoint_rename(checkpoint, "model.weight", "weight"));
      ZERO_EXPECT_OK(zero_checkpoint_rename(checkpoint, "model.bias", "bias"));
      ZERO_EXPECT_OK(zero_checkpoint_load(checkpoint, path.c_str(), ZERO_PART_PARAMS, nullptr, &result));
      EXPECT_EQ(result.converted, 0);
      const std::vector<float> values = read_all(optimizer);
      for (const int64_t param : {int64_t{0}, 3 * kCount}) {  // two moments lie behind the first
        EXPECT_TRUE(std::equal(values.begin() + param, values.begin() + param + kCount, expected.begin() + param));
      }
      zero_checkpoint_release(checkpoint);
    }
    int64_t found = -1;
    EXPECT_TRUE(failed_with(zero_optimizer_resume(optimizer, whole.c_str(), nullptr, &found), ZERO_E_INVALID_ARGUMENT, "ZERO_PART_PARAMS"));
    EXPECT_EQ(found, -1);
    zero_optimizer_release(optimizer);
  });
}

/// The call of one rank is refused for an argument: the next save of all ranks meets nothing of it.
TEST(Checkpoint, ARefusedCallOfOneRankCostsNothing) {
  const Folder folder;
  run_ranks(3, [&](zero_group *group, int64_t rank) {
    zero_optimizer *optimizer = sealed_optimizer(group, 1);
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
    if (rank == 1) {
      EXPECT_TRUE(failed_with(zero_optimizer_save_async(optimizer, folder.path(), nullptr, nullptr), ZERO_E_INVALID_ARGUMENT, "out"));
    }
    ZERO_EXPECT_OK(zero_optimizer_save(optimizer, folder.path(), nullptr));
    take_step(optimizer, rank, 0);
    ZERO_EXPECT_OK(zero_optimizer_save(optimizer, folder.path(), nullptr));
    zero_optimizer_release(optimizer);
  });
  EXPECT_EQ(folder.entries(), 2);
}

/// One thread holds both ranks, so no call may wait for the other rank. Steps continue while files
/// are written.
TEST(Checkpoint, RequestsMoveOnWithoutBlocking) {
  const Folder folder;
  TwoRanks pair(meeting_name().c_str(), 30'000);
  std::array<zero_optimizer *, 2> optimizers{};
  std::array<zero_request *, 2> requests{};
  const auto end_all = [&] {
    for (int64_t ended = 0; ended < 2;) {
      ended = 0;
      for (zero_request *request : requests) {
        int64_t done = 0;
        ZERO_EXPECT_OK(zero_request_test(request, &done));
        ended += done;
      }
    }
    for (zero_request *request : requests) zero_request_release(request);
  };
  for (size_t i = 0; i < 2; ++i) {
    zero_config *config = nullptr;
    int64_t id = 0;
    ZERO_ASSERT_OK(zero_config_create(&config));
    ZERO_ASSERT_OK(zero_config_set_i64(config, ZERO_KEY_STAGE, 3));
    ZERO_ASSERT_OK(zero_optimizer_create(pair.rank[i], config, &optimizers[i]));
    ZERO_ASSERT_OK(zero_optimizer_add_param(optimizers[i], nullptr, "weight", ZERO_DTYPE_F32, &kCount, 1, &id));
    zero_config_release(config);
  }
  for (size_t i = 0; i < 2; ++i) ZERO_ASSERT_OK(zero_optimizer_seal_async(optimizers[i], &requests[i]));
  end_all();
  for (size_t i = 0; i < 2; ++i) ZERO_ASSERT_OK(zero_optimizer_begin_async(optimizers[i], ZERO_SOURCE_LOCAL, &requests[i]));
  end_all();
  for (size_t i = 0; i < 2; ++i) ZERO_ASSERT_OK(zero_optimizer_save_async(optimizers[i], folder.path(), nullptr, &requests[i]));
  std::array<zero_request *, 2> steps{};
  for (size_t i = 0; i < 2; ++i) {
    ZERO_ASSERT_OK(zero_optimizer_set_f64(optimizers[i], 0, ZERO_KEY_LR, 1));
    ZERO_ASSERT_OK(zero_optimizer_step_async(optimizers[i], nullptr, nullptr, &steps[i]));
  }
  end_all();
  requests = steps;
  end_all();
  std::array<int64_t, 2> found{};
  for (size_t i = 0; i < 2; ++i) ZERO_ASSERT_OK(zero_optimizer_resume_async(optimizers[i], folder.path(), nullptr, &found[i], &requests[i]));
  end_all();
  for (size_t i = 0; i < 2; ++i) {
    int64_t count = -1;
    ZERO_EXPECT_OK(zero_optimizer_get_i64(optimizers[i], ZERO_KEY_STEP_COUNT, &count));
    EXPECT_EQ(found[i], 1);
    EXPECT_EQ(count, 0);
    zero_optimizer_release(optimizers[i]);
  }
}

}  // namespace
}  // namespace zero::test::checkpoint_test
