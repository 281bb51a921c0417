/// @file Runs that are saved through their slots and scalars and go on in another world or stage.
#include "tests/engine/rank_worlds.h"
#include "tests/engine/training.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>

namespace zero::test::carry_over_test {
namespace {

/// Everything that a caller can read of a run.
struct Saved {
  struct Slot {
    int64_t id;
    SlotInfo info;
    std::vector<std::byte> entries;
  };
  std::vector<Slot> slots;
  std::map<std::pair<int64_t, int32_t>, double> hyper;  ///< by set and key
  std::map<int32_t, int64_t> scalars;

  friend bool operator==(const Saved &a, const Saved &b) {
    if (a.slots.size() != b.slots.size() || a.hyper != b.hyper || a.scalars != b.scalars) return false;
    for (size_t i = 0; i < a.slots.size(); ++i) {
      const Slot &left = a.slots[i];
      const Slot &right = b.slots[i];
      if (left.id != right.id || left.info.number != right.info.number || left.entries != right.entries) return false;
    }
    return true;
  }
};

/// A collective: each rank reads everything.
Saved save(Optimizer &optimizer, const Model &model) {
  Saved saved;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    int64_t slots = 0;
    EXPECT_TRUE(optimizer.slot_count(id, &slots).ok());
    for (int64_t index = 0; index < slots; ++index) {
      Saved::Slot slot{id, {}, {}};
      EXPECT_TRUE(optimizer.slot(id, index, &slot.info).ok());
      slot.entries.resize(static_cast<size_t>(slot.info.count * dtype_nbytes(slot.info.dtype)));
      EXPECT_TRUE(run_task(optimizer, optimizer.read(id, slot.info.number, 0, slot.entries.data(), slot.info.count)).ok());
      saved.slots.push_back(std::move(slot));
    }
  }
  double value = 0;
  for (int64_t set = 0; set < model.recipe.sets; ++set) {
    for (int32_t key = 400; key < 500; ++key) {
      if (optimizer.get_f64(set, key, &value).ok()) saved.hyper[{set, key}] = value;
    }
  }
  EXPECT_TRUE(optimizer.get_f64(0, ZERO_KEY_LOSS_SCALE, &value).ok());
  saved.hyper[{0, ZERO_KEY_LOSS_SCALE}] = value;
  for (int32_t key = 500; key < 600; ++key) {
    int64_t scalar = 0;
    if (optimizer.get_i64(key, &scalar).ok()) saved.scalars[key] = scalar;
  }
  return saved;
}

/// Each rank writes an even part of every slot, whoever owns it. Scalars come first: the step count
/// sets the update counts of all tensors.
void restore(Optimizer &optimizer, const Saved &saved) {
  for (const auto &[key, value] : saved.scalars) EXPECT_TRUE(optimizer.set_i64(key, value).ok()) << key;
  for (const Saved::Slot &slot : saved.slots) {
    const Range part = even_share(slot.info.count, optimizer.group()->rank(), optimizer.group()->size());
    const std::byte *from = slot.entries.data() + part.begin * dtype_nbytes(slot.info.dtype);
    const Status status = run_task(optimizer, optimizer.write(slot.id, slot.info.number, part.begin, from, part.count()));
    EXPECT_TRUE(status.ok()) << status.text();
  }
  for (const auto &[key, value] : saved.hyper) {
    const Status status = optimizer.set_f64(key.first, key.second, value);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  const Status status = run_task(optimizer, optimizer.begin(ZERO_SOURCE_SHARDS));
  EXPECT_TRUE(status.ok()) << status.text();
}

/// What differs, for a failed comparison.
std::string difference(const Saved &a, const Saved &b) {
  std::string text;
  for (size_t i = 0; i < a.slots.size() && i < b.slots.size(); ++i) {
    if (a.slots[i].entries == b.slots[i].entries) continue;
    text += "tensor " + std::to_string(a.slots[i].id) + " slot " + std::to_string(a.slots[i].info.number) + "; ";
  }
  for (const auto &[key, value] : a.hyper) {
    const auto other = b.hyper.find(key);
    if (other == b.hyper.end() || other->second != value) text += "key " + std::to_string(key.second) + "; ";
  }
  for (const auto &[key, value] : a.scalars) {
    const auto other = b.scalars.find(key);
    if (other == b.scalars.end() || other->second != value) text += "key " + std::to_string(key) + "; ";
  }
  return text;
}

struct Form {
  const char *name;
  const char *algorithm;
  DType dtype;
  int64_t master;
  bool narrow;  ///< states of 8 bits
  bool average;
  bool stochastic;
  bool dynamic;  ///< loss scale, with an overflow
  bool coded = false;
};

/// Builds that watch memory or threads take paths, which repeat over worlds.
const std::vector<int64_t> kWorlds = few_tests() ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{1, 2, 3, 8};

constexpr Form kForms[] = {
    {"f32", "adamw", DType::f32, ZERO_MASTER_F32, false, false, false, false},
    {"f32 sgd", "sgd", DType::f32, ZERO_MASTER_F32, false, false, false, false},
    {"f32 adagrad", "adagrad", DType::f32, ZERO_MASTER_F32, false, true, false, false},
    {"f32 lion 8 bit", "lion", DType::f32, ZERO_MASTER_F32, true, false, false, false},
    {"bf16 and master", "adamw", DType::bf16, ZERO_MASTER_F32, false, true, false, true},
    {"f16 and master", "adam", DType::f16, ZERO_MASTER_F32, false, false, false, true},
    {"bf16 and remainder", "adamw", DType::bf16, ZERO_MASTER_REMAINDER, false, true, false, false},
    {"bf16 and remainder, 8 bit", "adamw", DType::bf16, ZERO_MASTER_REMAINDER, true, false, false, false},
    {"bf16", "adamw", DType::bf16, ZERO_MASTER_NONE, false, true, false, false},
    {"bf16 stochastic", "adamw", DType::bf16, ZERO_MASTER_NONE, false, true, true, true},
    {"f16 stochastic, 8 bit", "adamw", DType::f16, ZERO_MASTER_NONE, true, false, true, false},
    {"f32 8 bit stochastic", "adam", DType::f32, ZERO_MASTER_F32, true, true, true, false},
    {"f32 stored in 8 bit", "adamw", DType::f32, ZERO_MASTER_F32, false, false, false, false, true},
    {"bf16 stored in 8 bit", "lamb", DType::bf16, ZERO_MASTER_F32, true, true, false, true, true},
};

Model model_of(const Form &form, int64_t ranks, int64_t number) {
  Model model;
  model.seed = static_cast<uint64_t>(number) + 3;
  model.ranks = ranks;
  model.counts = {700, 31, 0, 1300, 257, 90, 300};
  model.algorithm = form.algorithm;
  model.momentum = model.algorithm == "sgd" ? 0.9 : 0;
  model.steps = 6;
  Recipe &recipe = model.recipe;
  recipe.dtype = form.dtype;
  recipe.mixed = number % 3 == 1;
  recipe.master = form.master;
  recipe.coded = form.coded;
  if (form.narrow) recipe.first_moment = DType::f8e4m3;
  if (form.narrow) recipe.second_moment = DType::f8ue5m3;
  recipe.average = form.average;
  recipe.stochastic = form.stochastic;
  recipe.sets = model.algorithm == "sgd" ? 1 : number % 3 + 1;
  recipe.frozen_every = number % 4 == 2 ? 3 : 0;
  recipe.untouched = number % 2 == 1;
  recipe.unfilled_every = number % 2 == 1 ? 2 : 0;
  recipe.gather_below = number % 2 == 0 ? 100 : 0;
  if (form.dynamic) {
    recipe.loss_scale = 16;
    recipe.overflow_step = 1;
  }
  return model;
}

/// Rates that the caller changes on the way.
void change_rates(Optimizer &optimizer, const Model &model, int64_t step) {
  for (int64_t set = 0; set < model.recipe.sets; ++set) {
    EXPECT_TRUE(optimizer.set_f64(set, ZERO_KEY_LR, 0.01 / static_cast<double>(step + set + 1)).ok());
    EXPECT_TRUE(optimizer.set_f64(set, ZERO_KEY_WEIGHT_DECAY, 0.02 * static_cast<double>(step)).ok());
  }
}

Manner manner_of(int64_t stage, int64_t number) {
  Manner manner;
  manner.stage = stage;
  manner.bucket_nbytes = number % 2 == 0 ? 1024 : 8192;
  manner.overlap = number % 3 == 0;
  return manner;
}

void train_on(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t from, int64_t to) {
  for (int64_t step = from; step < to; ++step) {
    // In the last steps rates stay, so that those that were carried over are used.
    if (step < 3) change_rates(optimizer, model, step);
    (void)train_step(optimizer, model, manner, step);
  }
}

/// A run of three steps, saved.
Saved first_half(const Model &model, const Manner &manner) {
  Saved saved;
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    train_on(*optimizer, model, manner, 0, 3);
    const Saved mine = save(*optimizer, model);
    if (group->rank() == 0) saved = mine;
  });
  return saved;
}

