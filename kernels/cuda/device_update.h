/// @file Updates on a device (kernels/update.h): one algorithm, or one pass of it, over pieces, one
/// block of threads per chunk. Each thread keeps four adjacent elements in registers. The bytes
/// that must move are those of the slots: 28 per element for AdamW with fp32 throughout.
#pragma once

#include "kernels/cuda/slots.h"

#include <type_traits>

namespace zero::kernels::cuda {

static_assert(kChunk == kThreads * kQuad);

template <class Constants>
ZERO_DEVICE Constants constants_in(const Scalars &scalars) {
  // Copies by words: the compiler would load bytes one by one.
  constexpr int kWords = (sizeof(Constants) + sizeof(uint64_t) - 1) / sizeof(uint64_t);
  uint64_t word[kWords];
  const auto *from = reinterpret_cast<const uint64_t *>(&scalars.constants);
  ZERO_UNROLLED
  for (int i = 0; i < kWords; ++i) word[i] = from[i];
  Constants constants;
  memcpy(&constants, word, sizeof constants);
  return constants;
}

template <DType kDType>
using ElementOf = std::conditional_t<kDType == DType::f32, float, std::conditional_t<is_block_scaled(kDType), uint8_t, uint16_t>>;

/// A Form as a type. kMaster is kParam without a master.
template <DType kParam, DType kMaster, DType kFirst, DType kSecond, bool kRanks = false>
struct Stored {
  using Param = ElementOf<kParam>;
  template <int s>
  static constexpr DType kState = s == 0 ? kFirst : kSecond;
  static constexpr DType kParamDType = kParam;
  static constexpr bool kSplit = kMaster == DType::u16;
  static constexpr bool kHasMaster = kMaster != kParam;
  static constexpr bool kOfRanks = kRanks;
};

/// The slots that Algorithm::update writes, and its input beside them. Algorithms of several passes
/// have a specialisation for each.
template <class Algorithm>
struct Pass {
  static constexpr bool kUpdatesParam = true;
  static constexpr bool kUpdatesStates = true;  ///< from the gradient

  ZERO_DEVICE typename Algorithm::Constants constants(const UpdateSegment &, const Scalars &scalars) const {
    return constants_in<typename Algorithm::Constants>(scalars);
  }
  /// The input in place of the gradient, if states are not updated.
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

  /// Registers holds the results of Algorithm::update. Shared holds the bits of the largest
  /// magnitude of each line, for slots of 8-bit floats.
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
    const UpdateSegment &piece;
    const Scalars &scalars;
    Span span;
    int line;  ///< within the chunk
  };

