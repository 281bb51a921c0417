/// @file A run that was saved by N ranks at one stage goes on with M ranks at another, bit by bit as if it had never stopped.
#include "tests/engine/saved_runs.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <utility>

namespace zero::test::reshard_test {
namespace {

constexpr int64_t kRanks = 8;
constexpr int64_t kStages = 4;
constexpr int64_t kSavedSteps = 3;
constexpr int64_t kMoreSteps = 5;

struct World {
  int64_t ranks;
  int64_t stage;
  friend auto operator<=>(const World &, const World &) = default;
};

struct Way {
  World from;
  World to;
};

Manner manner_of(const World &world, const std::string &weights = {}) {
  Manner manner;
  manner.stage = world.stage;
  manner.bucket_nbytes = 4096;
  manner.shard_weights = weights;
  manner.source = ZERO_SOURCE_SHARDS;
  return manner;
}

Model in_world(Model model, int64_t ranks) {
  model.ranks = ranks;
  return model;
}

/// What the run that never stops has kept at the save, and at its end.
struct Undisturbed {
  std::vector<std::byte> saved;
  std::vector<std::byte> ended;
};

Undisturbed run_undisturbed(const Model &model) {
  Undisturbed run;
  run_world(1, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, in_world(model, 1), manner_of({1, 0}));
    step_alone(*optimizer, model, 0, kSavedSteps);
    run.saved = read_slots(*optimizer, model);
    step_alone(*optimizer, model, kSavedSteps, kSavedSteps + kMoreSteps);
    run.ended = read_slots(*optimizer, model);
  });
  return run;
}

void save_run(const Model &model, const World &world, const std::string &folder, const std::string &weights = {},
              const CheckpointKeys &keys = {}) {
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, in_world(model, world.ranks), manner_of(world, weights));
    step_alone(*optimizer, model, 0, kSavedSteps);
    zero_checkpoint_result result{};
    expect_ok(save(*checkpoint_of(optimizer, keys), folder, &result), "save");
    EXPECT_EQ(result.step, kSavedSteps);
    EXPECT_GT(result.nbytes, 0);
  });
}

/// Loads each of the folders in turn, and goes on from it. Returns how many bytes of slots differ.
int64_t go_on(const Model &model, const World &world, const std::vector<std::string> &folders, const Undisturbed &expected,
              const std::string &weights = {}) {
  std::atomic<int64_t> different{0};
  const auto compare = [&](const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
    if (a.size() != b.size()) different.fetch_add(static_cast<int64_t>(std::max(a.size(), b.size())));
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) different.fetch_add(a[i] != b[i] ? 1 : 0);
  };
  run_world(world.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = make_optimizer(group, in_world(model, world.ranks), manner_of(world, weights));
    const auto checkpoint = checkpoint_of(optimizer);
    for (const std::string &folder : folders) {
      zero_checkpoint_result result{};
      expect_ok(load(*checkpoint, folder, ZERO_PART_ALL, &result), "load");
      EXPECT_EQ(result.step, kSavedSteps);
      EXPECT_EQ(result.converted + result.missing + result.extra + result.fallback, 0) << checkpoint->skipped();
      compare(read_slots(*optimizer, model), expected.saved);
      expect_same_on_all_ranks(*optimizer);
      step_alone(*optimizer, model, kSavedSteps, kSavedSteps + kMoreSteps);
      compare(read_slots(*optimizer, model), expected.ended);
    }
  });
  return different.load();
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (int64_t from = 0; from < kRanks * kStages; ++from) {
    for (int64_t to = 0; to < kRanks * kStages; ++to)
      ways.push_back({{from / kStages + 1, from % kStages}, {to / kStages + 1, to % kStages}});
  }
  return ways;
}

/// Of one save each.
void expect_no_difference(const Model &model, std::vector<Way> ways, const char *what) {
  const Undisturbed expected = run_undisturbed(model);
  std::map<World, std::unique_ptr<SaveFolder>> folders;
  std::map<World, std::vector<std::string>> loads;
  for (const Way &way : ways) {
    std::unique_ptr<SaveFolder> &folder = folders[way.from];
    if (folder == nullptr) {
      folder = std::make_unique<SaveFolder>();
      save_run(model, way.from, folder->path());
    }
    loads[way.to].push_back(folder->path());
  }
  int64_t different = 0;
  for (const auto &[world, paths] : loads) different += go_on(model, world, paths, expected);
  std::printf("%s: combinations of ranks and stages = %zu, saves = %zu, bytes that differ = %lld\n", what, ways.size(), folders.size(),
              static_cast<long long>(different));
  EXPECT_EQ(different, 0) << what;
}

std::vector<Way> some_ways(uint64_t seed, size_t count) {
  std::vector<Way> ways = all_ways();
  std::shuffle(ways.begin(), ways.end(), std::mt19937_64(seed));
  ways.resize(std::min(count, ways.size()));
  return ways;
}

TEST(Reshard, AnyWorldGoesOnFromAnyOther) {
  const std::vector<Way> ways = full_tests() ? all_ways() : some_ways(39, few_tests() ? 6 : 40);
  expect_no_difference(saved_model(), ways, "fp32 AdamW");
}

struct Case {
  const char *name;
  Recipe recipe;
  const char *algorithm = "adamw";
};