TEST(CarryOver, ToAnotherWorldAndStageHoldsTheSameBits) {
  int64_t runs = 0;
  int64_t entries = 0;
  for (const Form &form : kForms) {
    for (const int64_t from : kWorlds) {
      for (const int64_t to : kWorlds) {
        for (int64_t stage = 0; stage < (full_tests() ? 4 : 1); ++stage, ++runs) {
          Model model = model_of(form, from, runs);
          const Saved saved = first_half(model, manner_of((runs / 4 + stage) % 4, runs));
          model.ranks = to;
          const Manner manner = manner_of((runs + 1) % 4, runs / 2);
          run_world(to, [&](const std::shared_ptr<Group> &group) {
            const auto optimizer = make_optimizer(group, model, manner);
            restore(*optimizer, saved);
            const Saved again = save(*optimizer, model);
            EXPECT_TRUE(again == saved) << form.name << " from " << from << " to " << to << ": " << difference(saved, again) << "\n"
                                        << model.text() << "\n"
                                        << manner.text();
            // And it goes on.
            (void)train_step(*optimizer, model, manner, 3);
          });
          for (const Saved::Slot &slot : saved.slots) entries += slot.info.count;
        }
      }
    }
  }
  std::printf("%lld runs carried over to another world or stage, %lld entries of slots compared\n", static_cast<long long>(runs),
              static_cast<long long>(entries));
}

