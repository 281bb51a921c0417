/// @file Loading and storing the elements of a window.
#include "kernels/block.h"

#include "kernels/convert.h"

#include <algorithm>
#include <cstddef>

namespace zero::kernels {
namespace {

void *element(const Elements &elements, int64_t index) {
  return static_cast<std::byte *>(elements.data) + index * dtype_nbytes(elements.dtype);
}

}  // namespace

int64_t Block::move(int64_t begin) {
  begin_ = begin;
  count_ = std::min(kMost, piece_.count - begin);
  return count_;
}

float *Block::load(const Elements &elements, float *buffer) const {
  if (elements.data == nullptr) return nullptr;
  void *from = element(elements, begin_);
  if (elements.dtype == DType::f32) return static_cast<float *>(from);
  table_.widen(buffer, from, elements.dtype, count_);
  return buffer;
}

float *Block::param() { return load(piece_.master.data != nullptr ? piece_.master : piece_.param, param_); }

const float *Block::grad() {
  const float *values = load(piece_.grad, grad_);
  if (scalars_.grad_factor != 1) {
    table_.scale(grad_, values, count_, scalars_.grad_factor);
    values = grad_;
  }
  if (scalars_.clip_value > 0) {
    table_.clamp(grad_, values, count_, scalars_.clip_value);
    values = grad_;
  }
  return values;
}

float *Block::state(int index) { return load(piece_.state[index], state_[index]); }

void Block::store(const Elements &elements, const float *values) const {
  void *to = element(elements, begin_);
  if (to != values) narrow(table_, to, elements.dtype, values, count_);
}

void Block::store_param(const float *values) {
  store(piece_.param, values);
  add_to_average(values);
}

void Block::store_state(int index, const float *values) {
  if (values != nullptr) store(piece_.state[index], values);
}

void Block::add_to_average(const float *values) {
  if (piece_.average.data == nullptr) return;
  const float *kept = piece_.master.data != nullptr ? values : load(piece_.param, param_);
  table_.average(static_cast<float *>(element(piece_.average, begin_)), kept, count_, static_cast<float>(1 - scalars_.average_decay));
}

}  // namespace zero::kernels