std::vector<Case> cases() {
  std::vector<Case> cases;
  const auto add = [&](const char *name, const char *algorithm, auto set) {
    cases.push_back({name, {}, algorithm});
    set(cases.back().recipe);
  };
  add("bf16 with fp32 master", "adamw", [](Recipe &r) { r.dtype = DType::bf16; });
  add("bf16 with remainder", "adamw", [](Recipe &r) {
    r.dtype = DType::bf16;
    r.master = ZERO_MASTER_REMAINDER;
  });
  add("bf16 without master, stochastic", "adamw", [](Recipe &r) {
    r.dtype = DType::bf16;
    r.master = ZERO_MASTER_NONE;
    r.stochastic = true;
  });
  add("8-bit states", "adamw", [](Recipe &r) {
    r.dtype = DType::bf16;
    r.first_moment = DType::f8e4m3;
    r.second_moment = DType::f8ue5m3;
  });
  add("8-bit parameters", "adamw", [](Recipe &r) {
    r.dtype = DType::bf16;
    r.coded = true;
  });
  add("averages, frozen and tied tensors", "adamw", [](Recipe &r) {
    r.average = true;
    r.frozen_every = 3;
  });
  add("counts of updates, sets", "adamw", [](Recipe &r) {
    r.untouched = true;
    r.unfilled_every = 2;
    r.sets = 3;
  });
  add("mixed dtypes, small tensors kept whole", "adam", [](Recipe &r) {
    r.dtype = DType::f16;
    r.mixed = true;
    r.gather_below = 300;
  });
  add("momentum", "sgd", [](Recipe &) {});
  add("matrices on one rank each", "muon", [](Recipe &) {});
  add("layerwise", "lamb", [](Recipe &) {});
  add("adagrad", "adagrad", [](Recipe &) {});
  add("lion, bf16 moments", "lion", [](Recipe &r) { r.first_moment = DType::bf16; });
  return cases;
}

TEST(Reshard, SoDoesWhateverAnOptimizerKeeps) {
  const size_t each = full_tests() ? 128 : few_tests() ? 1 : 4;
  uint64_t seed = 100;
  for (const Case &one : cases()) {
    Model model = saved_model();
    model.recipe = one.recipe;
    model.algorithm = one.algorithm;
    if (model.algorithm == "sgd") model.momentum = 0.9;
    if (model.recipe.frozen_every > 0) {
      model.recipe.tied = true;
      model.counts.push_back(model.counts.front());
    }
    expect_no_difference(model, some_ways(++seed, each), one.name);
  }
}

/// Some ranks own nothing.
TEST(Reshard, ShardWeightsMayDiffer) {
  const Model model = saved_model();
  const Undisturbed expected = run_undisturbed(model);
  int64_t combinations = 0;
  for (int64_t stage = 0; stage < kStages; ++stage) {
    SaveFolder folder;
    save_run(model, {4, stage}, folder.path(), "1,0,3,2");
    for (const char *weights : {"", "0,5,1"}) {
      EXPECT_EQ(go_on(model, {3, (stage + 1) % kStages}, {folder.path()}, expected, weights), 0) << "stage " << stage;
      ++combinations;
    }
  }
  std::printf("combinations of shard weights = %lld\n", static_cast<long long>(combinations));
}

/// Each rank then saves its own cut of parameters too.
TEST(Reshard, WithoutModelFilesToo) {
  const Model model = saved_model();
  const Undisturbed expected = run_undisturbed(model);
  for (int64_t stage = 0; stage < kStages; ++stage) {
    SaveFolder folder;
    save_run(model, {3, stage}, folder.path(), "", {{ZERO_KEY_CHECKPOINT_MODEL_FILES, 0}});
    EXPECT_EQ(go_on(model, {2, 3 - stage}, {folder.path()}, expected), 0) << "stage " << stage;
  }
}

/// The caller updates; slots hold what it wrote.
TEST(Reshard, SlotsOfTheCallersOwnAlgorithm) {
  Model model = saved_model();
  model.algorithm = "custom";
  const auto custom = [&](const std::shared_ptr<Group> &group, const World &world) {
    std::shared_ptr<Optimizer> optimizer;
    Config config = make_config(in_world(model, world.ranks), manner_of(world));
    expect_ok(config.set_i64(ZERO_KEY_CUSTOM_SLOTS, 4), "set_i64");
    expect_ok(Optimizer::create(group, config, &optimizer), "create");
    for (int64_t id = 0; id < model.tensors(); ++id) {
      int64_t out = 0;
      const int64_t count = model.counts[static_cast<size_t>(id)];
      expect_ok(optimizer->add_param(nullptr, ("p" + std::to_string(id)).c_str(), ZERO_DTYPE_F32, &count, 1, &out), "add_param");
    }
    expect_ok(optimizer->seal_queue()->run(optimizer->seal()), "seal");
    return optimizer;
  };
  SaveFolder folder;
  std::vector<std::byte> saved;
  run_world(3, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = custom(group, {3, 2});
    for (int64_t id = 0; id < model.tensors(); ++id) {
      for (int32_t slot : {ZERO_SLOT_PARAM + 0, ZERO_SLOT_CUSTOM + 0, ZERO_SLOT_CUSTOM + 3}) {
        std::vector<float> values;
        for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i) values.push_back(value_at(5, static_cast<uint64_t>(slot), i));
        expect_ok(run_task(*optimizer, optimizer->write(id, slot, 0, values.data(), std::ssize(values))), "write");
      }
    }
    expect_ok(run_task(*optimizer, optimizer->begin(ZERO_SOURCE_SHARDS)), "begin");
    expect_ok(save(*checkpoint_of(optimizer), folder.path()), "save");
    const std::vector<std::byte> slots = read_slots(*optimizer, model);
    if (group->rank() == 0) saved = slots;
  });
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = custom(group, {2, 3});
    expect_ok(load(*checkpoint_of(optimizer), folder.path()), "load");
    EXPECT_EQ(read_slots(*optimizer, model), saved);
  });
}

}  // namespace
}  // namespace zero::test::reshard_test
