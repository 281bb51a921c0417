/// @file Gradients by rows for engine tests, by chance, and the whole gradients that they stand for.
#pragma once

#include "tests/engine/training.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace zero::test {

/// What one rank gives of one tensor in one micro-step.
struct Given {
  enum class Form { rows, whole, nothing } form = Form::rows;
  std::vector<int64_t> rows;
  std::vector<std::byte> values;
};

/// With zeros of both signs, and rows that come again.
inline Given random_given(const Model &model, int64_t id, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t rows = model.rows[static_cast<size_t>(id)];
  const int64_t width = model.counts[static_cast<size_t>(id)] / rows;
  Given given;
  if (random() % 6 == 0) given.form = random() % 2 == 0 ? Given::Form::whole : Given::Form::nothing;
  const uint64_t count = random() % 4 == 0 ? 0 : random() % static_cast<uint64_t>(rows + 3);
  std::vector<float> values;
  for (uint64_t i = 0; i < count; ++i) {
    const bool again = i > 0 && random() % 4 == 0;
    given.rows.push_back(again ? given.rows[random() % i] : static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
    for (int64_t k = 0; k < width; ++k) {
      const float value = value_at(random(), 7, k);
      values.push_back(random() % 5 == 0 ? (value < 0 ? -0.0f : 0.0f) : value);
    }
  }
  given.values = encode(values, model.grad_dtype(id));
  return given;
}

/// The seed of what a rank gives of a tensor. `number`: of the micro-step in the run.
inline uint64_t given_seed(const Model &model, int64_t number, int64_t rank, int64_t id) {
  return model.seed + static_cast<uint64_t>((number * 8 + rank) * 8 + id);
}

/// The definition: zeros, then in the order given the first values of a row, and sums in fp32, each rounded.
inline std::vector<std::byte> whole_of(const Model &model, int64_t id, const Given &given) {
  const DType dtype = model.grad_dtype(id);
  const int64_t width = model.counts[static_cast<size_t>(id)] / model.rows[static_cast<size_t>(id)];
  std::vector<std::byte> whole(static_cast<size_t>(model.counts[static_cast<size_t>(id)] * dtype_nbytes(dtype)));
  std::vector<bool> held(static_cast<size_t>(model.rows[static_cast<size_t>(id)]));
  for (size_t i = 0; i < given.rows.size(); ++i) {
    const auto row = static_cast<size_t>(given.rows[i]);
    const auto nbytes = static_cast<size_t>(width * dtype_nbytes(dtype));
    std::byte *to = whole.data() + row * nbytes;
    std::vector<float> sum = decode(given.values.data() + i * nbytes, dtype, width);
    const std::vector<float> before = decode(to, dtype, width);
    for (size_t k = 0; held[row] && k < sum.size(); ++k) sum[k] = before[k] + sum[k];
    held[row] = true;
    const std::vector<std::byte> bytes = encode(sum, dtype);
    std::copy(bytes.begin(), bytes.end(), to);
  }
  return whole;
}

/// Gives this rank's gradients of a micro-step; tables whole if the model is not by rows.
inline void give_by_rows(Optimizer &optimizer, const Model &model, int64_t number) {
  for (int64_t id = model.tensors() - 1; id >= 0; --id) {
    const uint64_t seed = given_seed(model, number, optimizer.group()->rank(), id);
    if (!model.is_table(id)) {
      std::vector<float> values;
      for (int64_t i = 0; i < model.counts[static_cast<size_t>(id)]; ++i) values.push_back(value_at(seed, 3, i));
      const std::vector<std::byte> bytes = encode(values, model.grad_dtype(id));
      expect_ok(optimizer.grad_ready(id, bytes.data(), 0, std::ssize(values)), "grad_ready");
      continue;
    }
    const Given given = random_given(model, id, seed);
    if (given.form == Given::Form::nothing) continue;
    if (model.by_rows && given.form == Given::Form::rows) {
      expect_ok(optimizer.grad_ready_rows(id, given.rows.data(), given.values.data(), std::ssize(given.rows)), "grad_ready_rows");
      continue;
    }
    const std::vector<std::byte> whole = whole_of(model, id, given);
    expect_ok(optimizer.grad_ready(id, whole.data(), 0, model.counts[static_cast<size_t>(id)]), "grad_ready");
  }
}

/// All micro-steps of a step, up to its end. `number` counts those of the run.
inline void give_step_by_rows(Optimizer &optimizer, const Model &model, int64_t *number) {
  const std::vector<int32_t> &kinds = model.recipe.micro_steps;
  for (size_t micro = 0; micro < std::max<size_t>(1, kinds.size()); ++micro) {
    if (!kinds.empty()) expect_ok(run_task(optimizer, optimizer.micro_step(kinds[micro])), "micro_step");
    if (model.divisor == ZERO_DIVISOR_WEIGHTS)
      expect_ok(optimizer.set_weight(weight_of(model, *number, optimizer.group()->rank())), "set_weight");
    give_by_rows(optimizer, model, (*number)++);
  }
}

/// Ends a step, as a whole or in its three parts.
inline void end_step(Optimizer &optimizer, bool splits, zero_step_result *result) {
  result->struct_size = sizeof *result;
  if (!splits) return expect_ok(run_task(optimizer, optimizer.step(result)), "step");
  expect_ok(run_task(optimizer, optimizer.reduce(result)), "reduce");
  expect_ok(run_task(optimizer, optimizer.apply()), "apply");
  expect_ok(run_task(optimizer, optimizer.gather()), "gather");
}

}  // namespace zero::test
