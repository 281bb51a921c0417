/// @file Every algorithm in every precision over a hundred steps: what each slot holds, and its bytes.
#include "tests/engine/bounded_training.h"
#include "tests/engine/rank_worlds.h"
#include "tests/sizes.h"

#include <zero/stats.h>

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

namespace zero::test::precision_test {
namespace {

/// Builds that watch memory or threads take a fifth of the combinations.
/// How parameters are stored; the gradient has their dtype.
struct Form {
  const char *name;
  DType dtype;
  int64_t master;
  bool coded = false;
};
constexpr Form kForms[] = {{"f32", DType::f32, ZERO_MASTER_F32},
                           {"bf16 + f32 master", DType::bf16, ZERO_MASTER_F32},
                           {"f16 + f32 master", DType::f16, ZERO_MASTER_F32},
                           {"bf16 + remainder", DType::bf16, ZERO_MASTER_REMAINDER},
                           {"bf16", DType::bf16, ZERO_MASTER_NONE},
                           {"f16", DType::f16, ZERO_MASTER_NONE},
                           {"8-bit + f32 master", DType::f32, ZERO_MASTER_F32, true}};

struct Moments {
  const char *name;
  DType first;
  DType second;
};
constexpr Moments kMoments[] = {
    {"f32", DType::f32, DType::f32}, {"bf16", DType::bf16, DType::bf16}, {"8-bit", DType::f8e4m3, DType::f8ue5m3}};

struct Rule {
  const char *name;
  double momentum;
  double nesterov;
};
constexpr Rule kRules[] = {{"sgd", 0, 0},   {"sgd", 0.9, 0},   {"sgd", 0.9, 1}, {"adam", 0, 0},
                           {"adamw", 0, 0}, {"adagrad", 0, 0}, {"lion", 0, 0}};

Model model_of(const Rule &rule, const Form &form, const Moments &moments, int64_t ranks) {
  Model model;
  model.ranks = ranks;
  model.counts = {700, 0, 31, 257, 90};
  model.algorithm = rule.name;
  model.momentum = rule.momentum;
  model.nesterov = rule.nesterov;
  model.steps = 100;
  model.recipe.dtype = form.dtype;
  model.recipe.master = form.master;
  model.recipe.coded = form.coded;
  model.recipe.first_moment = moments.first;
  model.recipe.second_moment = moments.second;
  model.recipe.average = true;
  return model;
}

/// A slot of a tensor as numbers; 8-bit ones times their scales. Remainders are joined with their parameters: that is the master.
using Values = std::map<int32_t, std::vector<float>>;

std::vector<std::byte> read_bytes(Optimizer &optimizer, int64_t id, const SlotInfo &slot) {
  std::vector<std::byte> bytes(static_cast<size_t>(slot.count * dtype_nbytes(slot.dtype)));
  const Status status = optimizer.queue()->run(optimizer.read(id, slot.number, 0, bytes.data(), slot.count));
  EXPECT_TRUE(status.ok()) << status.text();
  return bytes;
}

std::vector<float> joined(const std::vector<std::byte> &params, const std::vector<std::byte> &remainders) {
  std::vector<float> masters(params.size() / sizeof(uint16_t));
  for (size_t i = 0; i < masters.size(); ++i) {
    uint16_t upper = 0;
    int16_t lower = 0;
    std::memcpy(&upper, &params[i * sizeof upper], sizeof upper);
    std::memcpy(&lower, &remainders[i * sizeof lower], sizeof lower);
    masters[i] = std::bit_cast<float>((uint32_t{upper} << 16) + static_cast<uint32_t>(int32_t{lower}));
  }
  return masters;
}

/// The slots that scales belong to; scales come right after them.
const std::map<int32_t, int32_t> kScaled = {{ZERO_SLOT_PARAM_SCALE, ZERO_SLOT_PARAM},
                                            {ZERO_SLOT_FIRST_SCALE, ZERO_SLOT_FIRST_MOMENT},
                                            {ZERO_SLOT_SECOND_SCALE, ZERO_SLOT_SECOND_MOMENT}};

Values read_values(Optimizer &optimizer, int64_t id, int64_t count) {
  Values values;
  std::vector<std::byte> params;
  std::vector<std::byte> codes;
  DType code_dtype = DType::f32;
  int64_t slots = 0;
  EXPECT_TRUE(optimizer.slot_count(id, &slots).ok());
  for (int64_t index = 0; index < slots; ++index) {
    SlotInfo slot{};
    EXPECT_TRUE(optimizer.slot(id, index, &slot).ok());
    const std::vector<std::byte> bytes = read_bytes(optimizer, id, slot);
    if (slot.number == ZERO_SLOT_PARAM) params = bytes;
    if (slot.dtype == DType::u16) {
      values[slot.number] = joined(params, bytes);
    } else if (kernels::test::is_f8(slot.dtype)) {
      codes = bytes;
      code_dtype = slot.dtype;
    } else if (const auto scaled = kScaled.find(slot.number); scaled != kScaled.end()) {
      std::vector<float> decoded;
      for (size_t i = 0; i < codes.size(); ++i) {
        float scale = 0;
        std::memcpy(&scale, &bytes[i / 256 * sizeof scale], sizeof scale);
        decoded.push_back(static_cast<float>(kernels::test::f8_value(code_dtype, static_cast<uint8_t>(codes[i])) * scale));
      }
      values[scaled->second] = decoded;
    } else {
      values[slot.number] = decode(bytes.data(), slot.dtype, count);
    }
  }
  return values;
}

struct Findings {
  int64_t values = 0;
  int64_t outside = 0;
  int64_t params = 0;
  int64_t wide = 0;   ///< parameters whose bounds are wider than a tenth of the way that parameters go and than one step of their storage
  double widest = 0;  ///< bounds of a kept parameter over that way
};

void compare(Findings &findings, const std::vector<float> &values, const std::vector<Bounds> &bounds) {
  for (size_t i = 0; i < values.size(); ++i) {
    ++findings.values;
    if (!bounds[i].hold(values[i])) ++findings.outside;
  }
}

template <class Get>
std::vector<Bounds> all_of(const BoundedTensor &tensor, Get &&get) {
  std::vector<Bounds> bounds;
  for (int64_t i = 0; i < tensor.count(); ++i) bounds.push_back(get(i));
  return bounds;
}

void compare_tensor(Findings &findings, const BoundedTensor &tensor, const Values &values) {
  for (const auto &[slot, numbers] : values) {
    if (slot == ZERO_SLOT_PARAM) {
      compare(findings, numbers, tensor.params());
      continue;
    }
    compare(findings, numbers, all_of(tensor, [&, number = slot](int64_t i) {
              switch (number) {
                case ZERO_SLOT_MASTER:
                  return tensor.kept(i);
                case ZERO_SLOT_AVERAGE:
                  return tensor.average(i);
                case ZERO_SLOT_FIRST_MOMENT:
                  return tensor.first(i);
                default:
                  return tensor.second(i);
              }
            }));
  }
}

const std::vector<float> &slot_or_nothing(const Values &values, int32_t slot) {
  static const std::vector<float> kNothing;
  const auto found = values.find(slot);
  return found != values.end() ? found->second : kNothing;
}

void restart(BoundedTensor &tensor, const Values &values) {
  const int32_t kept = values.contains(ZERO_SLOT_MASTER) ? ZERO_SLOT_MASTER : ZERO_SLOT_PARAM;
  tensor.restart(slot_or_nothing(values, kept), slot_or_nothing(values, ZERO_SLOT_FIRST_MOMENT),
                 slot_or_nothing(values, ZERO_SLOT_SECOND_MOMENT), slot_or_nothing(values, ZERO_SLOT_AVERAGE));
}

void look_at_widths(Findings &findings, const Model &model, const BoundedTensor &tensor, int64_t id) {
  const DType kept = model.recipe.master == ZERO_MASTER_NONE ? model.dtype(id) : DType::f32;
  double way = 0;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    way = std::max(way, std::fabs(tensor.kept(i).middle() - nearest(first_value_at(model, id, i), model.dtype(id))));
  }
  for (int64_t i = 0; i < tensor.count(); ++i) {
    const Bounds bounds = tensor.kept(i);
    const double step = kernels::test::quantum(bounds.magnitude(), kernels::test::format_of(kept));
    ++findings.params;
    findings.widest = std::max(findings.widest, bounds.width() / way);
    if (bounds.width() > std::max(way / 10, step * (1 + 0x1p-10))) ++findings.wide;
  }
}

void update(BoundedTensor &tensor, const Model &model, int64_t step, int64_t id) {
  std::vector<Bounds> gradients;
  for (int64_t i = 0; i < tensor.count(); ++i) gradients.push_back(Bounds::exactly(reduced_gradient(model, step, id, i)));
  tensor.update(gradients);
}

Findings follow(const Model &model, const Manner &manner) {
  const bool restarts = kernels::test::is_f8(model.recipe.first_moment);
  Findings findings;
  std::vector<BoundedTensor> tensors;
  for (int64_t id = 0; id < model.tensors(); ++id) tensors.emplace_back(model, id);
  run_world(model.ranks, [&](const std::shared_ptr<Group> &group) {
    const auto optimizer = begun_optimizer(group, model, manner);
    for (int64_t step = 0; step < model.steps; ++step) {
      train_step(*optimizer, model, manner, step);
      const bool looks = restarts || step == 0 || step + 1 == model.steps;
      for (int64_t id = 0; id < model.tensors(); ++id) {
        const Values values = looks ? read_values(*optimizer, id, model.counts[static_cast<size_t>(id)]) : Values();
        if (group->rank() != 0) continue;
        BoundedTensor &tensor = tensors[static_cast<size_t>(id)];
        update(tensor, model, step, id);
        compare_tensor(findings, tensor, values);
        if (step + 1 == model.steps) look_at_widths(findings, model, tensor, id);
        if (restarts) restart(tensor, values);
      }
    }
  });
  return findings;
}

/// The tolerance of each value is its own: BoundedTensor follows every operation and every storage rounding with bounds in float64, half a
/// unit of fp32's last place for each rounding, so that a value outside is an error of the library for certain. Bounds are worth something
/// while they are narrow. fp32 errors move a moment by about 2^-22 of its size in a step, so that its rounding to bf16 (steps of 2^-8) may
/// go both ways in one of 2^14 steps, which in a hundred steps happens to one element in a hundred; it widens the bounds of the parameter
/// by less than 2^-8 of its way, and in Lion, where it may turn a sign, by two of the hundred steps at a time. So not one parameter in a
/// hundred has bounds wider than a tenth of the way that the tensor's parameters go and wider than one step of their own storage. Slots of
/// 8 bits are another matter: where the largest element of a line may be one of two values, so may all of its line, which the next step
/// makes wider; there each step starts from what the library holds.
TEST(Precision, EverySlotFollowsFloat64WithTheSameStorageFor100Steps) {
  int64_t number = 0;
  int64_t runs = 0;
  Findings all;
  for (const Rule &rule : kRules) {
    for (const Form &form : kForms) {
      for (const Moments &moments : kMoments) {
        if (rule.momentum == 0 && std::string(rule.name) == "sgd" && moments.first != DType::f32) continue;
        for (int64_t world = 0; world < (full_tests() ? 16 : 1); ++world, ++number) {
          if (few_tests() && number % 11 != 0) continue;
          // By default each combination in one of the 16 worlds, all of them in turn.
          const int64_t which = full_tests() ? world : number * 5 % 16;
          const Model model = model_of(rule, form, moments, which % 4 + 1);
          Manner manner;
          manner.stage = which / 4;
          manner.bucket_nbytes = 1024;
          const Findings findings = follow(model, manner);
          EXPECT_EQ(findings.outside, 0) << model.text() << manner.text();
          EXPECT_LE(findings.wide, findings.params / 100) << model.text() << manner.text();
          if (std::getenv("ZERO_TEST_VERBOSE") != nullptr) {
            std::printf("%s %g %g, %s, moments %s: %lld of %lld outside, widest %.3g, wide %lld of %lld\n", rule.name, rule.momentum,
                        rule.nesterov, form.name, moments.name, static_cast<long long>(findings.outside),
                        static_cast<long long>(findings.values), findings.widest, static_cast<long long>(findings.wide),
                        static_cast<long long>(findings.params));
          }
          ++runs;
          all.values += findings.values;
          all.outside += findings.outside;
          all.wide += findings.wide;
          all.params += findings.params;
          all.widest = std::max(all.widest, findings.widest);
        }
      }
    }
  }
  std::printf(
      "%lld trainings of 100 steps, %lld values, %lld outside their bounds; bounds wider than a tenth of the way: %lld of %lld parameters, "
      "widest %.3g\n",
      static_cast<long long>(runs), static_cast<long long>(all.values), static_cast<long long>(all.outside),
      static_cast<long long>(all.wide), static_cast<long long>(all.params), all.widest);
}

/// Masters never see how the parameter was rounded, so both forms have the same. Parameters differ only where the master lies exactly
/// between two of bf16: the remainder's form rounds it away from zero, the other one to even.
TEST(Precision, ARemainderHoldsTheBitsOfAnF32Master) {
  std::atomic<int64_t> masters{0};
  std::atomic<int64_t> different{0};
  std::atomic<int64_t> ties{0};
  for (const Rule &rule : kRules) {
    const Model plain = model_of(rule, kForms[1], kMoments[0], 2);
    const Model split = model_of(rule, kForms[3], kMoments[0], 2);
    Manner manner;
    manner.stage = 2;
    manner.bucket_nbytes = 1024;
    run_world(2, [&](const std::shared_ptr<Group> &group) {
      const auto a = make_optimizer(group, plain, manner);
      const auto b = make_optimizer(group, split, manner);
      begin_training(*a, plain, manner);
      begin_training(*b, split, manner);
      for (int64_t step = 0; step < 100; ++step) {
        train_step(*a, plain, manner, step);
        train_step(*b, split, manner, step);
        for (int64_t id = 0; id < plain.tensors(); ++id) {
          Values left = read_values(*a, id, plain.counts[static_cast<size_t>(id)]);
          Values right = read_values(*b, id, plain.counts[static_cast<size_t>(id)]);
          masters += static_cast<int64_t>(left[ZERO_SLOT_MASTER].size());
          different += differing(left[ZERO_SLOT_MASTER], right[ZERO_SLOT_MASTER]);
          for (size_t i = 0; i < left[ZERO_SLOT_PARAM].size(); ++i) {
            const float from = left[ZERO_SLOT_MASTER][i];
            const bool tie = (std::bit_cast<uint32_t>(from) & 0xffff) == 0x8000;
            ties += tie ? 1 : 0;
            EXPECT_EQ(left[ZERO_SLOT_PARAM][i], nearest(from, DType::bf16));
            EXPECT_EQ(right[ZERO_SLOT_PARAM][i], kernels::test::round_away(from));
            if (!tie) {
              EXPECT_EQ(left[ZERO_SLOT_PARAM][i], right[ZERO_SLOT_PARAM][i]);
            }
          }
        }
      }
    });
  }
  EXPECT_EQ(different, 0);
  EXPECT_GT(ties, 0);
  std::printf("%lld masters compared, %lld differ; %lld ties\n", static_cast<long long>(masters), static_cast<long long>(different),
              static_cast<long long>(ties));
}

struct Cost {
  const char *algorithm;
  Form form;
  Moments moments;
  int64_t per_element;
  int64_t per_line;
  bool average;
};

/// Parameter, gradient, master, moments: by hand.
const Cost kCosts[] = {
    {"adamw", kForms[0], kMoments[0], 4 + 4 + 0 + 8, 0, false},     // 16
    {"adamw", kForms[1], kMoments[0], 2 + 2 + 4 + 8, 0, false},     // 16
    {"adam", kForms[2], kMoments[0], 2 + 2 + 4 + 8, 0, false},      // 16
    {"adamw", kForms[3], kMoments[0], 2 + 2 + 2 + 8, 0, false},     // 14
    {"adamw", kForms[4], kMoments[0], 2 + 2 + 0 + 8, 0, false},     // 12
    {"adamw", kForms[1], kMoments[1], 2 + 2 + 4 + 4, 0, false},     // 12
    {"adamw", kForms[3], kMoments[1], 2 + 2 + 2 + 4, 0, false},     // 10
    {"adamw", kForms[4], kMoments[1], 2 + 2 + 0 + 4, 0, false},     // 8
    {"adamw", kForms[0], kMoments[2], 4 + 4 + 0 + 2, 8, false},     // 10 and 2 scales per line
    {"adamw", kForms[3], kMoments[2], 2 + 2 + 2 + 2, 8, false},     // 8
    {"adamw", kForms[5], kMoments[2], 2 + 2 + 0 + 2, 8, false},     // 6
    {"lion", kForms[1], kMoments[0], 2 + 2 + 4 + 4, 0, false},      // 12
    {"lion", kForms[4], kMoments[2], 2 + 2 + 0 + 1, 4, false},      // 5
    {"adagrad", kForms[3], kMoments[1], 2 + 2 + 2 + 2, 0, false},   // 8
    {"sgd", kForms[1], kMoments[0], 2 + 2 + 4 + 0, 0, false},       // 8: no momentum, no buffer
    {"adamw", kForms[1], kMoments[0], 2 + 2 + 4 + 8 + 4, 0, true},  // 20: with a moving average
};

/// The formula of the stages with bytes of parameters, gradients and states.
int64_t formula(const Cost &cost, int64_t stage, int64_t ranks, int64_t elements) {
  const int64_t param = dtype_nbytes(cost.form.dtype) * elements;
  const int64_t state = cost.per_element * elements - 2 * param + cost.per_line * (elements / kLine);
  const auto part = [&](int64_t nbytes, int64_t from) { return stage >= from ? nbytes / ranks : nbytes; };
  return part(param, 3) + part(param, 2) + part(state, 1);
}

TEST(Precision, BytesPerParameterAreThoseOfTheFormulaToTheByte) {
  constexpr int64_t kElements = 24 * kLine;
  int64_t cases = 0;
  for (const Cost &cost : kCosts) {
    for (int64_t ranks = 1; ranks <= 4; ++ranks) {
      for (int64_t stage = 0; stage < 4; ++stage, ++cases) {
        Model model = model_of({cost.algorithm, 0, 0}, cost.form, cost.moments, ranks);
        model.counts = {kElements};
        model.recipe.average = cost.average;
        Manner manner;
        manner.stage = stage;
        run_world(ranks, [&](const std::shared_ptr<Group> &group) {
          const auto optimizer = make_optimizer(group, model, manner);
          MemoryUse use{};
          EXPECT_TRUE(optimizer->memory(ZERO_MEMORY_TOTAL, &use).ok());
          EXPECT_EQ(use.formula_nbytes, formula(cost, stage, ranks, kElements)) << model.text() << manner.text();
          const std::string text =
              std::to_string(cost.per_element) + " bytes per element, " + std::to_string(cost.per_line) + " bytes per line of ";
          EXPECT_NE(optimizer->describe().find(text), std::string::npos) << optimizer->describe();
          // What the slots list is what the formula counts, but for the gradient.
          int64_t slots = 0;
          int64_t nbytes = dtype_nbytes(model.dtype(0)) * kElements;
          EXPECT_TRUE(optimizer->slot_count(0, &slots).ok());
          for (int64_t index = 0; index < slots; ++index) {
            SlotInfo slot{};
            EXPECT_TRUE(optimizer->slot(0, index, &slot).ok());
            nbytes += slot.count * dtype_nbytes(slot.dtype);
          }
          EXPECT_EQ(nbytes, formula(cost, 0, 1, kElements));
        });
      }
    }
  }
  std::printf("%lld formulas compared\n", static_cast<long long>(cases));
}

}  // namespace
}  // namespace zero::test::precision_test
