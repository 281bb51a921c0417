/// @file The equations of replicas.h, one fp32 operation after another.
#include "tests/engine/fragment_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace zero::test {
namespace {

double norm(const std::vector<std::vector<float>> &tensors) {
  double squares = 0;
  for (const std::vector<float> &values : tensors) {
    for (const float value : values) squares += static_cast<double>(value) * value;
  }
  return std::sqrt(squares);
}

}  // namespace

FragmentRule::FragmentRule(const Model &model) : model_(model) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    tensors_.emplace_back(model, id);
    anchors_.push_back(tensors_.back().first());
    moments_.emplace_back(anchors_.back().size());
  }
  cut();
}

/// Each run ends at the nearest boundary of all that leave every run a tensor.
void FragmentRule::cut() {
  std::vector<int64_t> ids;
  std::vector<int64_t> ends = {0};  // elements before each boundary
  fragments_.assign(static_cast<size_t>(model_.tensors()), -1);
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    const int64_t count = model_.counts[static_cast<size_t>(id)];
    if (count == 0 || model_.frozen(id)) continue;
    ids.push_back(id);
    ends.push_back(ends.back() + count);
  }
  const int64_t runs = model_.recipe.sync_fragments;
  int64_t begin = 0;
  for (int64_t run = 0; run < runs; ++run) {
    int64_t end = begin + 1;
    const auto distance = [&](int64_t at) { return std::abs(ends[static_cast<size_t>(at)] * runs - ends.back() * (run + 1)); };
    for (int64_t at = end; at <= std::ssize(ids) - (runs - 1 - run); ++at) end = distance(at) <= distance(end) ? at : end;
    for (int64_t at = begin; at < end; ++at) fragments_[static_cast<size_t>(ids[static_cast<size_t>(at)])] = run;
    begin = end;
  }
}

FragmentRule::Exchange FragmentRule::exchange(int64_t fragment) const {
  Exchange made;
  made.fragment = fragment;
  made.left = model_.recipe.sync_delay;
  made.changes.resize(tensors_.size());
  const int64_t replicas = std::ssize(tensors_[0].all());
  std::vector<std::vector<Values>> own(static_cast<size_t>(replicas), made.changes);
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    if (!belongs(id, fragment)) continue;
    const auto at = static_cast<size_t>(id);
    for (size_t k = 0; k < anchors_[at].size(); ++k) {
      const auto change = [&](int64_t replica) { return anchors_[at][k] - values(replica, id)[k]; };
      for (int64_t replica = 0; replica < replicas; ++replica) own[static_cast<size_t>(replica)][at].push_back(change(replica));
      made.changes[at].push_back(tree_sum(0, replicas, change) / static_cast<float>(replicas));
    }
  }
  double before = 0;
  for (const std::vector<Values> &changes : own) before += norm(changes) / static_cast<double>(replicas);
  made.spread = before > 0 ? norm(made.changes) / before : 1;
  return made;
}

void FragmentRule::use(const Exchange &made, double mix) {
  const Recipe &recipe = model_.recipe;
  for (int64_t id = 0; id < model_.tensors(); ++id) {
    if (!belongs(id, made.fragment)) continue;
    const auto at = static_cast<size_t>(id);
    for (size_t k = 0; k < anchors_[at].size(); ++k) {
      const float change = made.changes[at][k];
      float &anchor = anchors_[at][k];
      float &moment = moments_[at][k];
      anchor += change * static_cast<float>(-recipe.outer_lr);
      if (recipe.outer_momentum > 0) {
        moment = moment * static_cast<float>(recipe.outer_momentum) + change;
        anchor += moment * static_cast<float>(-recipe.outer_lr * recipe.outer_momentum);
      }
      for (Values &values : tensors_[at].all())
        values[k] = mix == 0 ? anchor : values[k] * static_cast<float>(mix) + anchor * static_cast<float>(1 - mix);
    }
  }
  synced_ = true;
  spread_ = made.spread;
}

void FragmentRule::step(int64_t step, const Skip &skip) {
  const Recipe &recipe = model_.recipe;
  const bool together = step < recipe.sync_after;
  for (PlainReplicas &tensor : tensors_) tensor.step(step, skip, together);
  synced_ = false;
  if (together) {
    for (size_t at = 0; at < anchors_.size(); ++at) anchors_[at] = tensors_[at].values(0);
    return;
  }
  if (under_way_.left > 0 && --under_way_.left == 0) use(under_way_, recipe.sync_mix);
  const int64_t apart = recipe.sync_period / recipe.sync_fragments;
  const int64_t made = step + 1 - recipe.sync_after;
  if (made % apart != 0) return;
  const Exchange begun = exchange(made / apart % recipe.sync_fragments);
  if (recipe.sync_delay == 0) return use(begun, recipe.sync_mix);
  under_way_ = begun;
}

void FragmentRule::sync() {
  if (under_way_.left > 0) use(under_way_, model_.recipe.sync_mix);
  under_way_.left = 0;
  use(exchange(kAll), 0);
}

namespace {

void expect_values(Optimizer &optimizer, const Model &model, const FragmentRule &rule, const std::string &where) {
  const int64_t replica = optimizer.group()->rank() / model.recipe.replica_ranks;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    std::vector<float> found(static_cast<size_t>(model.counts[static_cast<size_t>(id)]));
    expect_ok(run_task(optimizer, optimizer.read(id, ZERO_SLOT_PARAM, 0, found.data(), std::ssize(found))), "read");
    ASSERT_EQ(differing(found, rule.values(replica, id)), 0) << where << " tensor " << id;
  }
}

}  // namespace

void follow_fragments(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, const Skip &skip) {
  const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
  ASSERT_NE(optimizer, nullptr);
  FragmentRule rule(model);
  const int64_t replica = group->rank() / model.recipe.replica_ranks;
  const auto where = [&](int64_t step) {
    return "rank " + std::to_string(group->rank()) + " step " + std::to_string(step) + "\n" + model.text() + manner.text();
  };
  double loss_scale = model.recipe.loss_scale;
  for (int64_t step = 0; step < model.steps; ++step) {
    const bool skips = step == skip.step && replica == skip.replica;
    const bool overflows = skips && group->rank() % model.recipe.replica_ranks == 0;
    const zero_step_result result = plain_step(*optimizer, model, step, loss_scale, overflows);
    loss_scale = result.loss_scale;
    rule.step(step, skip);
    EXPECT_EQ(result.skipped, skips ? 1 : 0) << where(step);
    EXPECT_EQ(result.synced, rule.synced() ? 1 : 0) << where(step);
    EXPECT_NEAR(result.spread, rule.synced() ? rule.spread() : 0, 1e-5) << where(step);
    ASSERT_NO_FATAL_FAILURE(expect_values(*optimizer, model, rule, where(step)));
  }
  zero_step_result result{};
  expect_ok(run_task(*optimizer, optimizer->sync(&result)), "sync");
  rule.sync();
  ASSERT_NO_FATAL_FAILURE(expect_values(*optimizer, model, rule, where(model.steps)));
  expect_same_on_all_ranks(*optimizer);
}

}  // namespace zero::test
