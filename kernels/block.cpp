/// @file Loading and storing the elements of a window.
#include "kernels/block.h"

#include "kernels/block_scaled.h"
#include "kernels/convert.h"
#include "kernels/random.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace zero::kernels {
namespace {

void *element(const Elements &elements, int64_t index) {
  return static_cast<std::byte *>(elements.data) + index * dtype_nbytes(elements.dtype);
}

uint16_t *halves(const Elements &elements, int64_t index) { return static_cast<uint16_t *>(elements.data) + index; }

}  // namespace

bool is_rounded_by_kernels(const UpdateSegment &piece, DType grad_dtype) {
  const bool has_master = piece.master.data != nullptr && piece.master.dtype == DType::f32;
  return has_master && piece.param.dtype == (grad_dtype == DType::f32 ? DType::bf16 : grad_dtype);
}

bool is_split_by_kernels(const UpdateSegment &piece) {
  const auto takes_master = [](const Replica &replica) { return replica.master.data != nullptr; };
  return piece.master.data != nullptr && piece.master.dtype == DType::u16 && piece.grad.dtype == DType::bf16 &&
         std::none_of(piece.replicas.begin(), piece.replicas.end(), takes_master);
}

Block::Block(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars)
    : table_(table), piece_(piece), scalars_(scalars) {
  for (const void *source : piece.sources) {
    ask_ahead({const_cast<void *>(source), piece.grad.dtype, nullptr}, piece.peers_offset);
  }
  if (piece.sources.empty() && scalars.clip_value > 0) ask_ahead(piece.grad, 0);
  const bool joined = piece.master.dtype == DType::u16;
  if (joined) ask_ahead(piece.master, 0);
  if ((joined || piece.master.data == nullptr) && piece.param.dtype != DType::f32) ask_ahead(piece.param, 0);
  for (const Elements &state : piece.state) {
    if (state.dtype != DType::f32) ask_ahead(state, 0);
  }
}

void Block::ask_ahead(const Elements &elements, int64_t offset) {
  if (elements.data == nullptr || ahead_.count == Ahead::kMost) return;
  ahead_.arrays[ahead_.count++] = {static_cast<const std::byte *>(element(elements, offset)), dtype_nbytes(elements.dtype)};
}

int64_t Block::move(int64_t begin) {
  begin_ = begin;
  count_ = std::min(kMost, piece_.count - begin);
  ahead_.begin = begin + count_;
  return count_;
}

float *Block::load(const Elements &elements, float *buffer) const {
  if (elements.data == nullptr) return nullptr;
  void *from = element(elements, begin_);
  if (elements.dtype == DType::f32) return static_cast<float *>(from);
  if (is_block_scaled(elements.dtype)) {
    table_.decode(buffer, static_cast<uint8_t *>(from), elements.scales + begin_ / kLine, elements.dtype, count_);
    return buffer;
  }
  table_.widen(buffer, from, elements.dtype, count_);
  return buffer;
}

float *Block::param() {
  const Elements &master = piece_.master;
  if (master.data == nullptr) return load(piece_.param, param_);
  if (master.dtype != DType::u16) return load(master, param_);
  table_.join(param_, halves(piece_.param, begin_), halves(master, begin_), count_);
  return param_;
}

/// The gradient in its dtype. A sum has the bits that a reduction over ranks stores in the slot.
const void *Block::stored_gradient() {
  if (piece_.sources.empty()) return piece_.grad.data == nullptr ? nullptr : element(piece_.grad, begin_);
  const void *sources[kMostSources];
  const int64_t nbytes = (piece_.peers_offset + begin_) * dtype_nbytes(piece_.grad.dtype);
  for (size_t i = 0; i < piece_.sources.size(); ++i) sources[i] = static_cast<const std::byte *>(piece_.sources[i]) + nbytes;
  const bool wide = piece_.grad.dtype == DType::f32;
  void *sum = wide ? static_cast<void *>(grad_) : sums_;
  table_.reduce({sum, sources, std::ssize(piece_.sources), count_, piece_.grad.dtype, ReduceOp::sum, piece_.divisor});
  return sum;
}

