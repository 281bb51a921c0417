/// @file The lists of kernels: targets and algorithms.
#include "kernels/kernels.h"

#include <gtest/gtest.h>
#include <zero/config.h>
#include <zero/optimizer.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

namespace zero::kernels::targets_test {
namespace {

TEST(Targets, ReferenceComesFirstAndEveryTableIsComplete) {
  ASSERT_FALSE(supported().empty());
  EXPECT_STREQ(supported().front()->target, "reference");
  std::set<std::string> names;
  for (const Table *table : supported()) {
    EXPECT_TRUE(names.insert(table->target).second) << table->target;
    EXPECT_NE(table->reduce, nullptr);
    EXPECT_NE(table->all_within, nullptr);
    EXPECT_NE(table->copy_within, nullptr);
    EXPECT_NE(table->stream, nullptr);
    EXPECT_NE(table->flush, nullptr);
    EXPECT_NE(table->scale, nullptr);
    EXPECT_NE(table->widen, nullptr);
    EXPECT_NE(table->narrow, nullptr);
    EXPECT_NE(table->random_words, nullptr);
    EXPECT_NE(table->narrow_stochastic, nullptr);
    EXPECT_NE(table->join, nullptr);
    EXPECT_NE(table->split, nullptr);
    EXPECT_NE(table->encode, nullptr);
    EXPECT_NE(table->decode, nullptr);
    EXPECT_NE(table->multiply, nullptr);
    EXPECT_NE(table->combine, nullptr);
    EXPECT_NE(table->interpolate, nullptr);
    EXPECT_NE(table->lamb_moments, nullptr);
    EXPECT_NE(table->lamb_direction, nullptr);
    EXPECT_NE(table->add, nullptr);
    EXPECT_NE(table->clamp, nullptr);
    EXPECT_NE(table->average, nullptr);
    EXPECT_NE(table->add_squares, nullptr);
    for (const Algorithm &algorithm : algorithms()) {
      EXPECT_TRUE(algorithm.matrix || table->*algorithm.update != nullptr) << algorithm.name;
    }
    std::printf("target: %s\n", table->target);
  }
}

TEST(Targets, ActiveIsTheFastestUnlessOneIsForced) {
  const char *forced = std::getenv("ZERO_KERNEL_TARGET");
  const auto is_forced = [&](const Table *table) { return forced != nullptr && std::string(table->target) == forced; };
  const auto found = std::find_if(supported().begin(), supported().end(), is_forced);
  EXPECT_EQ(&active(), found != supported().end() ? *found : supported().back());
  EXPECT_EQ(&active(), &active());
}

TEST(Algorithms, EachRowIsComplete) {
  for (const Algorithm &algorithm : algorithms()) {
    EXPECT_EQ(find_algorithm(algorithm.name), &algorithm);
    EXPECT_GE(algorithm.state_count, 1);
    EXPECT_LE(algorithm.state_count, kMaxStates);
    EXPECT_EQ(algorithm.update == nullptr, algorithm.matrix);
    EXPECT_EQ(algorithm.constants == nullptr, algorithm.matrix);
    for (int i = 0; i < algorithm.state_count; ++i) {
      EXPECT_TRUE(algorithm.state_slot[i] == ZERO_SLOT_FIRST_MOMENT || algorithm.state_slot[i] == ZERO_SLOT_SECOND_MOMENT)
          << algorithm.name;
      EXPECT_TRUE(i == 0 || algorithm.state_slot[i] > algorithm.state_slot[i - 1]) << algorithm.name;
    }
    EXPECT_EQ(algorithm.keys.front(), ZERO_KEY_LR);
    for (const int32_t key : algorithm.keys) EXPECT_TRUE(key >= 400 && key < 500) << key;
    for (const HyperDefault &row : algorithm.defaults) {
      EXPECT_NE(std::find(algorithm.keys.begin(), algorithm.keys.end(), row.key), algorithm.keys.end()) << algorithm.name;
    }
  }
  EXPECT_EQ(find_algorithm("adagrad")->state_slot[0], ZERO_SLOT_SECOND_MOMENT);
  EXPECT_TRUE(find_algorithm("sgd")->defaults.empty());
  EXPECT_TRUE(find_algorithm("adam")->defaults.empty());
  EXPECT_EQ(find_algorithm("adamw")->defaults.front().value, 0.01);
}

TEST(Algorithms, UnknownNamesHaveNoRow) {
  EXPECT_EQ(find_algorithm(""), nullptr);
  EXPECT_EQ(find_algorithm("custom"), nullptr);
  EXPECT_EQ(find_algorithm("AdamW"), nullptr);
}

}  // namespace
}  // namespace zero::kernels::targets_test
