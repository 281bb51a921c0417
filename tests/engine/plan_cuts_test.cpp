/// @file Cuts of a plan, which are computed where they are asked for, against a table of the owner of every element that is made another
/// way and stored; and what a plan over many ranks takes.
#include "engine/layout/params.h"
#include "engine/layout/plan.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace zero::test {
namespace {

struct CutModel {
  std::vector<TensorShape> tensors;
  std::vector<SpaceShape> spaces;
  std::vector<int64_t> weights;

  Plan plan(int64_t rank) const {
    std::vector<int64_t> order(tensors.size());
    std::iota(order.rbegin(), order.rend(), 0);
    const Weights shares(weights);
    return Plan({tensors, spaces, order, shares, rank});
  }
};

/// Tensors of 0, 1, odd and many elements, also fewer than there are ranks; some ranks have no weight.
CutModel random_cut_model(std::mt19937_64 &random) {
  CutModel model;
  model.spaces = {{static_cast<int64_t>(256 << (random() % 6))}, {static_cast<int64_t>(256 << (random() % 6)), true, true}};
  for (size_t i = random() % 24; i > 0; --i) {
    const auto exponent = static_cast<double>(random() % 110) / 10;
    const auto count = random() % 5 == 0 ? static_cast<int64_t>(random() % 2) : static_cast<int64_t>(std::exp2(exponent)) | 1;
    model.tensors.push_back({count, static_cast<int64_t>(random() % 4 == 0), -1, static_cast<double>(count)});
  }
  for (size_t i = 0; i < model.tensors.size(); ++i) {
    if (random() % 8 == 0 && i > 0 && model.tensors[i - 1].tied_to < 0) {
      model.tensors[i] = model.tensors[i - 1];
      model.tensors[i].tied_to = static_cast<int64_t>(i) - 1;
    }
  }
  const size_t ranks = random() % 40 + 1;
  for (size_t rank = 0; rank < ranks; ++rank) model.weights.push_back(rank == 0 ? 1 : static_cast<int64_t>(random() % 4));
  return model;
}

/// By element of a bucket. Of one that is cut into lines, line l is the rank's below whose share of all weights it comes to lie.
std::vector<int64_t> owners_in(const CutModel &model, const std::vector<Plan> &plans, int64_t index) {
  const PlannedBucket &bucket = plans[0].bucket(index);
  const int64_t count = bucket.flat.count();
  std::vector<int64_t> owners(static_cast<size_t>(count), -1);
  if (model.spaces[static_cast<size_t>(bucket.space)].whole_tensors) {
    for (size_t rank = 0; rank < plans.size(); ++rank) {
      if (!plans[rank].bucket(index).own.empty()) std::fill(owners.begin(), owners.end(), static_cast<int64_t>(rank));
    }
    return owners;
  }
  const int64_t lines = (count + 255) / 256;
  const int64_t total = std::accumulate(model.weights.begin(), model.weights.end(), int64_t{0});
  for (int64_t element = 0; element < count; ++element) {
    int64_t below = 0;
    int64_t rank = -1;
    while (element / 256 >= lines * below / total) below += model.weights[static_cast<size_t>(++rank)];
    owners[static_cast<size_t>(element)] = rank;
  }
  return owners;
}

Range owned_by(const std::vector<int64_t> &owners, int64_t rank, int64_t begin, int64_t count) {
  Range found;
  for (int64_t element = 0; element < count; ++element) {
    if (owners[static_cast<size_t>(begin + element)] != rank) continue;
    if (found.empty()) found.begin = element;
    found.end = element + 1;
  }
  return found;
}

void expect_cuts_as_stored(const CutModel &model) {
  std::vector<Plan> plans;
  const auto ranks = static_cast<int64_t>(model.weights.size());
  for (int64_t rank = 0; rank < ranks; ++rank) plans.push_back(model.plan(rank));
  for (int64_t index = 0; index < plans[0].bucket_count(); ++index) {
    const std::vector<int64_t> owners = owners_in(model, plans, index);
    const Cuts cuts = plans[0].bucket_cuts(index);
    ASSERT_EQ(static_cast<int64_t>(cuts.size()), ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Range expected = owned_by(owners, rank, 0, plans[0].bucket(index).flat.count());
      const Range cut = cuts[static_cast<size_t>(rank)];
      if (!expected.empty() || !cut.empty()) {
        ASSERT_EQ(cut, expected);
      }
      ASSERT_EQ(plans[static_cast<size_t>(rank)].bucket(index).own, cut);
      ASSERT_EQ(plans[0].bucket_cut(index, rank), cut);
    }
    for (size_t id = 0; id < model.tensors.size(); ++id) {
      const PlannedParam &param = plans[0].params()[id];
      if (param.bucket != index) continue;
      const Cuts parts = plans[0].param_cuts(static_cast<int64_t>(id));
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Range expected = owned_by(owners, rank, param.flat.begin - plans[0].bucket(index).flat.begin, param.flat.count());
        ASSERT_EQ(parts[static_cast<size_t>(rank)], expected) << "tensor " << id << " of rank " << rank;
        ASSERT_EQ(plans[static_cast<size_t>(rank)].own_param_cut(static_cast<int64_t>(id)), expected);
      }
    }
  }
}

TEST(PlanCuts, AreThoseOfAStoredTable) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 150; ++round) expect_cuts_as_stored(random_cut_model(random));
}

TEST(PlanCuts, OfATensorWithoutElementsAreEmpty) {
  CutModel model;
  model.tensors = {{0}, {300}};
  model.spaces = {{256}};
  model.weights = {1, 1, 1};
  const Plan plan = model.plan(1);
  EXPECT_EQ(plan.param_cuts(0), (Cuts{{}, {}, {}}));
  EXPECT_EQ(plan.own_param_cut(0), Range{});
}

/// A table of who owns what would have 16 bytes for each pair.
TEST(PlanCuts, TakeAFewWordsPerRankAndAConstantPerTensor) {
  constexpr size_t kTensors = 1000;
  const auto held = [](size_t ranks) {
    CutModel model;
    model.tensors.assign(kTensors, {300});
    model.spaces = {{65'536}};
    model.weights.assign(ranks, 1);
    const auto before = static_cast<int64_t>(::mallinfo2().uordblks + ::mallinfo2().hblkhd);
    const Plan plan = model.plan(0);
    const auto after = static_cast<int64_t>(::mallinfo2().uordblks + ::mallinfo2().hblkhd);
    return after - before - static_cast<int64_t>(ranks * sizeof(int64_t));
  };
  (void)held(1024);
  EXPECT_LT(held(1024) - held(1), 64 * 1024);
}

TEST(Params, WhatIsRefusedDoesNotCountTowardsTheMostElements) {
  Params params;
  int64_t id = -1;
  const int64_t half = kMostElements / 2;
  const auto add = [&](const char *name) { return params.add(name, ZERO_DTYPE_F32, &half, 1, {}, &id).code(); };
  EXPECT_EQ(add("a"), ZERO_OK);
  EXPECT_EQ(add("a"), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(add("b"), ZERO_OK);
  EXPECT_EQ(add("c"), ZERO_E_INVALID_ARGUMENT);
  EXPECT_EQ(params.size(), 2);
}

}  // namespace
}  // namespace zero::test
