/// @file Optimizers: every target against the reference bit for bit, the reference against textbook
/// formulas in float64.
#include "kernels/kernels.h"

#include "random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace zero::kernels::optimizer_test {
namespace {

using SlotValues = std::vector<std::vector<float>>;  ///< parameter, gradient, states

HyperParameters random_hyper(test::Random &random) {
  const double betas[] = {0.0, 0.3, 0.5, 0.9, 0.999};
  const auto maybe = [&](double value) { return random.below(2) == 0 ? 0.0 : value; };
  const auto beta = [&] { return betas[random.below(5)]; };
  return {.lr = std::ldexp(1.0, -static_cast<int>(random.below(12))) * 0.9,
          .momentum = maybe(beta()),
          .dampening = maybe(0.1),
          .nesterov = maybe(1),
          .beta1 = beta(),
          .beta2 = beta(),
          .epsilon = maybe(1e-8),
          .weight_decay = maybe(0.01),
          .step = 1 + random.below(5),
          .lr_decay = maybe(0.1),
          .trust_ratio = 1 + maybe(0.7)};
}

SlotValues random_slots(test::Random &random, int64_t count, bool special) {
  SlotValues slots;
  for (int slot = 0; slot < 4; ++slot) {
    slots.push_back(random.values(count, 20));
    if (!special) continue;
    for (float &value : slots.back()) value = std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23)));
  }
  return slots;
}

void update(const Table &table, const Algorithm &algorithm, SlotValues &values, size_t offset, int64_t count,
            const HyperParameters &hyper) {
  const auto at = [&](size_t slot) { return values[slot].data() + offset; };
  (table.*algorithm.update)({.param = at(0), .grad = at(1), .state = {at(2), at(3)}, .count = count}, algorithm.constants(hyper));
}

