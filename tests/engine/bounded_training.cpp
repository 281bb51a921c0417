/// @file Updates in float64 with error bars.
#include "tests/engine/bounded_training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zero::test {
namespace {

/// What make_config gives every algorithm, and the defaults of zero/config.h.
constexpr double kRate = 0.01;
constexpr double kBeta1 = 0.9;
constexpr double kAverageDecay = 0.999;

/// a + b with the sum rounded once.
Bounds sum(Bounds a, Bounds b) { return (a + b).rounded(); }

/// factor * a: the constant and the product are rounded.
Bounds scaled(double factor, Bounds a) { return (factor * a).rounded(2); }

/// p - change.
Bounds stepped(Bounds param, Bounds change) { return (param - change).rounded(); }

Bounds sign_of(Bounds a) { return {a.low > 0 ? 1.0 : a.low == 0 ? 0.0 : -1.0, a.high < 0 ? -1.0 : a.high == 0 ? 0.0 : 1.0}; }

/// (1 - weight) * from + weight * to, computed from the difference: constant, difference, product and sum are rounded.
Bounds between(Bounds from, Bounds to, double weight) {
  const double moved = weight * (from.magnitude() + to.magnitude());
  return ((1 - weight) * from + weight * to).wider(3 * kUnit * moved).rounded();
}

float tree_sum(const std::vector<float> &values, size_t low, size_t high) {
  if (high - low == 1) return values[low];
  size_t half = 1;
  while (half * 2 < high - low) half *= 2;
  return tree_sum(values, low, low + half) + tree_sum(values, low + half, high);
}

/// What the micro-steps of one rank add up to, before it is reduced.
struct LocalSum {
  float sum = 0;
  double weight = 0;
  bool any = false;

  /// Products with weights and sums in the dtype that sums are kept in; weights only where that is fp32.
  void add(bool given, float value, double by, DType kept) {
    weight += by;
    if (!given) return;
    const float product = kept == DType::f32 ? static_cast<float>(by) * value : value;
    sum = any ? static_cast<float>(nearest(sum + product, kept)) : product;
    any = true;
  }

  /// As it enters the sum over ranks.
  float contribution(DType dtype, bool weighted, bool adds_up, bool alone) const {
    const auto by = static_cast<float>(weight);
    const bool is_mean = weighted && dtype != DType::f32;
    if (is_mean && weight == 0) return 0;
    const auto travels = static_cast<float>(nearest(is_mean && adds_up ? sum / by : sum, dtype));
    return is_mean && !alone ? by * travels : travels;
  }
};

/// A line of an 8-bit slot: codes are rounded, then multiplied by the line's scale, which follows its largest element.
void store_line(std::vector<Bounds> &values, size_t begin, size_t end, DType dtype) {
  const auto format = kernels::test::format_of(dtype);
  Bounds largest{};
  for (size_t i = begin; i < end; ++i) {
    const Bounds size = magnitude_of(values[i]);
    largest = {std::max(largest.low, size.low), std::max(largest.high, size.high)};
  }
  if (largest.high == 0) return;
  Bounds scale = (1 / format.largest * largest).rounded();
  scale = {std::max(scale.low, 0x1p-126), std::max(scale.high, 0x1p-126)};
  const auto stored_size = [&](double size, double by, double times) {
    double code = kernels::test::round_nearest(std::min(size / by, format.largest), format);
    if (dtype == DType::f8ue5m3 && size > 0) code = std::max(code, kernels::test::f8_value(dtype, 1));
    return code * times;
  };
  for (size_t i = begin; i < end; ++i) {
    const Bounds size = magnitude_of(values[i]).rounded(2);  // times the inverse of the scale, itself rounded
    const double low = stored_size(std::max(size.low, 0.0), scale.high, scale.low);
    const double high = stored_size(size.high, scale.low, scale.high);
    const bool around = values[i].low < 0 && values[i].high > 0;
    const Bounds kept = Bounds{around ? 0 : low, high}.rounded();
    values[i] = around ? Bounds{-kept.high, kept.high} : values[i].high <= 0 ? Bounds{-kept.high, -kept.low} : kept;
    if (dtype == DType::f8ue5m3) values[i].low = std::max(values[i].low, 0.0);
  }
}

}  // namespace

