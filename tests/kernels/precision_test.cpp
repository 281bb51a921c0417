/// @file Every optimizer in every storage over a hundred steps: each stored value is in the
/// interval that float64 and the promised roundings allow.
#include "kernels/lamb.h"
#include "kernels/update.h"

#include "model.h"
#include "random.h"
#include "storage.h"
#include "tests/algorithms.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace zero::kernels::precision_test {
namespace {

using test::Model;
using test::Storage;

/// Numbers from lo to hi. Bounds are float64: their own roundings, 2^-29 of those of fp32, are
/// inside the fp32 terms below.
struct Interval {
  double lo = 0;
  double hi = 0;
};

double magnitude(Interval a) { return std::max(std::fabs(a.lo), std::fabs(a.hi)); }
Interval operator+(Interval a, Interval b) { return {a.lo + b.lo, a.hi + b.hi}; }
Interval operator-(Interval a, Interval b) { return {a.lo - b.hi, a.hi - b.lo}; }
Interval operator*(double factor, Interval a) {
  return factor < 0 ? Interval{factor * a.hi, factor * a.lo} : Interval{factor * a.lo, factor * a.hi};
}
Interval square(Interval a) {
  const double least = a.lo > 0 ? a.lo : a.hi < 0 ? -a.hi : 0;
  return {least * least, magnitude(a) * magnitude(a)};
}
Interval root(Interval a) { return {std::sqrt(std::max(a.lo, 0.0)), std::sqrt(a.hi)}; }
/// `b` above 0.
Interval operator/(Interval a, Interval b) { return {a.lo / (a.lo < 0 ? b.lo : b.hi), a.hi / (a.hi < 0 ? b.hi : b.lo)}; }
Interval sign(Interval a) { return {a.lo > 0 ? 1.0 : -1.0, a.hi < 0 ? -1.0 : 1.0}; }
Interval widened(Interval a, double error) { return {a.lo - error, a.hi + error}; }

constexpr double kUnit = 0x1p-24;  ///< relative error of one fp32 rounding

/// One element. Every line of a formula that fp32 computes is widened by one kUnit per rounding and
/// per rounded constant in it, of the sum of the magnitudes that meet there: never more than 8.
struct Element {
  Interval param, first, second, average;
  Interval new_first, new_second;  ///< before they are stored

  static Interval computed(Interval value, double magnitudes) { return widened(value, 8 * kUnit * magnitudes); }

  void moments(Interval gradient, const HyperParameters &hyper) {
    new_first = computed(hyper.beta1 * first + (1 - hyper.beta1) * gradient, 2 * magnitude(first) + 2 * magnitude(gradient));
    const Interval squared = square(gradient);
    new_second = computed(hyper.beta2 * second + (1 - hyper.beta2) * squared, magnitude(second) + squared.hi);
    new_second.lo = std::max(new_second.lo, 0.0);
  }

  static Interval direction(Interval moment, Interval square_moment, const HyperParameters &hyper) {
    const auto step = static_cast<double>(hyper.step);
    const Interval divisor = root(1 / (1 - std::pow(hyper.beta2, step)) * square_moment) + Interval{hyper.epsilon, hyper.epsilon};
    const Interval result = 1 / (1 - std::pow(hyper.beta1, step)) * moment / divisor;
    return computed(result, magnitude(result));
  }

  void move(Interval kept, double rate, Interval along) {
    param = computed(kept - rate * along, magnitude(kept) + rate * magnitude(along));
  }

  void sgd(Interval gradient, const HyperParameters &hyper) {
    gradient = computed(gradient + hyper.weight_decay * param, magnitude(gradient) + hyper.weight_decay * magnitude(param));
    new_first = computed(hyper.momentum * first + gradient, magnitude(first) + magnitude(gradient));
    if (hyper.step == 1) new_first = gradient;
    const Interval along = computed(gradient + hyper.momentum * new_first, magnitude(gradient) + magnitude(new_first));
    move(param, hyper.lr, hyper.nesterov != 0 ? along : new_first);
  }

