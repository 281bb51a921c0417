/// @file A plain program for steps that leave rows untouched: it updates whole tensors, and keeps the old bits of rows that nobody gave.
/// And trainings beside it.
#pragma once

#include "core/default_floats.h"
#include "kernels/update.h"
#include "tests/engine/row_gradients.h"
#include "tests/engine/untouched.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

/// Of a slot, as it is stored.
using Entries = std::vector<std::byte>;
/// By tensor and slot.
using Slots = std::map<std::pair<int64_t, int32_t>, Entries>;
/// By tensor and row; a tensor that is no table has one row.
using Touched = std::vector<std::vector<bool>>;

inline int64_t holder(const Model &model, int64_t id) { return model.recipe.tied && id + 1 == model.tensors() ? 0 : id; }
inline int64_t row_count(const Model &model, int64_t id) { return model.is_table(id) ? model.rows[static_cast<size_t>(id)] : 1; }
inline int64_t row_width(const Model &model, int64_t id) { return model.counts[static_cast<size_t>(id)] / row_count(model, id); }

/// The rows that some rank gives in these micro-steps.
inline Touched touched_rows(const Model &model, int64_t first, int64_t end) {
  Touched touched;
  for (int64_t id = 0; id < model.tensors(); ++id)
    touched.emplace_back(static_cast<size_t>(row_count(model, id)), !model.is_table(id) && model.counts[static_cast<size_t>(id)] > 0);
  for (int64_t at = first * model.ranks; at < end * model.ranks; ++at) {
    for (int64_t id = 0; id < model.tensors(); ++id) {
      if (!model.is_table(id)) continue;
      std::vector<bool> &rows = touched[static_cast<size_t>(holder(model, id))];
      const Given given = random_given(model, id, given_seed(model, at / model.ranks, at % model.ranks, id));
      if (given.form == Given::Form::whole) rows.assign(rows.size(), true);
      if (given.form != Given::Form::rows) continue;
      for (const int64_t row : given.rows) rows[static_cast<size_t>(row)] = true;
    }
  }
  return touched;
}

/// The program: no ranks, shards, marks or packets.
class DenseProgram {
 public:
  /// The optimizer has the same slots and hyper-parameters.
  DenseProgram(const Model &model, const Optimizer &like) : model_(model), algorithm_(*kernels::find_algorithm(model.algorithm)) {
    for (int64_t id = 0; id < model.tensors(); ++id) {
      if (holder(model, id) != id) continue;
      std::vector<float> values;
      for (int64_t k = 0; k < model.counts[static_cast<size_t>(id)]; ++k) values.push_back(first_value_at(model, id, k));
      const Entries param = encode(values, model.dtype(id));
      values = decode(param.data(), model.dtype(id), std::ssize(values));
      for (const SlotInfo &info : slots_of(like, id)) {
        Entries &slot = slots_[{id, info.number}];
        dtypes_[{id, info.number}] = info.dtype;
        slot.resize(static_cast<size_t>(info.count * dtype_nbytes(info.dtype)));
        const bool follows = (info.number == ZERO_SLOT_MASTER && info.dtype == DType::f32) || info.number == ZERO_SLOT_AVERAGE;
        if (info.number == ZERO_SLOT_PARAM) slot = param;
        if (follows && !values.empty()) std::memcpy(slot.data(), values.data(), slot.size());
      }
    }
    const std::pair<int32_t, double kernels::HyperParameters::*> keys[] = {
        {ZERO_KEY_LR, &kernels::HyperParameters::lr},           {ZERO_KEY_MOMENTUM, &kernels::HyperParameters::momentum},
        {ZERO_KEY_BETA1, &kernels::HyperParameters::beta1},     {ZERO_KEY_BETA2, &kernels::HyperParameters::beta2},
        {ZERO_KEY_EPSILON, &kernels::HyperParameters::epsilon}, {ZERO_KEY_WEIGHT_DECAY, &kernels::HyperParameters::weight_decay}};
    for (const auto &[key, value] : keys) (void)like.get_f64(0, key, &(scalars_.hyper.*value));
    expect_ok(like.get_f64(0, ZERO_KEY_AVERAGE_DECAY, &scalars_.average_decay), "get_f64");
    scalars_.clip_value = static_cast<float>(model.recipe.clip_value);
  }

  /// `grads`: reduced, by tensor. `norm`: 0 or that of all of them.
  void step(const std::vector<Entries> &grads, const Touched &touched, double norm) {
    const double clip = model_.recipe.clip_norm;
    scalars_.grad_factor = static_cast<float>(clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0);
    ++scalars_.step;
    for (int64_t id = 0; id < model_.tensors(); ++id) {
      const std::vector<bool> &rows = touched[static_cast<size_t>(id)];
      if (holder(model_, id) == id && std::find(rows.begin(), rows.end(), true) != rows.end())
        update(id, grads[static_cast<size_t>(id)], rows);
    }
  }

  const Slots &slots() const { return slots_; }

 private:
  kernels::Elements elements(Slots &slots, int64_t id, int32_t number) const {
    const auto found = slots.find({id, number});
    return found == slots.end() ? kernels::Elements{} : kernels::Elements{found->second.data(), dtypes_.at({id, number})};
  }