float reduced_gradient(const Model &model, int64_t step, int64_t id, int64_t index) {
  const auto &kinds = model.recipe.micro_steps;
  const auto micro_steps = std::max<int64_t>(1, std::ssize(kinds));
  const DType dtype = model.grad_dtype(id);
  const bool weighted = model.divisor == ZERO_DIVISOR_WEIGHTS;
  thread_local std::vector<LocalSum> sums;  // kept from call to call: sanitizers watch each allocation
  thread_local std::vector<float> contributions;
  sums.assign(static_cast<size_t>(model.ranks), {});
  float total = 0;
  double weights = 0;
  bool adds_up = false;  // on each rank, since the last reduction
  bool reduced = false;
  for (int64_t micro = 0; micro < micro_steps; ++micro) {
    const int32_t kind = kinds.empty() ? ZERO_MICRO_STEP_LAST : kinds[static_cast<size_t>(micro)];
    const bool is_local = kind == ZERO_MICRO_STEP_LOCAL || (kind == ZERO_MICRO_STEP_REDUCE && model.ranks == 1);
    adds_up = adds_up || is_local;
    const DType kept = adds_up && (weighted || model.recipe.accumulates_in_f32) ? DType::f32 : dtype;
    for (int64_t rank = 0; rank < model.ranks; ++rank) {
      const int64_t number = step * micro_steps + micro;
      const double weight = weight_of(model, number, rank);
      const float value = static_cast<float>(model.recipe.loss_scale) * gradient_at(model, number, rank, id, index);
      const bool given = !model.unfilled(id, step) && weight != 0;
      sums[static_cast<size_t>(rank)].add(given, static_cast<float>(nearest(value, dtype)), weight, kept);
    }
    if (is_local && micro + 1 < micro_steps) continue;
    contributions.clear();
    for (const LocalSum &sum : sums) {
      weights += sum.weight;
      contributions.push_back(sum.contribution(dtype, weighted, adds_up, model.ranks == 1));
    }
    const float over_ranks = tree_sum(contributions, 0, contributions.size());
    total = reduced ? total + over_ranks : over_ranks;
    reduced = true;
    adds_up = false;
    sums.assign(sums.size(), {});
  }
  float divisor = model.divisor == ZERO_DIVISOR_RANKS ? static_cast<float>(model.ranks) : weighted ? static_cast<float>(weights) : 1;
  if (weighted && model.ranks == 1 && dtype != DType::f32) divisor = 1;  // what it would be multiplied by
  return static_cast<float>(nearest(total / divisor, dtype));
}

int64_t wrong_gradients(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  const auto optimizer = begun_optimizer(group, model, manner);
  if (optimizer == nullptr) return 1;
  int64_t wrong = 0;
  for (int64_t step = 0; step < 2; ++step) {
    give_gradients(*optimizer, model, manner, step);
    zero_step_result result{};
    result.struct_size = sizeof result;
    expect_ok(run_task(*optimizer, optimizer->reduce(&result)), "reduce");
    wrong += result.skipped;
    for (int64_t id = 0; id < model.tensors(); ++id) {
      const int64_t count = model.counts[static_cast<size_t>(id)];
      std::vector<std::byte> bytes(static_cast<size_t>(count * dtype_nbytes(model.grad_dtype(id))));
      expect_ok(run_task(*optimizer, optimizer->read(id, ZERO_SLOT_GRAD, 0, bytes.data(), count)), "read");
      const std::vector<float> values = decode(bytes.data(), model.grad_dtype(id), count);
      for (int64_t i = 0; i < count; ++i) wrong += values[static_cast<size_t>(i)] == reduced_gradient(model, step, id, i) ? 0 : 1;
    }
    expect_ok(run_task(*optimizer, optimizer->apply()), "apply");
    expect_ok(run_task(*optimizer, optimizer->gather()), "gather");
  }
  return wrong;
}

