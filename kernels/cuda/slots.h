/// @file Slots, four elements at a time, loaded and stored as block.h does on the host. update.h
/// states the roundings. Slots of 8-bit floats are stored in a second step, when the largest
/// element of each line is known. Knows no algorithm.
#pragma once

#include "kernels/cuda/sources.h"
#include "kernels/cuda/table.h"
#include "kernels/reference/block_scaled-inl.h"
#include "kernels/reference/elementwise-inl.h"
#include "kernels/reference/remainder-inl.h"

namespace zero::kernels::cuda {

/// The elements of one thread.
struct Span {
  int64_t index;  ///< in the piece
  int count;      ///< at most kQuad; 0: none
};

ZERO_DEVICE DType dtype_of(const Elements &elements) { return static_cast<DType>(elements.dtype); }
ZERO_DEVICE bool is_f32(const Elements &elements) { return elements.data == nullptr || dtype_of(elements) == DType::f32; }
ZERO_DEVICE bool is_coded(const Elements &elements) { return elements.data != nullptr && is_block_scaled(dtype_of(elements)); }

ZERO_DEVICE reference::Words random_numbers(const UpdateSegment &piece, const Scalars &scalars, const Span &span, DType dtype,
                                            uint32_t slot) {
  const uint64_t first = piece.first + static_cast<uint64_t>(span.index);
  const RandomKey key = {scalars.seed, scalars.step, slot};
  return dtype == DType::bf16 ? reference::random_halves_at(first, key) : reference::random_words_at(first, key);
}

ZERO_DEVICE Quad<float> decoded(const Quad<uint8_t> &codes, float scale, DType dtype) {
  const Format8 format = format8(dtype);
  Quad<float> quad;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) quad.element[i] = reference::decoded(codes.element[i], scale, format);
  return quad;
}

/// Joins fp32 from a bf16 and the 16 bits that it lacks.
ZERO_DEVICE Quad<float> joined(const Quad<uint16_t> &upper, const Quad<uint16_t> &lower) {
  Quad<float> quad;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) quad.element[i] = reference::joined(upper.element[i], lower.element[i]);
  return quad;
}

struct Halves {
  Quad<uint16_t> upper;
  Quad<uint16_t> lower;
};

ZERO_DEVICE Halves halves_of(const Quad<float> &quad) {
  Halves result;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    const reference::Halves halves = reference::halves_of(quad.element[i]);
    result.upper.element[i] = halves.upper;
    result.lower.element[i] = halves.lower;
  }
  return result;
}

ZERO_DEVICE Quad<float> load_decoded(const Elements &elements, const Span &span) {
  return decoded(load<uint8_t>(elements.data, span.index, span.count), elements.scales[span.index / kLine], dtype_of(elements));
}

/// Loads a slot as fp32; 0 if it is not kept.
ZERO_DEVICE Quad<float> load_slot(const Elements &elements, const Span &span) {
  if (elements.data == nullptr) return {};
  if (is_coded(elements)) return load_decoded(elements, span);
  return load_wide(elements.data, dtype_of(elements), span.index, span.count);
}

/// The fp32 values that are updated.
ZERO_DEVICE Quad<float> load_param(const UpdateSegment &piece, const Span &span) {
  if (piece.master.data == nullptr) return load_slot(piece.param, span);
  if (dtype_of(piece.master) != DType::u16) return load_slot(piece.master, span);
  const auto upper = load<uint16_t>(piece.param.data, span.index, span.count);
  const auto lower = load<uint16_t>(piece.master.data, span.index, span.count);
  return joined(upper, lower);
}

/// Scales and clips the gradient.
ZERO_DEVICE void adjust_gradient(Quad<float> &quad, const Scalars &scalars) {
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    if (scalars.grad_factor != 1) quad.element[i] = reference::scaled(quad.element[i], scalars.grad_factor);
    if (scalars.clip_value > 0) quad.element[i] = reference::clamped(quad.element[i], scalars.clip_value);
  }
}

ZERO_DEVICE Quad<float> load_gradient(const UpdateSegment &piece, const Scalars &scalars, const Span &span) {
  const DType dtype = dtype_of(piece.grad);
  Quad<float> quad;
  if (piece.source_count == 0) {
    quad = load_slot(piece.grad, span);
  } else {
    const Sources sources = {piece.sources, dtype, piece.peers_offset + span.index, span.count};
    quad = rounded(reduced(sources, piece.source_count, piece.divisor), dtype);
  }
  adjust_gradient(quad, scalars);
  return quad;
}

/// Returns the unadjusted gradient: this device's own, or the sum of 2 or 4 sources.
template <class Element>
ZERO_DEVICE Quad<float> gradient_of_ranks(const UpdateSegment &piece, int64_t index, DType dtype) {
  if (piece.source_count == 0) return widened(get_quad<Element>(piece.grad.data, index), dtype);
  const Sources sources = {piece.sources, dtype, piece.peers_offset + index, kQuad};
  return rounded(divided(sum_of_few<Element>(sources, piece.source_count), piece.divisor), dtype);
}

/// Stores to the parameter and to its replicas.
template <class Element>
ZERO_DEVICE void store_param_bits(const UpdateSegment &piece, const Span &span, const Quad<Element> &quad) {
  store(piece.param.data, span.index, span.count, quad);
  for (int64_t i = 0; i < piece.replica_count; ++i) {
    store(piece.replicas[i].data, piece.peers_offset + span.index, span.count, quad);
  }
}