  void update(int64_t id, Entries grad, const std::vector<bool> &rows) {
    const DefaultFloats floats;
    Slots all = slots_;
    kernels::UpdateSegment piece;
    piece.param = elements(all, id, ZERO_SLOT_PARAM);
    piece.master = elements(all, id, ZERO_SLOT_MASTER);
    piece.average = elements(all, id, ZERO_SLOT_AVERAGE);
    piece.grad = {grad.data(), model_.grad_dtype(id)};
    for (int state = 0; state < algorithm_.state_count; ++state) piece.state[state] = elements(all, id, algorithm_.state_slot[state]);
    piece.count = model_.counts[static_cast<size_t>(id)];
    Entries &count = slots_[{id, ZERO_SLOT_UPDATE_COUNT}];
    std::memcpy(&scalars_.hyper.step, count.data(), count.size());
    ++scalars_.hyper.step;
    kernels::update(*kernels::supported().front(), algorithm_, piece, scalars_);
    for (auto &[key, slot] : slots_) {
      if (key.first != id || key.second == ZERO_SLOT_UPDATE_COUNT) continue;
      const auto nbytes = static_cast<size_t>(row_width(model_, id) * dtype_nbytes(dtypes_[key]));
      for (size_t row = 0; row < rows.size(); ++row) {
        if (rows[row]) std::memcpy(slot.data() + row * nbytes, all[key].data() + row * nbytes, nbytes);
      }
    }
    std::memcpy(count.data(), &scalars_.hyper.step, count.size());
  }

  const Model &model_;
  const kernels::Algorithm &algorithm_;
  kernels::UpdateScalars scalars_{};
  Slots slots_;
  std::map<std::pair<int64_t, int32_t>, DType> dtypes_;
};

inline Entries acquired(Optimizer &optimizer, const Model &model, int64_t id) {
  void *data = nullptr;
  Entries values(static_cast<size_t>(model.counts[static_cast<size_t>(id)] * dtype_nbytes(model.dtype(id))));
  expect_ok(run_task(optimizer, optimizer.param_acquire(id, nullptr, 0, &data)), "param_acquire");
  if (!values.empty()) std::memcpy(values.data(), data, values.size());
  expect_ok(optimizer.param_release(id), "param_release");
  return values;
}

/// What one rank ends with: slots that it read, and the parameters that it keeps itself.
struct End {
  Slots slots;
  std::vector<Entries> params;
};

inline End end_of(Optimizer &optimizer, const Model &model) {
  End end;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    end.params.push_back(acquired(optimizer, model, id));
    if (holder(model, id) != id) continue;
    for (const SlotInfo &info : slots_of(optimizer, id)) {
      Entries &slot = end.slots[{id, info.number}];
      slot.resize(static_cast<size_t>(info.count * dtype_nbytes(info.dtype)));
      expect_ok(run_task(optimizer, optimizer.read(id, info.number, 0, slot.data(), info.count)), "read");
    }
  }
  return end;
}

/// Reduces what `give_step_by_rows` gives as whole gradients, in an optimizer that knows no rows.
inline std::vector<Entries> reduced_whole(Optimizer &twin, const Model &model, int64_t *number) {
  std::vector<Entries> grads;
  give_step_by_rows(twin, model, number);
  expect_ok(run_task(twin, twin.reduce(nullptr)), "reduce");
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    Entries grad(static_cast<size_t>(count * dtype_nbytes(model.grad_dtype(id))));
    expect_ok(run_task(twin, twin.read(id, ZERO_SLOT_GRAD, 0, grad.data(), count)), "read");
    grads.push_back(std::move(grad));
  }
  expect_ok(run_task(twin, twin.gather()), "gather");
  return grads;
}

inline double norm_of(const Model &model, const std::vector<Entries> &grads) {
  double squares = 0;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    if (holder(model, id) != id) continue;
    for (const float value : decode(grads[static_cast<size_t>(id)].data(), model.grad_dtype(id), model.counts[static_cast<size_t>(id)]))
      squares += double{value} * value;
  }
  return std::sqrt(squares);
}

/// Trains by rows and, unless `expected` is nullptr, with the dense program too, whose slots that becomes.
inline End train_both(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner, Slots *expected) {
  Model whole = model;
  whole.by_rows = false;
  whole.recipe.untouched = false;
  const auto optimizer = begun_optimizer(group, model, manner);
  const auto twin = begun_optimizer(group, whole, {.stage = 1});
  if (optimizer == nullptr || twin == nullptr) return {};
  DenseProgram program(model, *optimizer);
  int64_t number = 0;
  int64_t whole_number = 0;
  for (int64_t at = 0; at < model.steps; ++at) {
    const int64_t first = number;
    zero_step_result result{};
    give_step_by_rows(*optimizer, model, &number);
    end_step(*optimizer, manner.splits && at % 2 == 1, &result);
    EXPECT_EQ(result.skipped, 0);
    const std::vector<Entries> grads = reduced_whole(*twin, whole, &whole_number);
    const bool has_norm = manner.norm || model.recipe.clip_norm > 0 || result.grad_norm > 0;
    const double norm = has_norm ? norm_of(model, grads) : 0;
    EXPECT_NEAR(result.grad_norm, norm, 1e-9 * norm);
    if (expected != nullptr) program.step(grads, touched_rows(model, first, number), result.grad_norm);
  }
  expect_same_on_all_ranks(*optimizer);
  if (expected != nullptr) *expected = program.slots();
  return end_of(*optimizer, model);
}

}  // namespace zero::test