/// Index of the first slot that differs in a bit, or -1.
int first_difference(const SlotValues &a, const SlotValues &b) {
  for (size_t slot = 0; slot < a.size(); ++slot) {
    const auto same = [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
    if (!std::equal(a[slot].begin(), a[slot].end(), b[slot].begin(), same)) return static_cast<int>(slot);
  }
  return -1;
}

TEST(Optimizers, EveryTargetHasTheBitsOfTheReference) {
  test::Random random(10);
  int64_t updates = 0;
  for (int64_t i = 0; i < test::cases(6000); ++i) {
    const int64_t count = test::length_of_case(random, i, 70, 1500);
    const HyperParameters hyper = random_hyper(random);
    const auto offset = static_cast<size_t>(random.below(8));
    // Elements around the updated ones must stay unchanged.
    const SlotValues before = random_slots(random, count + 16, i % 3 == 0);
    for (const Algorithm &algorithm : algorithms()) {
      if (algorithm.matrix) continue;  // muon_test.cpp
      SlotValues expected = before;
      update(*supported().front(), algorithm, expected, offset, count, hyper);
      for (const Table *table : supported()) {
        SlotValues actual = before;
        update(*table, algorithm, actual, offset, count, hyper);
        ASSERT_EQ(first_difference(actual, expected), -1) << table->target << " " << algorithm.name << " case " << i;
        ++updates;
      }
    }
  }
  std::printf("%lld updates compared\n", static_cast<long long>(updates));
}

/// 16-bit gradients, and the rounded parameters, in memory whose other elements must stay
/// unchanged.
struct Halves {
  std::vector<uint16_t> grad;
  std::vector<uint16_t> rounded;
  size_t offset;
  DType dtype;
  float factor;
  bool streams;
};

Halves random_halves(test::Random &random, int64_t count) {
  Halves halves = {.offset = static_cast<size_t>(random.below(40)), .dtype = random.below(2) == 0 ? DType::f16 : DType::bf16};
  const int fraction_nbits = halves.dtype == DType::f16 ? 10 : 7;
  for (int64_t i = 0; i < count + 80; ++i) {
    halves.grad.push_back(static_cast<uint16_t>(random.special_bits(16, fraction_nbits)));
    halves.rounded.push_back(static_cast<uint16_t>(random.next()));
  }
  halves.factor = random.below(2) == 0 ? 1 : random.value(4);
  halves.streams = random.below(2) == 0;
  return halves;
}

/// A kernel that reads 16-bit gradients.
struct Kernel {
  const char *name;
  UpdateKernel Table::*run;
  Constants constants;
  bool rounds;  ///< rounds parameters
};

/// The only pass of each algorithm. For lamb, the pass that reads gradients.
std::vector<Kernel> kernels_of_gradients(const HyperParameters &hyper) {
  std::vector<Kernel> kernels = {{"lamb_moments", &Table::lamb_moments, find_algorithm("adamw")->constants(hyper), false}};
  for (const Algorithm &algorithm : algorithms()) {
    if (algorithm.matrix || algorithm.layerwise) continue;
    kernels.push_back({algorithm.name, algorithm.update, algorithm.constants(hyper), true});
  }
  return kernels;
}

/// Runs separate steps with the plain kernels: gradient in fp32, times the factor; the update; the
/// rounding of parameters.
void run_in_steps(const Kernel &kernel, SlotValues &values, Halves &halves, int64_t count) {
  const Table &table = *supported().front();
  std::vector<float> grad(static_cast<size_t>(count));
  table.widen(grad.data(), halves.grad.data() + halves.offset, halves.dtype, count);
  table.scale(grad.data(), grad.data(), count, halves.factor);
  (table.*kernel.run)({values[0].data(), grad.data(), {values[2].data(), values[3].data()}, count}, kernel.constants);
  if (kernel.rounds) table.narrow(halves.rounded.data() + halves.offset, halves.dtype, values[0].data(), count);
}

void run_at_once(const Table &table, const Kernel &kernel, SlotValues &values, Halves &halves, int64_t count) {
  Slots slots = {values[0].data(), halves.grad.data() + halves.offset, {values[2].data(), values[3].data()}, count};
  slots.grad_dtype = halves.dtype;
  slots.grad_factor = halves.factor;
  slots.rounded = kernel.rounds ? halves.rounded.data() + halves.offset : nullptr;
  slots.streams = halves.streams;
  (table.*kernel.run)(slots, kernel.constants);
  table.flush();
}

TEST(Optimizers, KernelsTakeGradientsOf16BitsAndRoundParameters) {
  test::Random random(12);
  int64_t updates = 0;
  for (int64_t i = 0; i < test::cases(3000); ++i) {
    const int64_t count = test::length_of_case(random, i, 70, 700);
    const SlotValues before = random_slots(random, count, i % 3 == 0);
    const Halves halves = random_halves(random, count);
    for (const Kernel &kernel : kernels_of_gradients(random_hyper(random))) {
      SlotValues expected = before;
      Halves expected_halves = halves;
      run_in_steps(kernel, expected, expected_halves, count);
      for (const Table *table : supported()) {
        SlotValues actual = before;
        Halves written = halves;
        run_at_once(*table, kernel, actual, written, count);
        ASSERT_EQ(first_difference(actual, expected), -1) << table->target << " " << kernel.name << " case " << i;
        ASSERT_EQ(written.rounded, expected_halves.rounded) << table->target << " " << kernel.name << " case " << i;
        ASSERT_EQ(written.grad, halves.grad) << table->target << " " << kernel.name << " case " << i;
        ++updates;
      }
    }
  }
  std::printf("%lld updates compared\n", static_cast<long long>(updates));
}

/// One element in float64, as the papers write it.
struct Exact {
  double param;
  double first = 0;
  double second = 0;
  /// Lion: how far signs that fp32 may see otherwise can have moved the parameter.
  double undecided = 0;

  void sgd(double gradient, const HyperParameters &hyper) {
    gradient += hyper.weight_decay * param;
    first = hyper.step == 1 ? gradient : hyper.momentum * first + (1 - hyper.dampening) * gradient;
    if (hyper.momentum == 0) first = gradient;
    param -= hyper.lr * (hyper.nesterov != 0 ? gradient + hyper.momentum * first : first);
  }

  void adam(double gradient, const HyperParameters &hyper, bool decoupled) {
    const auto step = static_cast<double>(hyper.step);
    if (!decoupled) gradient += hyper.weight_decay * param;
    first = hyper.beta1 * first + (1 - hyper.beta1) * gradient;
    second = hyper.beta2 * second + (1 - hyper.beta2) * gradient * gradient;
    const double corrected_first = first / (1 - std::pow(hyper.beta1, step));
    const double corrected_second = second / (1 - std::pow(hyper.beta2, step));
    const double decay = decoupled ? hyper.lr * hyper.weight_decay * param : 0;
    param -= decay + hyper.lr * corrected_first / (std::sqrt(corrected_second) + hyper.epsilon);
  }

  void adagrad(double gradient, const HyperParameters &hyper) {
    gradient += hyper.weight_decay * param;
    first += gradient * gradient;
    const double rate = hyper.lr / (1 + static_cast<double>(hyper.step - 1) * hyper.lr_decay);
    param -= rate * gradient / (std::sqrt(first) + hyper.epsilon);
  }

  void lion(double gradient, const HyperParameters &hyper) {
    const double direction = hyper.beta1 * first + (1 - hyper.beta1) * gradient;
    if (std::fabs(direction) < 400 * 0x1p-24) undecided += 2 * hyper.lr;
    param = param * (1 - hyper.lr * hyper.weight_decay) - hyper.lr * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
    first = hyper.beta2 * first + (1 - hyper.beta2) * gradient;
  }

  void update(const std::string &algorithm, double gradient, const HyperParameters &hyper) {
    if (algorithm == "sgd") return sgd(gradient, hyper);
    if (algorithm == "adagrad") return adagrad(gradient, hyper);
    if (algorithm == "lion") return lion(gradient, hyper);
    adam(gradient, hyper, algorithm == "adamw");
  }
};

/// Largest difference of a parameter over `steps` steps, and the largest parameter.
struct Drift {
  double difference = 0;
  double largest = 0;
};

/// Gradients have magnitudes in [0.5, 1).
Drift drift_from_float64(const Algorithm &algorithm, HyperParameters hyper, int64_t count, int64_t steps) {
  test::Random random(11);
  SlotValues slots = {random.values(count, 0), random.values(count, 0), std::vector<float>(static_cast<size_t>(count)),
                      std::vector<float>(static_cast<size_t>(count))};
  std::vector<Exact> exact;
  for (const float param : slots[0]) exact.push_back({.param = param});
  Drift drift;
  for (hyper.step = 1; hyper.step <= steps; ++hyper.step) {
    slots[1] = random.values(count, 0);
    for (float &gradient : slots[1]) gradient = std::copysign(0.5F + std::fabs(gradient) / 2, gradient);
    update(*supported().front(), algorithm, slots, 0, count, hyper);
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i].update(algorithm.name, slots[1][i], hyper);
      drift.difference = std::max(drift.difference, std::fabs(exact[i].param - slots[0][i]) - exact[i].undecided);
      drift.largest = std::max(drift.largest, std::fabs(exact[i].param));
    }
  }
  return drift;
}

