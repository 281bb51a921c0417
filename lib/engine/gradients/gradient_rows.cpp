/// @file Gradients that are given by rows: their place in a bucket, and the marks of its rows.
#include "engine/gradients/gradient_accumulator.h"

#include "core/default_floats.h"
#include "engine/gradients/row_sums.h"

#include <algorithm>
#include <numeric>

namespace zero {
namespace {

// Marks of rows:
constexpr uint8_t kEmpty = 0;
constexpr uint8_t kHeld = 1;

}  // namespace

Status GradientAccumulator::ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count) {
  const Param &param = params_[id];
  const char *name = param.name.c_str();
  ZERO_CHECK(by_rows(id), ZERO_E_STATE, "%s is not given by rows; set ZERO_KEY_ROWS to 1 in the config of zero_optimizer_add_param%s", name,
             param.tied() ? " of the parameter that it is tied to" : "");
  for (int64_t i = 0; i < count; ++i) {
    ZERO_CHECK(rows[i] >= 0 && rows[i] < param.shape[0], ZERO_E_INVALID_ARGUMENT,
               "rows[%lld] is %lld, but %s has %lld rows, numbered from 0", lld(i), lld(rows[i]), name, lld(param.shape[0]));
  }
  if (param.count == 0) return {};
  const Tensor &mine = tensor(id);
  ZERO_CHECK(mine.ready.count() == 0 && !mine.acquired, ZERO_E_STATE,
             "the gradient of %s is %s in this step; zero_optimizer_grad_ready_rows gives all of it, in one call", name,
             mine.acquired ? "acquired" : "ready already, at least in part,");
  ZERO_TRY(make_ready(id, true));
  take_rows(id, rows, static_cast<const std::byte *>(values), count);
  holder(id).filled.add({0, param.count});
  return end_ready(id, {0, param.count});
}

/// As take_in of the whole gradient. If that is added to something, rows that are not given add
/// zeros, which turn -0 into 0.
void GradientAccumulator::take_rows(int64_t id, const int64_t *rows, const std::byte *values, int64_t count) {
  const DefaultFloats floats;
  const DType dtype = schedule_.dtype(home(id));
  Tensor &shared = holder(id);
  const Landing at = landing_of(id);
  const int64_t width = params_[id].row_width();
  const bool adds = shared.written.count() > 0;
  clear_unwritten(id);
  shared.written.clear();
  shared.written.add({0, params_[id].count});
  const auto arrival = [&](int64_t row, const std::byte *from) {
    return Arrival{at, within(at.memory, id, row * width, at.dtype), from, dtype, width};
  };
  sort_rows(rows, count);
  shared.gave_rows = shared.gave_rows || count > 0;
  int64_t next = 0;
  for (size_t i = 0; i < row_order_.size();) {
    const int64_t row = rows[row_order_[i]];
    for (; adds && next < row; ++next) add_zeros(arrival(next, nullptr), shared.rows[static_cast<size_t>(next)]);
    arrive(arrival(row, sum_of_row(rows, values, width, dtype, &i)), adds);
    shared.rows[static_cast<size_t>(row)] = kHeld;
    next = row + 1;
  }
  for (; adds && next < params_[id].shape[0]; ++next) add_zeros(arrival(next, nullptr), shared.rows[static_cast<size_t>(next)]);
}

/// row_order_ = places in `rows`, those of the lowest row first, and of one row in the order given.
void GradientAccumulator::sort_rows(const int64_t *rows, int64_t count) {
  row_order_.resize(static_cast<size_t>(count));
  std::iota(row_order_.begin(), row_order_.end(), 0);
  std::sort(row_order_.begin(), row_order_.end(), [rows](int64_t a, int64_t b) { return rows[a] != rows[b] ? rows[a] < rows[b] : a < b; });
}

/// The sum of all values of the row at *place in row_order_; *place becomes that of the next row.
const std::byte *GradientAccumulator::sum_of_row(const int64_t *rows, const std::byte *values, int64_t width, DType dtype, size_t *place) {
  const int64_t nbytes = width * dtype_nbytes(dtype);
  const int64_t row = rows[row_order_[*place]];
  const std::byte *sum = values + row_order_[(*place)++] * nbytes;
  for (; *place < row_order_.size() && rows[row_order_[*place]] == row; ++*place) {
    if (sum != row_sum_.data()) row_sum_.assign(sum, sum + nbytes);
    sum = row_sum_.data();
    kernels_.add(row_sum_.data(), dtype, values + row_order_[*place] * nbytes, dtype, width, 1);
  }
  return sum;
}

void GradientAccumulator::add_zeros(const Arrival &whole, uint8_t mark) const {
  if (mark == kEmpty || state_.weight == 0) return;
  const int64_t step = kZerosNbytes / dtype_nbytes(whole.dtype);
  for (int64_t begin = 0; begin < whole.count; begin += step) {
    kernels_.add(whole.to + begin * dtype_nbytes(whole.at.dtype), whole.at.dtype, kZeros.data(), whole.dtype,
                 std::min(step, whole.count - begin), 1);
  }
}

/// A whole gradient was given in the range.
void GradientAccumulator::mark_rows(int64_t id, Range range) {
  if (!by_rows(id)) return;
  const int64_t width = params_[id].row_width();
  const auto first = holder(id).rows.begin();
  holder(id).gave_rows = true;
  std::fill(first + range.begin / width, first + (range.end + width - 1) / width, kHeld);
}

/// Behind the rows lie other tensors, given as a whole.
void GradientAccumulator::unmark_rows(Tensor &tensor) const {
  if (tensor.rows.empty()) return;
  std::fill(tensor.rows.begin(), tensor.rows.end() - 1, kEmpty);
  tensor.rows.back() = kHeld;
}

}  // namespace zero