  void adagrad(Interval gradient, const HyperParameters &hyper) {
    gradient = computed(gradient + hyper.weight_decay * param, magnitude(gradient) + hyper.weight_decay * magnitude(param));
    new_first = computed(first + square(gradient), magnitude(first) + square(gradient).hi);
    const Interval along = gradient / (root(new_first) + Interval{hyper.epsilon, hyper.epsilon});
    move(param, hyper.lr / (1 + static_cast<double>(hyper.step - 1) * hyper.lr_decay), computed(along, magnitude(along)));
  }

  void lion(Interval gradient, const HyperParameters &hyper) {
    const Interval along = computed(hyper.beta1 * first + (1 - hyper.beta1) * gradient, magnitude(first) + magnitude(gradient));
    const Interval kept = (1 - hyper.lr * hyper.weight_decay) * param;
    new_first = computed(hyper.beta2 * first + (1 - hyper.beta2) * gradient, magnitude(first) + magnitude(gradient));
    move(kept, hyper.lr, sign(along));
  }

  void adam(Interval gradient, const HyperParameters &hyper, bool decoupled) {
    if (!decoupled) {
      gradient = computed(gradient + hyper.weight_decay * param, magnitude(gradient) + hyper.weight_decay * magnitude(param));
    }
    moments(gradient, hyper);
    move((decoupled ? 1 - hyper.lr * hyper.weight_decay : 1) * param, hyper.lr, direction(new_first, new_second, hyper));
  }

  void update(const std::string &algorithm, Interval gradient, const HyperParameters &hyper) {
    if (algorithm == "sgd") return sgd(gradient, hyper);
    if (algorithm == "adagrad") return adagrad(gradient, hyper);
    if (algorithm == "lion") return lion(gradient, hyper);
    adam(gradient, hyper, algorithm == "adamw");
  }
};

/// The interval after storing. Rounding keeps order, so each end moves by at most half the distance
/// of its neighbours. With stochastic rounding it moves by at most the whole distance.
Interval stored(Interval value, const test::Stored &slot, int64_t i, bool stochastic) {
  if (slot.dtype() == DType::f32) return value;
  const double scale = slot.scale(i / kLine);
  const double factor = stochastic ? 2 : 1;
  return {value.lo - factor * test::half_quantum(value.lo, slot.dtype(), scale),
          value.hi + factor * test::half_quantum(value.hi, slot.dtype(), scale)};
}

/// One run of one optimizer in one storage.
class Training {
 public:
  Training(const char *name, const Storage &storage, uint64_t seed)
      : name_(name), algorithm_(*find_algorithm(name)), random_(seed), model_(test::random_model(random_, storage, kCount, false)) {
    scalars_.hyper = {.lr = 0.01,
                      .momentum = 0.9,
                      .nesterov = static_cast<double>(seed % 2),
                      .beta1 = 0.9,
                      .beta2 = 0.95,
                      .epsilon = 1e-8,
                      .weight_decay = 0.05,
                      .lr_decay = 0.01};
    scalars_.grad_factor = 0.5F;
    scalars_.clip_value = 0.45F;
    scalars_.average_decay = 0.9;
    scalars_.stochastic = storage.stochastic;
    scalars_.seed = seed;
    begin_states(active(), algorithm_, model_.piece(), scalars_);
    for (int64_t i = 0; i < kCount; ++i) {
      const double kept = model_.kept(i);
      const double average = model_.average.get(i);
      elements_.push_back({.param = {kept, kept}, .average = {average, average}});
    }
  }

  void step(int64_t number) {
    scalars_.hyper.step = number;
    scalars_.step = number;
    for (int64_t i = 0; i < kCount; ++i)
      model_.grad.set_nearest(i, std::copysign(0.5F + std::fabs(random_.value(0)) / 2, random_.value(0)));
    if (algorithm_.layerwise) {
      lamb_moments(active(), model_.piece(), scalars_);
      ExactSum param;
      ExactSum direction;
      lamb_add_norms(active(), model_.piece(), scalars_, param, direction);
      scalars_.hyper.trust_ratio = lamb_trust_ratio(param, direction);
    }
    update(active(), algorithm_, model_.piece(), scalars_);
    for (int64_t i = 0; i < kCount; ++i) advance(i);
  }

  /// The largest distance from the middle of an interval, of half its width; and the mean width of
  /// a parameter's.
  double worst() const { return worst_; }
  double width() const {
    double sum = 0;
    for (const Element &element : elements_) sum += (element.param.hi - element.param.lo) / kCount;
    return sum;
  }

