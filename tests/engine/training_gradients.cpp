/// @file Giving the gradients of small trainings.
#include "tests/engine/training.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>

namespace zero::test {
namespace {

/// This rank's gradient as the caller's backward pass would leave it.
std::vector<float> gradients_of(const Model &model, int64_t micro, int64_t rank, int64_t id, Range range) {
  std::vector<float> values(static_cast<size_t>(range.count()));
  const auto scale = static_cast<float>(model.recipe.loss_scale);
  for (size_t k = 0; k < values.size(); ++k) values[k] = scale * gradient_at(model, micro, rank, id, range.begin + static_cast<int64_t>(k));
  const bool overflows = model.recipe.overflow_step == micro && rank == model.ranks - 1 && range.begin == 0 && !values.empty();
  if (overflows) values[0] = std::numeric_limits<float>::infinity();
  return values;
}

/// The sum of both, rounded as the gradient's dtype.
std::vector<std::byte> added(const std::vector<std::byte> &sums, const std::vector<std::byte> &addends, DType dtype) {
  const auto count = std::ssize(sums) / dtype_nbytes(dtype);
  std::vector<float> values = decode(sums.data(), dtype, count);
  const std::vector<float> other = decode(addends.data(), dtype, count);
  for (size_t i = 0; i < values.size(); ++i) values[i] += other[i];
  return encode(values, dtype);
}

/// Into the optimizer's memory. `first`: what the first acquire of the micro-step told, -1 before.
void give_acquired(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t id, Range range,
                   const std::vector<float> &values, int64_t &first) {
  const DType dtype = model.grad_dtype(id);
  std::vector<std::byte> bytes = encode(values, dtype);
  const auto acquire = [&](void *stream) -> const void * {
    void *data = nullptr;
    int64_t accumulate = -1;
    expect_ok(optimizer.grad_acquire(id, &data, &accumulate, stream), "grad_acquire");
    if (first < 0) first = accumulate;
    return static_cast<std::byte *>(data) + range.begin * dtype_nbytes(dtype);
  };
  const auto ready = [&](void *stream) { expect_ok(optimizer.grad_ready(id, nullptr, range.begin, range.count(), stream), "grad_ready"); };
  if (manner.kept_there) {
    const std::vector<std::byte> sums = manner.remote->read(acquire, std::ssize(bytes), [] {});
    if (first == 1) bytes = added(sums, bytes, dtype);
    return manner.remote->write(acquire, bytes, ready);
  }
  auto *to = static_cast<std::byte *>(const_cast<void *>(acquire(nullptr)));
  if (first == 1) bytes = added({to, to + bytes.size()}, bytes, dtype);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  ready(nullptr);
}

/// `adds`, by tensor: what the first acquire of the micro-step told, -1 before.
void give_range(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t micro, int64_t id, Range range,
                std::vector<int64_t> &adds) {
  const DType dtype = model.grad_dtype(id);
  std::vector<float> values = gradients_of(model, micro, optimizer.group()->rank(), id, range);
  std::vector<std::byte> bytes = encode(values, dtype);
  // What is tied cannot be added to in place when it is weighted, or while its other name is acquired.
  const bool own_memory = manner.caller_memory || (model.shared(id) && (manner.by_ranges || model.divisor == ZERO_DIVISOR_WEIGHTS));
  if (own_memory && manner.remote != nullptr && !manner.lends_host) {
    return manner.remote->lend(bytes, [&](const void *data, void *stream) {
      expect_ok(optimizer.grad_ready(id, data, range.begin, range.count(), stream), "grad_ready");
    });
  }
  if (own_memory) {
    expect_ok(optimizer.grad_ready(id, bytes.data(), range.begin, range.count()), "grad_ready");
    return;
  }
  give_acquired(optimizer, model, manner, id, range, values, adds[static_cast<size_t>(id)]);
}

/// What one rank does with one tensor at a time: all of it, or three pieces in an order of their own.
std::vector<std::pair<int64_t, Range>> ready_plan(const Model &model, const Manner &manner, int64_t step, int64_t rank) {
  std::vector<std::pair<int64_t, Range>> plan;
  for (auto id = static_cast<int64_t>(model.counts.size()) - 1; id >= 0; --id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    if (model.unfilled(id, step)) continue;
    if (!manner.by_ranges) {
      plan.push_back({id, {0, count}});
      continue;
    }
    const int64_t a = count / 3;
    const int64_t b = count - count / 4;
    for (const Range range : {Range{a, b}, Range{b, count}, Range{0, a}}) {
      if (!range.empty()) plan.push_back({id, range});
    }
  }
  // Sums of more than two gradients on one rank depend on the order in which that rank gives them.
  const bool ordered = model.recipe.tied && !model.recipe.micro_steps.empty();
  if (manner.ready_seed != 0 && !ordered) {
    std::shuffle(plan.begin(), plan.end(), std::mt19937_64(manner.ready_seed + static_cast<uint64_t>(step * 16 + rank)));
  }
  return plan;
}

}  // namespace

void give_gradients(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step) {
  const int64_t rank = optimizer.group()->rank();
  const auto micro_steps = std::max<int64_t>(1, static_cast<int64_t>(model.recipe.micro_steps.size()));
  for (int64_t micro = 0; micro < micro_steps; ++micro) {
    if (!model.recipe.micro_steps.empty()) {
      expect_ok(optimizer.queue()->run(optimizer.micro_step(model.recipe.micro_steps[static_cast<size_t>(micro)])), "micro_step");
    }
    const int64_t number = step * micro_steps + micro;
    if (model.divisor == ZERO_DIVISOR_WEIGHTS) expect_ok(optimizer.set_weight(weight_of(model, number, rank)), "set_weight");
    std::vector<int64_t> adds(model.counts.size(), -1);
    for (const auto &[id, range] : ready_plan(model, manner, step, rank)) give_range(optimizer, model, manner, number, id, range, adds);
  }
}

}  // namespace zero::test