  ZERO_DEVICE Work work_of(const Place &place) const {
    const Chunk &chunk = call.chunks[place.block];
    const UpdateSegment &piece = call.pieces[chunk.piece];
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
    if (work.span.count == kQuad) {
      constexpr DType kF32 = DType::f32;
      constexpr DType kBf16 = DType::bf16;
      switch (work.piece.form) {
        case Form::f32:
          return compute_stored<Stored<kF32, kF32, kF32, kF32>>(work, registers);
        case Form::f16:
          return compute_stored<Stored<DType::f16, kF32, kF32, kF32>>(work, registers);
        case Form::bf16:
          return compute_stored<Stored<kBf16, kF32, kF32, kF32>>(work, registers);
        case Form::remainder:
          return compute_stored<Stored<kBf16, DType::u16, kF32, kF32>>(work, registers);
        case Form::bf16_states:
          return compute_stored<Stored<kBf16, kF32, kBf16, kBf16>>(work, registers);
        case Form::bf16_alone:
          return compute_stored<Stored<kBf16, kBf16, kBf16, kBf16>>(work, registers);
        case Form::f8_states:
          return compute_stored<Stored<kBf16, kF32, DType::f8e4m3, DType::f8ue5m3>>(work, registers);
        case Form::f32_of_ranks:
          return compute_stored<Stored<kF32, kF32, kF32, kF32, true>>(work, registers);
        case Form::bf16_of_ranks:
          return compute_stored<Stored<kBf16, kF32, kF32, kF32, true>>(work, registers);
        case Form::general:
          break;
      }
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

  /// All loads are issued before the first result is used.
  template <class S>
  ZERO_DEVICE void compute_stored(const Work &work, Registers &registers) const {
    const UpdateSegment &piece = work.piece;
    const int64_t index = work.span.index;
    void *param = piece.param.data;
    void *master = piece.master.data;
    const void *grad = piece.grad.data;
    const Elements first = piece.state[0];
    const Elements second = piece.state[kRoom - 1];
    const Constants constants = pass.constants(piece, work.scalars);
    const bool has_states = Algorithm::uses_states(constants);
    // Narrow states are rounded anew in any case.
    const bool uses_first = has_states || S::template kState<0> != DType::f32;
    const bool uses_second = has_states || S::template kState<1> != DType::f32;
    constexpr bool kLoadsParam = kUpdatesParam && (S::kSplit || !S::kHasMaster);
    constexpr bool kLoadsMaster = kUpdatesParam && S::kHasMaster;
    using Master = std::conditional_t<S::kSplit, uint16_t, float>;
    Quad<typename S::Param> raw_param = {}, raw_grad = {};
    Quad<Master> raw_master = {};
    Raw<S, 0> raw_first = {};
    Raw<S, 1> raw_second = {};
    if constexpr (kUpdatesStates && !S::kOfRanks) raw_grad = get_quad<typename S::Param>(grad, index);
    if constexpr (kLoadsParam) raw_param = get_quad<typename S::Param>(param, index);
    if constexpr (kLoadsMaster) raw_master = get_quad<Master>(master, index);
    if (kStates > 0 && uses_first) raw_first.get(first, index);
    if (kStates > 1 && uses_second) raw_second.get(second, index);
    Quad<float> gradient = {};
    if constexpr (kUpdatesStates) {
      gradient = S::kOfRanks ? gradient_of_ranks<typename S::Param>(piece, index, S::kParamDType) : widened(raw_grad, S::kParamDType);
      adjust_gradient(gradient, work.scalars);
    } else {
      gradient = pass.input(work.span);
    }
    if constexpr (kUpdatesParam && S::kSplit) {
      registers.param = joined(raw_param, raw_master);
    } else if constexpr (kUpdatesParam && S::kHasMaster) {
      registers.param = raw_master;
    } else if constexpr (kUpdatesParam) {
      registers.param = widened(raw_param, S::kParamDType);
    } else {
      registers.param = {};
    }
    if constexpr (kStates > 0) registers.state[0] = raw_first.wide();
    if constexpr (kStates > 1) registers.state[1] = raw_second.wide();
    update_quad(registers, gradient, constants);
    if constexpr (kUpdatesParam) put_param<S>(work, param, master, registers.param);
    if (kUpdatesStates && kStates > 0 && uses_first) put_state<S, 0>(work, first.data, registers.state[0]);
    if constexpr (kUpdatesStates && kStates > 1) {
      if (uses_second) put_state<S, 1>(work, second.data, registers.state[1]);
    }
  }

  /// A quad of a state as it is stored.
  template <class S, int s>
  struct Raw {
    static constexpr DType kDType = S::template kState<s>;
    Quad<ElementOf<kDType>> quad;
    float scale;

    ZERO_DEVICE void get(const Elements &elements, int64_t index) {
      quad = get_quad<ElementOf<kDType>>(elements.data, index);
      if constexpr (is_block_scaled(kDType)) scale = elements.scales[index / kLine];
    }
    ZERO_DEVICE Quad<float> wide() const {
      if constexpr (is_block_scaled(kDType)) {
        return decoded(quad, scale, kDType);
      } else {
        return widened(quad, kDType);
      }
    }
  };

  template <class S>
  ZERO_DEVICE static void put_param(const Work &work, void *param, void *master, const Quad<float> &quad) {
    const int64_t index = work.span.index;
    if constexpr (S::kSplit) {
      const Halves halves = halves_of(quad);
      put_quad(param, index, halves.upper);
      put_quad(master, index, halves.lower);
    } else if constexpr (S::kOfRanks) {
      if constexpr (S::kHasMaster) put_quad(master, index, quad);
      store_param_bits(work.piece, work.span, narrowed<typename S::Param>(quad, S::kParamDType));
    } else if constexpr (S::kHasMaster) {
      put_quad(master, index, quad);
      put_quad(param, index, narrowed<typename S::Param>(quad, S::kParamDType));
    } else if constexpr (S::kParamDType == DType::f32) {
      put_quad(param, index, quad);
    } else {
      put_quad(param, index, narrowed_by(work.piece, work.scalars, work.span, S::kParamDType, kParamSlot, quad));
    }
  }

  /// encode() stores f8 states.
  template <class S, int s>
  ZERO_DEVICE static void put_state(const Work &work, void *data, const Quad<float> &quad) {
    constexpr DType kDType = S::template kState<s>;
    if constexpr (kDType == DType::f32) {
      put_quad(data, work.span.index, quad);
    } else if constexpr (!is_block_scaled(kDType)) {
      const uint32_t slot = kFirstStateSlot + static_cast<uint32_t>(s);
      put_quad(data, work.span.index, narrowed_by(work.piece, work.scalars, work.span, kDType, slot, quad));
    }
  }

  /// All threads of the block must call this, as raise_to requires.
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
      const uint32_t largest = shared.state[s][work.line];
      if (work.piece.form == Form::f8_states) {
        const DType dtype = s == 0 ? DType::f8e4m3 : DType::f8ue5m3;
        store_state_codes(work.piece, work.scalars, work.span, s, dtype, largest, registers.state[s]);
      } else {
        const DType dtype = dtype_of(work.piece.state[s]);
        store_state_codes(work.piece, work.scalars, work.span, s, dtype, largest, registers.state[s]);
      }
    }
  }
};

}  // namespace zero::kernels::cuda