/// Bound of the drift after T = 100 steps. u = 2^-24, gradients are in [0.5, 1) plus a decay term
/// below 0.2 (so G < 1.2, sqrt(v) > 0.3).
/// - Adam: a step adds at most 3 u G to the error of m, which decays with beta1 <= 0.9. That is at
///   most 36 u bias-corrected, over sqrt(v) 120 u. v is a sum of positive terms and gets at most 3
///   u per step relative: 300 u in all, 150 u in sqrt(v), times |m| / sqrt(v) < 4: 600 u. With 10 u
///   for constants and the quotient this stays below 800 u, times lr.
/// - SGD: |b| < 12, its error below 3 u * 12 / (1 - 0.9) = 360 u, with Nesterov 684 u: also below
///   800 u, times lr.
/// - Adagrad: s is a sum of positive terms and gets at most 3 u per step relative, 150 u in
///   sqrt(s), and |g| / sqrt(s) <= 1: below 160 u times lr.
/// - Lion: the error of m grows by at most 3 u G per step, 360 u in all. A direction of 400 u or
///   more has the sign that it has in float64. Below that the sign may differ, and the parameter
///   may be 2 lr away for each such step. Otherwise only the parameter's roundings remain.
///
/// The parameter itself is rounded at most three times per step: 3 u |p|. L2 decay feeds the error
/// back by less than lr * weight_decay * 14 per step (0.05 * 0.01 * 14 here): a factor below 2
/// after 100 steps.
double drift_bound(const HyperParameters &hyper, double largest) { return 2 * 100 * 0x1p-24 * (800 * hyper.lr + 3 * largest); }

TEST(Optimizers, StayCloseToFloat64ForAHundredSteps) {
  const HyperParameters base = {
      .lr = 0.01, .momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0.05, .step = 1};
  std::vector<HyperParameters> sets(6, base);
  sets[1].weight_decay = 0;
  sets[2].nesterov = 1;
  sets[3].momentum = 0;
  sets[3].beta1 = 0.3;
  sets[4].dampening = 0.5;
  sets[5].lr_decay = 0.02;
  for (const Algorithm &algorithm : algorithms()) {
    if (algorithm.matrix || algorithm.layerwise) continue;  // lamb_test.cpp, muon_test.cpp
    for (size_t set = 0; set < sets.size(); ++set) {
      const Drift drift = drift_from_float64(algorithm, sets[set], 500, 100);
      const double bound = drift_bound(sets[set], drift.largest);
      EXPECT_LT(drift.difference, bound) << algorithm.name << " set " << set;
      std::printf("%s set %zu: difference %.2e, bound %.2e\n", algorithm.name, set, drift.difference, bound);
    }
  }
}

TEST(Optimizers, SgdWithoutMomentumNeedsNoState) {
  const std::vector<float> grad(100, 2.0F);
  for (const Table *table : supported()) {
    std::vector<float> param(100, 1.0F);
    table->sgd({.param = param.data(), .grad = grad.data(), .state = {}, .count = 100},
               find_algorithm("sgd")->constants({.lr = 0.25, .step = 3}));
    EXPECT_EQ(param, std::vector<float>(100, 0.5F)) << table->target;
  }
}

}  // namespace
}  // namespace zero::kernels::optimizer_test