ZERO_DEVICE void add_to_average(const UpdateSegment &piece, const Scalars &scalars, const Span &span, const Quad<float> &quad) {
  if (piece.average.data == nullptr) return;
  Quad<float> average = load<float>(piece.average.data, span.index, span.count);
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    average.element[i] = reference::averaged(average.element[i], quad.element[i], scalars.average_weight);
  }
  store(piece.average.data, span.index, span.count, average);
}

ZERO_DEVICE void store_halves(const UpdateSegment &piece, const Span &span, const Quad<float> &quad) {
  const Halves halves = halves_of(quad);
  store_param_bits(piece, span, halves.upper);
  store(piece.master.data, span.index, span.count, halves.lower);
}

/// Rounds to a 16-bit slot, stochastically if the scalars say so.
ZERO_DEVICE Quad<uint16_t> narrowed_by(const UpdateSegment &piece, const Scalars &scalars, const Span &span, DType dtype, uint32_t slot,
                                       const Quad<float> &quad) {
  if (scalars.stochastic == 0) return narrowed<uint16_t>(quad, dtype);
  return narrowed_stochastic(quad, dtype, random_numbers(piece, scalars, span, dtype, slot));
}

/// store_param_codes() stores f8 parameters.
ZERO_DEVICE void store_param(const UpdateSegment &piece, const Scalars &scalars, const Span &span, const Quad<float> &quad) {
  const DType dtype = dtype_of(piece.param);
  Quad<float> kept = quad;
  if (piece.master.data == nullptr) {
    if (dtype == DType::f32) {
      store_param_bits(piece, span, quad);
    } else {
      const Quad<uint16_t> bits = narrowed_by(piece, scalars, span, dtype, kParamSlot, quad);
      store_param_bits(piece, span, bits);
      kept = widened(bits, dtype);
    }
  } else if (dtype_of(piece.master) == DType::u16) {
    store_halves(piece, span, quad);
  } else {
    store(piece.master.data, span.index, span.count, quad);
    if (dtype == DType::f32) store_param_bits(piece, span, quad);
    if (dtype == DType::f16 || dtype == DType::bf16) store_param_bits(piece, span, narrowed<uint16_t>(quad, dtype));
  }
  add_to_average(piece, scalars, span, kept);
}

/// store_state_codes() stores f8 states.
ZERO_DEVICE void store_state(const UpdateSegment &piece, const Scalars &scalars, const Span &span, int state, const Quad<float> &quad) {
  const Elements &elements = piece.state[state];
  const DType dtype = dtype_of(elements);
  if (elements.data == nullptr || is_block_scaled(dtype)) return;
  if (dtype == DType::f32) return store(elements.data, span.index, span.count, quad);
  const uint32_t slot = kFirstStateSlot + static_cast<uint32_t>(state);
  store(elements.data, span.index, span.count, narrowed_by(piece, scalars, span, dtype, slot, quad));
}

/// Returns the bits of the largest finite magnitude. Bits order as magnitudes do.
ZERO_DEVICE uint32_t largest_of(const Quad<float> &quad, int count) {
  uint32_t largest = 0;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    const auto bits = std::bit_cast<uint32_t>(reference::finite_magnitude(quad.element[i]));
    if (i < count && bits > largest) largest = bits;
  }
  return largest;
}

ZERO_DEVICE void put_codes(const Elements &elements, const Span &span, float scale, const Quad<uint8_t> &codes) {
  store(elements.data, span.index, span.count, codes);
  if (span.index % kLine == 0) elements.scales[span.index / kLine] = scale;
}

/// `random` nullptr: rounds to nearest.
ZERO_DEVICE Quad<uint8_t> codes_of(const Quad<float> &quad, float scale, DType dtype, const reference::Words *random) {
  const Format8 format = format8(dtype);
  const float inverse = reference::inverse_of(scale);
  Quad<uint8_t> codes;
  ZERO_UNROLLED
  for (int i = 0; i < kQuad; ++i) {
    codes.element[i] = reference::encoded(quad.element[i], inverse, format, random != nullptr ? &random->word[i] : nullptr);
  }
  return codes;
}

ZERO_DEVICE float scale_from(const Elements &elements, uint32_t largest) {
  return reference::scale_of(std::bit_cast<float>(largest), format8(dtype_of(elements)));
}

ZERO_DEVICE void store_param_codes(const UpdateSegment &piece, const Span &span, uint32_t largest, const Quad<float> &quad) {
  const float scale = scale_from(piece.param, largest);
  const Quad<uint8_t> codes = codes_of(quad, scale, dtype_of(piece.param), nullptr);
  put_codes(piece.param, span, scale, codes);
  for (int64_t i = 0; i < piece.replica_count; ++i) {
    put_codes(piece.replicas[i], {piece.peers_offset + span.index, span.count}, scale, codes);
  }
}

/// `dtype` is the slot's; if it is a constant, the code does not branch on it.
ZERO_DEVICE void store_state_codes(const UpdateSegment &piece, const Scalars &scalars, const Span &span, int state, DType dtype,
                                   uint32_t largest, const Quad<float> &quad) {
  const Elements &elements = piece.state[state];
  const float scale = reference::scale_of(std::bit_cast<float>(largest), format8(dtype));
  if (scalars.stochastic == 0) {
    put_codes(elements, span, scale, codes_of(quad, scale, dtype, nullptr));
  } else {
    const reference::Words random = random_numbers(piece, scalars, span, dtype, kFirstStateSlot + static_cast<uint32_t>(state));
    put_codes(elements, span, scale, codes_of(quad, scale, dtype, &random));
  }
}

}  // namespace zero::kernels::cuda
