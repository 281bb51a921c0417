/// @file The largest stack that calls need, as zero/zero.h promises: ranks are threads with that
/// stack.
#include <zero/zero.h>

#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace {

constexpr size_t kStackBytes = 128 * 1024;
constexpr int64_t kRanks = 2;
constexpr int64_t kCount = 96 * 96;  // elements of each tensor

struct Training {
  std::string algorithm;
  int64_t stage = 0;
  bool coded = false;  ///< 8-bit parameters and second moments

  std::string text() const { return algorithm + " stage " + std::to_string(stage) + (coded ? " 8-bit" : ""); }
};

struct Rank {
  const Training *training = nullptr;
  int64_t rank = 0;
  int32_t status = ZERO_OK;
  std::array<char, 512> text = {};
};

/// Keeps the status of the first call that failed.
class First {
 public:
  explicit First(Rank &rank) : rank_(rank) {}
  void operator()(int32_t status) {
    if (rank_.status != ZERO_OK || status == ZERO_OK) return;
    rank_.status = status;
    zero_last_error_copy(rank_.text.data(), static_cast<int64_t>(rank_.text.size()));
  }

 private:
  Rank &rank_;
};

void configure(First &must, const Training &training, zero_config *config) {
  must(zero_config_set_i64(config, ZERO_KEY_STAGE, training.stage));
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, training.algorithm.c_str()));
  must(zero_config_set_i64(config, ZERO_KEY_THREADS, 1));
  must(zero_config_set_f64(config, ZERO_KEY_CLIP_NORM, 1));
  if (!training.coded) return;
  must(zero_config_set_i64(config, ZERO_KEY_PARAM_DTYPE, ZERO_DTYPE_F8_E4M3));
  if (training.algorithm.starts_with("adam")) must(zero_config_set_i64(config, ZERO_KEY_SECOND_MOMENT_DTYPE, ZERO_DTYPE_F8_UE5M3));
}

void step(First &must, zero_optimizer *optimizer, std::vector<float> &memory) {
  void *address = nullptr;
  for (int64_t id = 0; id < 2; ++id) {
    must(zero_optimizer_param_acquire(optimizer, id, memory.data(), kCount, nullptr, &address));
    must(zero_optimizer_param_release(optimizer, id));
    must(zero_optimizer_grad_ready(optimizer, id, memory.data(), 0, kCount, nullptr));
  }
  must(zero_optimizer_step(optimizer, nullptr, nullptr));
}

void train(First &must, Rank &rank, std::vector<float> &memory) {
  zero_config *config = nullptr;
  zero_group *group = nullptr;
  zero_optimizer *optimizer = nullptr;
  must(zero_config_create(&config));
  configure(must, *rank.training, config);
  const std::string name = "stack " + rank.training->text();
  must(zero_group_create_local(name.c_str(), rank.rank, kRanks, nullptr, &group));
  must(zero_group_all_reduce(group, memory.data(), kCount, memory.data(), kCount, ZERO_DTYPE_F32, ZERO_REDUCE_AVG, nullptr));
  must(zero_optimizer_create(group, config, &optimizer));
  const std::array<int64_t, 2> square = {96, 96};
  const std::array<int64_t, 2> wide = {72, 128};
  int64_t id = 0;
  must(zero_optimizer_add_param(optimizer, nullptr, "square", ZERO_DTYPE_F32, square.data(), 2, &id));
  must(zero_optimizer_add_param(optimizer, nullptr, "wide", ZERO_DTYPE_F32, wide.data(), 2, &id));
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  for (int i = 0; i < 3 && rank.status == ZERO_OK; ++i) step(must, optimizer, memory);
  zero_optimizer_release(optimizer);
  zero_group_release(group);
  zero_config_release(config);
}

void *run_rank(void *argument) {
  Rank &rank = *static_cast<Rank *>(argument);
  std::vector<float> memory(static_cast<size_t>(kCount), 0.5F);
  First must(rank);
  train(must, rank, memory);
  return nullptr;
}

void run_on_small_stacks(const Training &training) {
  std::array<Rank, kRanks> ranks;
  std::array<pthread_t, kRanks> threads{};
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStackBytes), 0);
  for (size_t i = 0; i < kRanks; ++i) {
    ranks[i].training = &training;
    ranks[i].rank = static_cast<int64_t>(i);
    ASSERT_EQ(pthread_create(&threads[i], &attributes, run_rank, &ranks[i]), 0);
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  for (const Rank &rank : ranks) EXPECT_EQ(rank.status, ZERO_OK) << training.text() << ": " << rank.text.data();
}

TEST(Stack, OfAThreadThatCallsMayBeSmall) {
  for (const char *algorithm : {"sgd", "adam", "adamw", "adagrad", "lion", "lamb", "muon"}) {
    for (const int64_t stage : {0, 3}) {
      for (const bool coded : {false, true}) run_on_small_stacks({algorithm, stage, coded});
    }
  }
}

}  // namespace