std::vector<Model> weighted_models(int64_t ranks, DType dtype) {
  static const std::vector<int32_t> kSequences[] = {{}, {1, 0}, {2, 0}, {1, 1}, {2, 1, 2}, {1, 2, 1, 0}};
  static constexpr double kUnits[] = {1e-3, 1, 4096};
  std::vector<Model> models;
  for (const std::vector<int32_t> &sequence : kSequences) {
    Model model;
    model.seed = 31 + models.size();
    model.ranks = ranks;
    model.counts = {300, 31, 0, 1, ranks - 1, 2100};
    model.divisor = ZERO_DIVISOR_WEIGHTS;
    model.weight_unit = kUnits[models.size() % 3];
    model.recipe.dtype = dtype;
    model.recipe.mixed = models.size() % 2 == 1;
    model.recipe.loss_scale = 1024;
    model.recipe.micro_steps = sequence;
    models.push_back(std::move(model));
  }
  return models;
}

double gradient_norm(const Model &model, int64_t step) {
  long double squares = 0;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i) {
      const long double value = reduced_gradient(model, step, id, i);
      squares += value * value;
    }
  }
  return static_cast<double>(std::sqrt(squares)) / model.recipe.loss_scale;
}

Bounds clipped_gradient(const Model &model, double norm, float gradient) {
  const double wanted = model.recipe.clip_norm == 0 ? 1 : model.recipe.clip_norm / (norm + 1e-6);
  const double factor = std::min(wanted, 1.0) / model.recipe.loss_scale;
  const Bounds value = factor == 1 ? Bounds::exactly(gradient) : (factor * Bounds::exactly(gradient)).rounded(2);
  const double most = std::max(static_cast<float>(model.recipe.clip_value), 0x1p-149F);
  return model.recipe.clip_value == 0 ? value : Bounds{std::clamp(value.low, -most, most), std::clamp(value.high, -most, most)};
}

void expect_norm(double norm, double expected) {
  EXPECT_EQ(static_cast<float>(norm), static_cast<float>(expected));
  EXPECT_NEAR(norm, expected, 1e-13 * expected);
}

BoundedTensor::BoundedTensor(const Model &model, int64_t id) : model_(model), dtype_(model.dtype(id)) {
  const auto count = static_cast<size_t>(model.counts[static_cast<size_t>(id)]);
  for (size_t i = 0; i < count; ++i) {
    kept_.push_back(Bounds::exactly(nearest(first_value_at(model, id, static_cast<int64_t>(i)), dtype_)));
  }
  first_.resize(count);
  second_.resize(count);
  average_ = kept_;
}

void BoundedTensor::restart(const std::vector<float> &kept, const std::vector<float> &first, const std::vector<float> &second,
                            const std::vector<float> &average) {
  const auto take = [](std::vector<Bounds> &to, const std::vector<float> &from) {
    for (size_t i = 0; i < from.size(); ++i) to[i] = Bounds::exactly(from[i]);
  };
  take(kept_, kept);
  take(first_, first);
  take(second_, second);
  take(average_, average);
}

std::vector<Bounds> BoundedTensor::params() const {
  std::vector<Bounds> params = kept_;
  if (model_.recipe.coded) {
    store(params, DType::f8e4m3);
  } else if (model_.recipe.master == ZERO_MASTER_REMAINDER && dtype_ != DType::f32) {
    for (Bounds &value : params) value = {kernels::test::round_away(value.low), kernels::test::round_away(value.high)};
  } else {
    store(params, dtype_);
  }
  return params;
}

void BoundedTensor::update(const std::vector<Bounds> &gradients) {
  ++step_;
  for (size_t i = 0; i < kept_.size(); ++i) update_element(i, gradients[i]);
  store(first_, model_.recipe.first_moment);
  store(second_, model_.recipe.second_moment);
  const bool has_master = model_.recipe.master != ZERO_MASTER_NONE && dtype_ != DType::f32;  // an f32 parameter is as good
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (!has_master) kept_[i] = stored(kept_[i], dtype_);
    average_[i] = between(average_[i], kept_[i], 1 - kAverageDecay);
  }
}