TEST(CarryOver, InTheSameWorldGoesOnWithTheBitsOfTheRunThatNeverStopped) {
  Every every(5);
  int64_t runs = 0;
  int64_t compared = 0;
  for (const Form &form : kForms) {
    for (const int64_t ranks : kWorlds) {
      for (int64_t stage = 0; stage < 4; ++stage, ++runs) {
        if (!every.next()) continue;
        ++compared;
        const Model model = model_of(form, ranks, runs);
        const Manner first = manner_of((stage + runs / 4) % 4, runs);
        const Manner second = manner_of(stage, runs + 1);
        const Saved saved = first_half(model, first);
        run_world(ranks, [&](const std::shared_ptr<Group> &group) {
          const auto unbroken = begun_optimizer(group, model, first);
          train_on(*unbroken, model, first, 0, model.steps);
          const auto optimizer = make_optimizer(group, model, second);
          restore(*optimizer, saved);
          train_on(*optimizer, model, second, 3, model.steps);
          const Saved expected = save(*unbroken, model);
          const Saved got = save(*optimizer, model);
          // Back in the same optimizer.
          restore(*unbroken, saved);
          EXPECT_TRUE(save(*unbroken, model) == saved) << form.name;
          EXPECT_TRUE(got == expected) << form.name << ": " << difference(expected, got) << "\n"
                                       << model.text() << "\n"
                                       << first.text() << "\n"
                                       << second.text();
        });
      }
    }
  }
  std::printf("%lld runs go on with the same bits\n", static_cast<long long>(compared));
}

TEST(CarryOver, EverySlotThatIsListedCanBeReadAndWrittenAndNoOther) {
  run_world(2, [&](const std::shared_ptr<Group> &group) {
    const Model model = model_of(kForms[7], 2, 0);
    const auto optimizer = make_optimizer(group, model, manner_of(2, 0));
    begin_training(*optimizer, model, manner_of(2, 0));
    std::vector<float> unused(2000);
    for (const int32_t slot : {0, 4, 5, 12, 13, 16, 20, 99, -1}) {
      const Status refused = run_task(*optimizer, optimizer->read(0, slot, 0, unused.data(), 1));
      EXPECT_EQ(refused.code(), ZERO_E_UNSUPPORTED) << slot;
      EXPECT_NE(std::strstr(refused.text(),
                            ", but must be ZERO_SLOT_PARAM (1), ZERO_SLOT_GRAD (2), ZERO_SLOT_MASTER (3), ZERO_SLOT_FIRST_MOMENT"),
                nullptr)
          << refused.text();
      const std::string named = slot == ZERO_SLOT_AVERAGE       ? "4, ZERO_SLOT_AVERAGE"
                                : slot == ZERO_SLOT_PARAM_SCALE ? "5, ZERO_SLOT_PARAM_SCALE"
                                                                : "";
      EXPECT_NE(std::strstr(refused.text(), named.c_str()), nullptr) << refused.text();
      EXPECT_EQ(run_task(*optimizer, optimizer->write(0, slot, 0, unused.data(), 1)).code(), ZERO_E_UNSUPPORTED) << slot;
    }
    EXPECT_EQ(run_task(*optimizer, optimizer->write(0, ZERO_SLOT_GRAD, 0, unused.data(), 1)).code(), ZERO_E_UNSUPPORTED);
    // Scales are one per line: 700 elements have three.
    EXPECT_TRUE(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_FIRST_SCALE, 0, unused.data(), 3)).ok());
    EXPECT_EQ(run_task(*optimizer, optimizer->read(0, ZERO_SLOT_FIRST_SCALE, 1, unused.data(), 3)).code(), ZERO_E_INVALID_ARGUMENT);
    SlotInfo info{};
    int64_t slots = 0;
    ASSERT_TRUE(optimizer->slot_count(0, &slots).ok());
    EXPECT_EQ(slots, 6);  // parameter, remainder, two moments, two scales
    EXPECT_EQ(optimizer->slot(0, slots, &info).code(), ZERO_E_INVALID_ARGUMENT);
    EXPECT_EQ(optimizer->slot(0, -1, &info).code(), ZERO_E_INVALID_ARGUMENT);
  });
}

}  // namespace
}  // namespace zero::test::carry_over_test
