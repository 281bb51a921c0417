/// @file Layouts of random models, as tests of what lies where need them: registered tensors with their settings, and one layout per rank.
#pragma once

#include "engine/layout/layout.h"
#include "tests/algorithms.h"
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace zero::test {

/// Everything that a layout is made from.
struct Registered {
  Params params;
  Settings settings{};
  std::vector<HyperSet> sets;

  Registered(const Model &model, const Manner &manner) : sets(1) {
    const Config config = make_config(model, manner);
    EXPECT_TRUE(read_settings(config, {.size = model.ranks}, &settings).ok());
    EXPECT_TRUE(sets[0].read(settings.algorithm, config, nullptr).ok());
    for (int64_t id = 0; id < model.tensors(); ++id) {
      ParamOptions options;
      options.frozen = model.frozen(id);
      options.precision = settings.precision;
      if (model.shared(id) && id > 0) options.tied_to = 0;
      const std::vector<int64_t> shape = model.shape(id);
      int64_t out = -1;
      const Status added = params.add(("p" + std::to_string(id)).c_str(), static_cast<int32_t>(model.dtype(id)), shape.data(),
                                      static_cast<int64_t>(shape.size()), options, &out);
      EXPECT_TRUE(added.ok()) << added.text();
    }
  }
  Registered(const Registered &) = delete;

  Layout layout_of(int64_t rank) const {
    Layout layout(params, settings, sets);
    const Status made = layout.make(rank);
    EXPECT_TRUE(made.ok()) << made.text();
    return layout;
  }
};

/// With buckets that take few tensors.
inline Manner stage_of(int64_t stage) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = 4096;
  return manner;
}

/// A model of several storages, cut over up to five ranks.
inline Model laid_out_model(uint64_t seed) {
  const Names names = all_names();
  Model model = random_model(seed, static_cast<int64_t>(seed % 5) + 1, int64_t{1} << 14);
  model.algorithm = names[seed % names.size()];
  model.recipe = random_recipe(seed, model.algorithm);
  if (seed % 3 == 0) {
    model.recipe.tied = true;
    model.counts.push_back(model.counts.front());
  }
  return model;
}

}  // namespace zero::test