void BoundedTensor::store(std::vector<Bounds> &state, DType dtype) const {
  if (!kernels::test::is_f8(dtype)) {
    for (Bounds &value : state) value = stored(value, dtype);
    return;
  }
  constexpr size_t kLineElements = 256;
  if (state.size() < kLineElements) return;  // such a tensor keeps fp32
  for (size_t begin = 0; begin < state.size(); begin += kLineElements) {
    store_line(state, begin, std::min(begin + kLineElements, state.size()), dtype);
  }
}

void BoundedTensor::update_element(size_t index, Bounds gradient) {
  const std::string &name = model_.algorithm;
  const bool decoupled = name == "adamw" || name == "lion";
  Bounds &param = kept_[index];
  if (decoupled && model_.weight_decay != 0) param = scaled(1 - kRate * model_.weight_decay, param);
  if (!decoupled && model_.weight_decay != 0) {
    gradient = sum(gradient, (model_.weight_decay * param).rounded());
  }
  if (name == "sgd") sgd(index, gradient);
  if (name == "adam" || name == "adamw") adam(index, gradient);
  if (name == "adagrad") adagrad(index, gradient);
  if (name == "lion") lion(index, gradient);
}

void BoundedTensor::sgd(size_t index, Bounds gradient) {
  Bounds direction = gradient;
  if (model_.momentum != 0) {
    Bounds &buffer = first_[index];
    buffer = step_ == 1 ? gradient : sum(scaled(model_.momentum, buffer), gradient);
    direction = model_.nesterov != 0 ? sum(gradient, (model_.momentum * buffer).rounded()) : buffer;
  }
  kept_[index] = stepped(kept_[index], (kRate * direction).rounded());
}

void BoundedTensor::adam(size_t index, Bounds gradient) {
  constexpr double kBeta2 = 0.999;
  constexpr double kEpsilon = 1e-8;
  const auto t = static_cast<double>(step_);
  first_[index] = between(first_[index], gradient, 1 - kBeta1);
  second_[index] = sum(scaled(kBeta2, second_[index]), ((1 - kBeta2) * square_of(gradient)).rounded(2));
  second_[index].low = std::max(second_[index].low, 0.0);
  const Bounds rate = scaled(kRate / (1 - std::pow(kBeta1, t)), first_[index]);
  // Root, constant and quotient; then the constant and the sum.
  const Bounds root = (1 / std::sqrt(1 - std::pow(kBeta2, t)) * root_of(second_[index])).rounded(3);
  const Bounds divisor = sum(root, Bounds::exactly(kEpsilon).rounded());
  kept_[index] = stepped(kept_[index], (rate / Bounds{std::max(divisor.low, kEpsilon / 2), divisor.high}).rounded());
}

void BoundedTensor::adagrad(size_t index, Bounds gradient) {
  constexpr double kEpsilon = 1e-10;
  second_[index] = sum(second_[index], square_of(gradient));
  second_[index].low = std::max(second_[index].low, 0.0);
  const Bounds divisor = sum(root_of(second_[index]).rounded(), Bounds::exactly(kEpsilon).rounded());
  kept_[index] = stepped(kept_[index], (scaled(kRate, gradient) / Bounds{std::max(divisor.low, kEpsilon / 2), divisor.high}).rounded());
}

void BoundedTensor::lion(size_t index, Bounds gradient) {
  constexpr double kBeta2 = 0.99;
  const Bounds direction = sum(scaled(kBeta1, first_[index]), scaled(1 - kBeta1, gradient));
  kept_[index] = stepped(kept_[index], (kRate * sign_of(direction)).rounded());
  first_[index] = sum(scaled(kBeta2, first_[index]), (1 - kBeta2) * gradient).wider(kUnit * (1 - kBeta2) * gradient.magnitude());
}

}  // namespace zero::test
