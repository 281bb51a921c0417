/// @file The plain program of 1-bit Adam.
#include "tests/engine/freeze_rule.h"

#include <algorithm>
#include <cmath>

namespace zero::test {
namespace {

constexpr double kLr = 0.01;
constexpr double kBeta2 = 0.999;
constexpr double kEpsilon = 1e-8;

}  // namespace

Model freeze_model(const CodedWorld &world, const SparseCode &code) {
  Model model = sparse_model(world, code);
  model.algorithm = "adamw";
  model.weight_decay = 0.01;
  model.hyper = {};
  model.recipe.keys.emplace_back(ZERO_KEY_CODE_FREEZE, 1);
  return model;
}

FreezeRule::FreezeRule(const Model &model, const SparseCode &code)
    : model_(model), sums_(model, code), after_(code.after), beta1_(static_cast<size_t>(model.recipe.sets), 0.9) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    elements_.emplace_back(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
    for (size_t k = 0; k < elements_.back().size(); ++k) elements_.back()[k].param = first_value_at(model, id, static_cast<int64_t>(k));
  }
}

/// beta1 / (1 - beta1) m, times the factor.
float FreezeRule::carried_by(size_t id, size_t k, double factor) const {
  const double beta1 = beta1_[set_of(id)];
  return static_cast<float>(beta1 / (1 - beta1) * factor) * elements_[id][k].first;
}

/// Elements of a tensor whose second moment is small beside those of their line.
std::vector<bool> FreezeRule::still_in(size_t id, bool stays) const {
  const std::vector<Element> &elements = elements_[id];
  std::vector<bool> still(elements.size(), false);
  for (size_t begin = 0; begin < elements.size() && stays; begin += 256) {
    const size_t end = std::min(begin + 256, elements.size());
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += static_cast<double>(elements[k].second);
    for (size_t k = begin; k < end; ++k)
      still[k] = static_cast<double>(elements[k].second) <= 1e-4 * sum / static_cast<double>(end - begin);
  }
  return still;
}

void FreezeRule::update(Element &element, float gradient, size_t set, bool stays) const {
  const double lr = set == 0 ? kLr : 0.01 * static_cast<double>(set);
  const double beta1 = beta1_[set];
  const double correction1 = 1 - std::pow(beta1, static_cast<double>(applied_));
  const double correction2 = 1 - std::pow(kBeta2, static_cast<double>(second_updates_));
  element.first = std::fma(static_cast<float>(1 - beta1), gradient - element.first, element.first);
  if (!stays) element.second = std::fma(static_cast<float>(1 - kBeta2) * gradient, gradient, element.second * static_cast<float>(kBeta2));
  const float divisor = std::sqrt(element.second) / static_cast<float>(std::sqrt(correction2)) + static_cast<float>(kEpsilon);
  element.param *= static_cast<float>(1 - lr * model_.weight_decay);
  element.param += static_cast<float>(-(lr / correction1)) * element.first / divisor;
}

void FreezeRule::step(int64_t gradients) {
  const bool stays = calls_ >= after_ && second_updates_ > 0;
  Values carried = sums_.zeros();
  Values taken_off = carried;
  std::vector<std::vector<bool>> still;
  for (size_t id = 0; id < elements_.size(); ++id) {
    still.push_back(still_in(id, stays));
    for (size_t k = 0; k < elements_[id].size(); ++k) {
      if (sums_.codes(id, k)) carried[id][k] = carried_by(id, k, static_cast<double>(model_.recipe.replica_ranks));
      if (sums_.codes(id, k) || still[id][k]) taken_off[id][k] = carried_by(id, k, 1);
    }
  }
  const Values mean = sums_.mean(gradients, carried);
  ++calls_;
  ++applied_;
  if (!stays) ++second_updates_;
  still_count_ = 0;
  for (size_t id = 0; id < elements_.size(); ++id) {
    still_count_ += std::count(still[id].begin(), still[id].end(), true);
    for (size_t k = 0; k < elements_[id].size(); ++k)
      update(elements_[id][k], (still[id][k] ? 0 : mean[id][k]) - taken_off[id][k], set_of(id), stays);
  }
}

void FreezeRule::skip() {
  sums_.skip();
  ++calls_;
}

void FreezeRule::begin_after(int64_t steps) {
  sums_.begin_after(steps);
  after_ = steps;
}

FreezeRule::Ends FreezeRule::ends() const {
  Ends ends;
  for (const std::vector<Element> &tensor : elements_) {
    for (const Element &element : tensor) {
      ends.params.push_back(element.param);
      ends.first.push_back(element.first);
      ends.second.push_back(element.second);
    }
  }
  return ends;
}

}  // namespace zero::test
