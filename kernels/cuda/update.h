/// @file The update of pieces by one algorithm, or one pass of it, one block of threads per chunk: kernels/update.h on a device. Four
/// neighbouring elements belong to a thread and stay in its registers. What each storage must move is what its slots hold: with fp32
/// throughout, AdamW 28 bytes per element.
#pragma once

#include "kernels/cuda/slots.h"

namespace zero::kernels::cuda {

static_assert(kChunk == kThreads * kQuad);

template <class Constants>
ZERO_DEVICE Constants constants_in(const Scalars &scalars) {
  Constants constants;
  memcpy(&constants, scalars.constants.bytes, sizeof constants);
  return constants;
}

/// Which slots Algorithm::update is for, and what it is given beside them. Algorithms of several passes have a specialisation for each.
template <class Algorithm>
struct Pass {
  static constexpr bool kUpdatesParam = true;
  static constexpr bool kUpdatesStates = true;  ///< from the gradient

  ZERO_DEVICE typename Algorithm::Constants constants(const Piece &, const Scalars &scalars) const {
    return constants_in<typename Algorithm::Constants>(scalars);
  }
  /// Where states are not updated, in the gradient's place.
  ZERO_DEVICE Quad<float> input(const Span &) const { return {}; }
};

template <class Algorithm>
struct Updating {
  using Constants = typename Algorithm::Constants;
  static constexpr bool kUpdatesParam = Pass<Algorithm>::kUpdatesParam;
  static constexpr bool kUpdatesStates = Pass<Algorithm>::kUpdatesStates;
  static constexpr int kStates = Algorithm::kStates;
  static constexpr int kLines = kChunk / kLine;
  static constexpr int kRoom = kStates > 0 ? kStates : 1;  ///< arrays cannot be empty

  /// What Algorithm::update has made, and for slots of 8-bit floats of each line the largest magnitude as bits.
  struct Registers {
    Quad<float> param;
    Quad<float> state[kRoom];
  };
  struct Shared {
    uint32_t param[kLines];
    uint32_t state[kRoom][kLines];
  };
  static constexpr int kPhases = 3;

  Update call;
  Pass<Algorithm> pass = {};

  /// The work of one thread.
  struct Work {
    const Piece &piece;
    const Scalars &scalars;
    Span span;
    int line;  ///< of the chunk
  };

  ZERO_DEVICE Work work_of(const Place &place) const {
    const Chunk &chunk = call.chunks[place.block];
    const Piece &piece = call.pieces[chunk.piece];
    const int64_t index = chunk.begin + place.thread * kQuad;
    const Scalars &scalars = call.scalars[piece.scalars];
    const int64_t left = scalars.skips != 0 ? 0 : piece.count - index;
    const int count = left >= kQuad ? kQuad : left > 0 ? static_cast<int>(left) : 0;
    return {piece, scalars, {index, count}, static_cast<int>(place.thread * kQuad / kLine)};
  }

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &registers, Shared &shared) const {
    if constexpr (phase == 0) {
      clear(place, shared);
    } else {
      const Work work = work_of(place);
      if constexpr (phase == 1) {
        if (work.span.count > 0) compute(work, registers);
        measure(work, registers, shared);
      } else if (work.span.count > 0) {
        encode(work, registers, shared);
      }
    }
  }

  ZERO_DEVICE void clear(const Place &place, Shared &shared) const {
    if (place.thread >= kLines) return;
    shared.param[place.thread] = 0;
    ZERO_UNROLLED
    for (int s = 0; s < kStates; ++s) shared.state[s][place.thread] = 0;
  }

  ZERO_DEVICE void compute(const Work &work, Registers &registers) const {
    if (is_plain(work)) {
      const DType dtype = dtype_of(work.piece.param);
      if (dtype == DType::f32) return compute_plain<float, DType::f32>(work, registers);
      if (dtype == DType::f16) return compute_plain<uint16_t, DType::f16>(work, registers);
      return compute_plain<uint16_t, DType::bf16>(work, registers);
    }
    const Quad<float> gradient = kUpdatesStates ? load_gradient(work.piece, work.scalars, work.span) : pass.input(work.span);
    registers.param = kUpdatesParam ? load_param(work.piece, work.span) : Quad<float>{};
    ZERO_UNROLLED
    for (int s = 0; s < kStates; ++s) registers.state[s] = load_slot(work.piece.state[s], work.span);
    update_quad(registers, gradient, pass.constants(work.piece, work.scalars));
    if constexpr (kUpdatesParam) store_param(work.piece, work.scalars, work.span, registers.param);
    ZERO_UNROLLED
    for (int s = 0; s < kStates && kUpdatesStates; ++s) store_state(work.piece, work.scalars, work.span, s, registers.state[s]);
  }

