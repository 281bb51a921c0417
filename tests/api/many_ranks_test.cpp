/// @file Many ranks of one process: they meet, seal, step and leave, with the bits of few ranks.
#include "many_ranks.h"
#include "tests/group/thread_ranks.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace zero::test {
namespace {

int64_t crowd_size() { return few_tests() ? 24 : full_tests() ? 1024 : 256; }

/// Tensors of no, one and odd numbers of elements, most of them fewer than there are ranks.
std::vector<int64_t> crowd_counts() {
  std::vector<int64_t> counts(few_tests() ? 50 : 1000);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<int64_t>(i % 7 == 0 ? 0 : i % 100 == 1 ? 1031 : i % 23);
  return counts;
}

int64_t peak_memory_nbytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoll(line.substr(6)) * 1024;
  }
  return -1;
}

/// The mean over any even number of ranks is exact.
void give_gradients(zero_optimizer *optimizer, int64_t rank, int64_t step, const std::vector<int64_t> &counts) {
  std::vector<float> grad;
  for (size_t i = 0; i < counts.size(); ++i) {
    grad.assign(static_cast<size_t>(counts[i]), 0);
    for (size_t at = 0; at < grad.size(); ++at) {
      const auto mean = static_cast<float>((i * 31 + at * 7 + static_cast<size_t>(step)) % 64) / 64 - 0.5F;
      grad[at] = mean + (rank % 2 == 0 ? 0.25F : -0.25F);
    }
    EXPECT_EQ(ZERO_OK, zero_optimizer_grad_ready(optimizer, static_cast<int64_t>(i), grad.data(), 0, counts[i], nullptr)) << last_text();
  }
}

std::vector<float> whole_model(zero_optimizer *optimizer, const std::vector<int64_t> &counts) {
  std::vector<float> model;
  for (size_t i = 0; i < counts.size(); ++i) {
    void *data = nullptr;
    const auto id = static_cast<int64_t>(i);
    EXPECT_EQ(ZERO_OK, zero_optimizer_param_acquire(optimizer, id, nullptr, 0, nullptr, &data)) << last_text();
    const auto *values = static_cast<const float *>(data);
    model.insert(model.end(), values, values + counts[i]);
    EXPECT_EQ(ZERO_OK, zero_optimizer_param_release(optimizer, id)) << last_text();
  }
  return model;
}

/// The models of the first and the last rank after three steps.
struct CrowdModels {
  std::vector<float> first;
  std::vector<float> last;
};

CrowdModels train_crowd(int64_t size, int64_t stage) {
  const std::vector<int64_t> counts = crowd_counts();
  const std::string name = "crowd." + std::to_string(::getpid()) + "." + std::to_string(size) + "." + std::to_string(stage);
  CrowdModels models;
  std::barrier all(size);
  run_thread_ranks(size, [&](int64_t rank) {
    zero_group *group = join_crowd(name, rank, size);
    zero_optimizer *optimizer = crowd_optimizer(group, stage, counts);
    all.arrive_and_wait();
    const int64_t before = rank == 0 ? descriptors_now() : 0;
    all.arrive_and_wait();
    ZERO_EXPECT_OK(zero_optimizer_seal(optimizer));
    all.arrive_and_wait();
    if (rank == 0) {
      EXPECT_EQ(descriptors_now(), before) << "an optimizer of threads keeps no descriptors";
    }
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
    for (int64_t step = 0; step < 3; ++step) {
      give_gradients(optimizer, rank, step, counts);
      ZERO_EXPECT_OK(zero_optimizer_step(optimizer, nullptr, nullptr));
    }
    // In stage 3 all ranks gather.
    std::vector<float> model;
    if (stage == 3 || rank == 0 || rank + 1 == size) model = whole_model(optimizer, counts);
    if (rank == 0) models.first = model;
    if (rank + 1 == size) models.last = model;
    zero_optimizer_release(optimizer);
    zero_group_release(group);
  });
  return models;
}

/// Only stages 1 and 2: in stage 3 a thousand ranks would mostly wait for gathers.
TEST(ManyRanks, OfOneProcessTrainWithTheBitsOfFewRanks) {
  limit_descriptors(0);
  for (const int64_t stage : {1, 2}) {
    const CrowdModels few = train_crowd(4, stage);
    const CrowdModels many = train_crowd(crowd_size(), stage);
    ASSERT_FALSE(few.first.empty());
    EXPECT_NE(few.first[0], few.first[few.first.size() - 1]);
    EXPECT_EQ(many.first, few.first) << "stage " << stage;
    EXPECT_EQ(many.last, few.first) << "stage " << stage;
  }
  EXPECT_LT(peak_memory_nbytes(), int64_t{6} << 30);
}

}  // namespace
}  // namespace zero::test