 private:
  static constexpr int64_t kCount = 300;

  void advance(int64_t i) {
    Element &element = elements_[static_cast<size_t>(i)];
    const double scaled = std::clamp(double{model_.grad.get(i)} * 0.5, -double{0.45F}, double{0.45F});
    const Interval gradient = {scaled, scaled};
    const bool stochastic = scalars_.stochastic;
    if (algorithm_.layerwise) {
      const HyperParameters &hyper = scalars_.hyper;
      element.moments(gradient, hyper);
      store_states(element, i);
      const Interval along = Element::direction(element.first, element.second, hyper) + hyper.weight_decay * element.param;
      element.move(element.param, hyper.lr * hyper.trust_ratio, Element::computed(along, magnitude(along)));
    } else {
      element.update(name_, gradient, scalars_.hyper);
      store_states(element, i);
    }
    const bool has_master = model_.storage.has_master;
    if (!has_master) element.param = stored(element.param, model_.param, i, stochastic);
    check(model_.kept(i), element.param, i);
    if (has_master) check(model_.param.get(i), stored(element.param, model_.param, i, false), i);
    const Interval average = 0.9 * element.average + 0.1 * element.param;
    element.average = Element::computed(average, magnitude(element.average) + magnitude(element.param));
    if (model_.storage.averages) check(model_.average.get(i), element.average, i);
  }

  void store_states(Element &element, int64_t i) {
    element.first = stored(element.new_first, model_.first, i, scalars_.stochastic);
    check(model_.first.get(i), element.first, i);
    if (algorithm_.state_count < 2) return;
    element.second = stored(element.new_second, model_.second, i, scalars_.stochastic);
    element.second.lo = std::max(element.second.lo, 0.0);
    check(model_.second.get(i), element.second, i);
  }

  void check(double value, Interval allowed, int64_t i) {
    EXPECT_TRUE(value >= allowed.lo && value <= allowed.hi)
        << name_ << " " << test::text(model_.storage) << " step " << scalars_.hyper.step << " element " << i << ": " << value
        << " is not in " << allowed.lo << " .. " << allowed.hi;
    if (allowed.hi > allowed.lo) worst_ = std::max(worst_, std::fabs(2 * value - allowed.lo - allowed.hi) / (allowed.hi - allowed.lo));
  }

  std::string name_;
  const Algorithm &algorithm_;
  test::Random random_;
  Model model_;
  UpdateScalars scalars_;
  std::vector<Element> elements_;
  double worst_ = 0;
};

bool has(const Storage &storage, bool (*is)(DType)) {
  return (!storage.has_master && is(storage.param)) || is(storage.first) || is(storage.second);
}

TEST(Precision, EveryOptimizerAndStorageStaysInItsIntervalForAHundredSteps) {
  const zero::test::Names names = zero::test::any_shape_names();
  const std::vector<Storage> storages = test::all_storages();
  int64_t runs = 0;
  double furthest = 0;
  double widest[3] = {};  // all that is kept is fp32; some is 16-bit; some is 8-bit
  for (size_t i = 0; i < storages.size(); ++i) {
    for (size_t name = 0; name < names.size(); ++name) {
      if (!zero::test::full_tests() && (i + 5 * name) % 31 != 0) continue;
      Training run(names[name], storages[i], i);
      for (int64_t step = 1; step <= 100; ++step) run.step(step);
      if (testing::Test::HasFailure()) return;
      const bool has_f8 = has(storages[i], test::is_f8);
      const size_t kind = has_f8 ? 2 : has(storages[i], [](DType dtype) { return dtype != DType::f32; }) ? 1 : 0;
      widest[kind] = std::max(widest[kind], run.width());
      furthest = std::max(furthest, run.worst());
      ++runs;
    }
  }
  std::printf(
      "%lld runs; the mean interval of a parameter is at most %.1e wide with fp32 states and masters, %.1e with 16-bit, %.1e with 8-bit "
      "ones; the furthest value is %.2f of the way from its middle to its end\n",
      static_cast<long long>(runs), widest[0], widest[1], widest[2], furthest);
}

}  // namespace
}  // namespace zero::kernels::precision_test