const float *Block::grad() {
  const void *stored = stored_gradient();
  const bool wide = piece_.grad.dtype == DType::f32;
  if (!wide) table_.widen(grad_, stored, piece_.grad.dtype, count_);
  const float *values = wide ? static_cast<const float *>(stored) : grad_;
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

void Block::give_gradient(Slots &slots) {
  if (scalars_.clip_value > 0) {
    slots.grad = grad();
  } else {
    slots.grad = stored_gradient();
    slots.grad_dtype = piece_.grad.dtype;
    slots.grad_factor = scalars_.grad_factor;
  }
}

void Block::let_round(Slots &slots) {
  rounded_by_kernel_ = is_rounded_by_kernels(piece_, slots.grad_dtype);
  if (!rounded_by_kernel_) return;
  slots.rounded = piece_.replicas.empty() ? element(piece_.param, begin_) : rounded_;
  slots.streams = scalars_.streams && piece_.replicas.empty();
}

float *Block::state(int index) { return load(piece_.state[index], state_[index]); }

void Block::store(const Elements &elements, const float *values, const uint32_t *random) const {
  put(slice(elements, begin_), values, random);
}

void Block::put(const Elements &window, const float *values, const uint32_t *random) const {
  if (window.data == values) return;
  if (is_block_scaled(window.dtype)) {
    table_.encode(static_cast<uint8_t *>(window.data), window.scales, window.dtype, values, count_, random);
  } else if (random != nullptr) {
    table_.narrow_stochastic(window.data, window.dtype, values, count_, random);
  } else {
    narrow(table_, window.data, window.dtype, values, count_);
  }
}

void Block::copy_out(const Elements &to, const Elements &window) const { copy_elements(table_, to, window, count_, scalars_.streams); }

void Block::store_rounded(const Elements &elements, const float *values, uint32_t slot) {
  if (!scalars_.stochastic || elements.dtype == DType::f32) return store(elements, values, nullptr);
  const RandomKey key = {scalars_.seed, static_cast<uint64_t>(scalars_.step), slot};
  make_random(table_, random_, elements.dtype, count_, key, piece_.first + static_cast<uint64_t>(begin_));
  store(elements, values, random_);
}

void Block::store_param(const float *values) {
  Elements window = slice(piece_.param, begin_);
  if (piece_.master.data == nullptr) {
    store_rounded(piece_.param, values, kParamSlot);
  } else if (piece_.master.dtype == DType::u16) {
    table_.split(halves(piece_.param, begin_), halves(piece_.master, begin_), values, count_);
  } else if (rounded_by_kernel_ ? !piece_.replicas.empty() : scalars_.streams && window.dtype != DType::f32) {
    // The parameter was not read, so its memory need not enter the caches.
    const Elements made = {rounded_, window.dtype, window.scales != nullptr ? scales_ : nullptr};
    if (!rounded_by_kernel_) put(made, values, nullptr);
    copy_out(window, made);
    window = made;
  } else if (!rounded_by_kernel_) {
    put(window, values, nullptr);
  }
  for (const Replica &replica : piece_.replicas) copy_out(slice(replica.param, piece_.peers_offset + begin_), window);
  add_to_average(values);
}

void Block::store_state(int index, const float *values) {
  if (values != nullptr) store_rounded(piece_.state[index], values, kFirstStateSlot + static_cast<uint32_t>(index));
}

void Block::add_to_average(const float *values) {
  if (piece_.average.data == nullptr) return;
  const float *kept = piece_.master.data != nullptr ? values : load(piece_.param, param_);
  table_.average(static_cast<float *>(element(piece_.average, begin_)), kept, count_, static_cast<float>(1 - scalars_.average_decay));
}

}  // namespace zero::kernels