  ZERO_DEVICE void update_quad(Registers &values, const Quad<float> &gradient, const Constants &constants) const {
    ZERO_UNROLLED
    for (int i = 0; i < kQuad; ++i) {
      float state[kRoom];
      ZERO_UNROLLED
      for (int s = 0; s < kStates; ++s) state[s] = values.state[s].element[i];
      Algorithm::update(values.param.element[i], gradient.element[i], state, constants);
      ZERO_UNROLLED
      for (int s = 0; s < kStates; ++s) values.state[s].element[i] = state[s];
    }
  }

  /// A whole quad of slots that are stored in one of the most frequent ways: all in fp32 without a master, or a 16-bit parameter and
  /// gradient of one dtype, the rest in fp32; and nothing but the slots takes part.
  ZERO_DEVICE bool is_plain(const Work &work) const {
    const Piece &piece = work.piece;
    const bool is_wide = dtype_of(piece.param) == DType::f32;
    bool plain = work.span.count == kQuad && piece.source_count == 0 && piece.replica_count == 0 && piece.average.data == nullptr &&
                 piece.grad.dtype == piece.param.dtype && (piece.master.data == nullptr) == is_wide && is_f32(piece.master) &&
                 has_whole_quads<float>(piece.master.data);
    for (const void *data : {piece.param.data, piece.grad.data}) {
      plain = plain && (is_wide ? has_whole_quads<float>(data) : has_whole_quads<uint16_t>(data));
    }
    ZERO_UNROLLED
    for (int s = 0; s < kStates; ++s) {
      const Elements &state = piece.state[s];
      plain = plain && is_f32(state) && has_whole_quads<float>(state.data);
    }
    return plain;
  }

  template <class Element, DType dtype>
  ZERO_DEVICE void compute_plain(const Work &work, Registers &registers) const {
    const Piece &piece = work.piece;
    const int64_t index = work.span.index;
    void *kept = dtype == DType::f32 ? piece.param.data : piece.master.data;
    const Constants constants = pass.constants(piece, work.scalars);
    const bool has_states = Algorithm::uses_states(constants);
    Registers values;
    values.param = kUpdatesParam ? whole_quad<float>(kept, index) : Quad<float>{};
    Quad<float> gradient = kUpdatesStates ? widened(whole_quad<Element>(piece.grad.data, index), dtype) : pass.input(work.span);
    ZERO_UNROLLED
    for (int s = 0; s < kStates; ++s) {
      values.state[s] = has_states ? whole_quad<float>(piece.state[s].data, index) : Quad<float>{};
    }
    if constexpr (kUpdatesStates) adjust_gradient(gradient, work.scalars);
    update_quad(values, gradient, constants);
    if constexpr (!kUpdatesParam) {
      registers.param = values.param;
    } else {
      whole_quad<float>(kept, index) = values.param;
      if constexpr (dtype != DType::f32) whole_quad<Element>(piece.param.data, index) = narrowed<Element>(values.param, dtype);
    }
    ZERO_UNROLLED
    for (int s = 0; s < kStates && kUpdatesStates && has_states; ++s) whole_quad<float>(piece.state[s].data, index) = values.state[s];
  }

  /// All threads of the block come here, as raise_to wants.
  ZERO_DEVICE void measure(const Work &work, const Registers &registers, Shared &shared) const {
    const auto [index, count] = work.span;
    if (kUpdatesParam && is_coded(work.piece.param)) raise_to(shared.param[work.line], largest_of(registers.param, count));
    ZERO_UNROLLED
    for (int s = 0; s < kStates && kUpdatesStates; ++s) {
      if (is_coded(work.piece.state[s])) raise_to(shared.state[s][work.line], largest_of(registers.state[s], count));
    }
  }

  ZERO_DEVICE void encode(const Work &work, const Registers &registers, const Shared &shared) const {
    if (kUpdatesParam && is_coded(work.piece.param)) store_param_codes(work.piece, work.span, shared.param[work.line], registers.param);
    ZERO_UNROLLED
    for (int s = 0; s < kStates && kUpdatesStates; ++s) {
      if (!is_coded(work.piece.state[s])) continue;
      store_state_codes(work.piece, work.scalars, work.span, s, shared.state[s][work.line], registers.state[s]);
    }
  }
};

}  // namespace zero::kernels::cuda
