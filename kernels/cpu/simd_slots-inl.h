/// @file Slots, SIMD: gradients, parameters and states in and out, and prefetching, for the kernels
/// of all algorithms.
#pragma once

#include "kernels/cpu/simd_remainder-inl.h"
#include "kernels/cpu/tree-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// Prefetches the memory in `ahead` that belongs to element i of this loop.
HWY_INLINE void prefetch_ahead(const Slots &slots, int64_t i) {
  const Ahead *ahead = slots.ahead;
  if (ahead == nullptr) return;
  for (int k = 0; k < ahead->count; ++k) __builtin_prefetch(ahead->arrays[k].data + (ahead->begin + i) * ahead->arrays[k].element_nbytes);
}

template <class T>
HWY_INLINE T constants_in(const Constants &constants) {
  T result;
  __builtin_memcpy(&result, constants.bytes, sizeof result);
  return result;
}

/// The storage of the parameter: in fp32, in two halves, or in bf16 alone.
enum class Kept { wide, split, half };

/// The format of Slots::rounded for a format of gradients.
template <class Format>
struct RoundedBeside {
  using Type = Format;
};
template <>
struct RoundedBeside<F32> {
  using Type = Bf16;
};

/// The form of slots. Format is the gradient's, Rounded that of Slots::rounded. kPeers: there may
/// be sources or copies. kHalfStates: states are bf16.
template <class FormatOfEnds, bool kPeersOfEnds, Kept kKept = Kept::wide, bool kHalfStatesOfEnds = false>
struct Form {
  using Format = FormatOfEnds;
  using Rounded = typename RoundedBeside<Format>::Type;
  static constexpr bool kPeers = kPeersOfEnds;
  static constexpr bool kSplit = kKept == Kept::split;
  static constexpr bool kHalf = kKept == Kept::half;
  static constexpr bool kHalfStates = kHalfStatesOfEnds;
};

/// Loads gradients, parameters and states, and stores the new values.
template <class Form>
class Ends {
  using Format = typename Form::Format;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using Element = typename Format::Element;
  using Rounded = typename Form::Rounded;

 public:
  HWY_INLINE explicit Ends(const Slots &slots)
      : grad_(static_cast<const Element *>(slots.grad)),
        source_count_(Form::kPeers ? slots.source_count : 0),
        divider_(slots.divisor),
        factor_(hn::Set(D(), slots.grad_factor)),
        param_(slots.param),
        rounded_(static_cast<uint16_t *>(slots.rounded)),
        lower_(slots.lower),
        state_{slots.state[0], slots.state[1]},
        half_state_{slots.half_state[0], slots.half_state[1]},
        random_param_(slots.random_param),
        random_state_{slots.random_state[0], slots.random_state[1]},
        average_(slots.average),
        average_weight_(hn::Set(D(), slots.average_weight)),
        copy_count_(Form::kPeers ? slots.copy_count : 0),
        handed_count_(Form::kPeers ? slots.handed_count : 0),
        streams_(slots.streams) {
    const int64_t element_nbytes = rounded_ != nullptr ? 2 : 4;
    const auto vector_nbytes = static_cast<uintptr_t>(lanes() * element_nbytes);
    streams_ = streams_ && reinterpret_cast<uintptr_t>(rounded_) % vector_nbytes == 0;
    for (int64_t s = 0; s < source_count_; ++s) sources_[s] = static_cast<const Element *>(slots.sources[s]) + slots.peers_offset;
    for (int64_t c = 0; c < copy_count_; ++c) {
      copies_[c] = static_cast<char *>(slots.copies[c]) + slots.peers_offset * element_nbytes;
      streams_ = streams_ && reinterpret_cast<uintptr_t>(copies_[c]) % vector_nbytes == 0;
    }
    for (int64_t h = 0; h < handed_count_; ++h) {
      handed_[h] = {slots.handed[h].from + slots.handed_offset, slots.handed[h].to + slots.peers_offset};
      streams_ = streams_ && reinterpret_cast<uintptr_t>(handed_[h].to) % static_cast<uintptr_t>(lanes() * 4) == 0;
    }
  }

  HWY_INLINE void prefetch_gradient(int64_t i) const {
    if (!is_summed()) return prefetch(grad_ + i);
    for (int64_t s = 0; s < source_count_; ++s) prefetch(static_cast<const Element *>(sources_[s]) + i);
  }

  /// Returns the scaled gradient.
  HWY_INLINE V gradient(int64_t i) const { return hn::Mul(is_summed() ? sum(i) : Format::load(grad_, i), factor_); }

  HWY_INLINE void prefetch_param(int64_t i) const {
    if constexpr (!Form::kSplit && !Form::kHalf) return prefetch_beside<Element>(param_ + i);
    prefetch(rounded_ + i);
    if constexpr (Form::kSplit) prefetch(lower_ + i);
  }

  HWY_INLINE V param(int64_t i) const {
    if constexpr (Form::kSplit) return load_joined(rounded_ + i, lower_ + i);
    if constexpr (Form::kHalf) return Bf16::load(rounded_, i);
    return hn::LoadU(D(), param_ + i);
  }

  HWY_INLINE void store_param(V value, int64_t i) const {
    if constexpr (Form::kSplit) return store_split(canonical(D(), value), rounded_ + i, lower_ + i);
    if constexpr (Form::kHalf) return store_half(value, rounded_, random_param_, i);
    hn::StoreU(canonical(D(), value), D(), param_ + i);
  }

  HWY_INLINE void prefetch_state(int number, int64_t i) const {
    if constexpr (Form::kHalfStates) return prefetch(half_state_[number] + i);
    prefetch_beside<Element>(state_[number] + i);
  }

  HWY_INLINE V state(int number, int64_t i) const {
    if constexpr (Form::kHalfStates) return Bf16::load(half_state_[number], i);
    return hn::LoadU(D(), state_[number] + i);
  }

  HWY_INLINE void store_state(int number, V value, int64_t i) const {
    if constexpr (Form::kHalfStates) {
      store_half(value, half_state_[number], random_state_[number], i);
    } else {
      hn::StoreU(canonical(D(), value), D(), state_[number] + i);
    }
  }

  HWY_INLINE void prefetch_average(int64_t i) const {
    if (average_ != nullptr) prefetch_beside<Element>(average_ + i);
  }

  /// Averages the parameters stored in the line at i, and copies them and the `handed` slots to
  /// other ranks.
  HWY_INLINE void hand_on(int64_t i) const {
    if (average_ != nullptr) add_to_average(i);
    hand_on_param(i);
    for (int64_t h = 0; Form::kPeers && h < handed_count_; ++h) {
      for (int64_t lane = i; lane < i + kStep<float>; lane += lanes()) {
        store(hn::LoadU(D(), handed_[h].from + lane), D(), handed_[h].to + lane, streams_);
      }
    }
  }

 private:
  static HWY_INLINE void store_half(V value, uint16_t *to, const uint32_t *random, int64_t i) {
    const V kept = canonical(D(), value);
    const auto half = random != nullptr ? Bf16::rounded_stochastic(kept, random, i) : Bf16::rounded(kept);
    hn::StoreU(half, Bf16::Bits16(), to + i);
  }

  HWY_INLINE void add_to_average(int64_t i) const {
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes()) {
      const V before = hn::LoadU(D(), average_ + lane);
      const V after = hn::MulAdd(average_weight_, hn::Sub(param(lane), before), before);
      hn::StoreU(canonical(D(), after), D(), average_ + lane);
    }
  }

  HWY_INLINE void hand_on_param(int64_t i) const {
    if constexpr (Form::kSplit || Form::kHalf) return copy(hn::Rebind<uint16_t, D>(), rounded_, i);
    if (rounded_ != nullptr) return round(i);
    copy(D(), param_, i);
  }

  template <class Lanes, typename T>
  HWY_INLINE void copy(Lanes d, const T *from, int64_t i) const {
    for (int64_t c = 0; Form::kPeers && c < copy_count_; ++c) {
      for (int64_t lane = i; lane < i + kStep<float>; lane += lanes()) {
        store(hn::LoadU(d, from + lane), d, static_cast<T *>(copies_[c]) + lane, streams_);
      }
    }
  }

  HWY_INLINE bool is_summed() const { return Form::kPeers && source_count_ > 0; }
  static HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  /// The sum, with the bits that a reduction stores in the gradient's slot.
  HWY_INLINE V sum(int64_t i) const {
    const V added = source_count_ == 2   ? tree<2, Format, Sum>(sources_, i)
                    : source_count_ == 4 ? tree<4, Format, Sum>(sources_, i)
                                         : tree<8, Format, Sum>(sources_, i);
    return Format::kept(canonical(D(), divider_.divide(added)));
  }

  HWY_INLINE void round(int64_t i) const {
    const typename Rounded::Bits16 d;
    for (int64_t lane = i; lane < i + kStep<float>; lane += lanes()) {
      const auto rounded = Rounded::rounded(hn::LoadU(D(), param_ + lane));
      store(rounded, d, rounded_ + lane, streams_);
      for (int64_t c = 0; Form::kPeers && c < copy_count_; ++c) store(rounded, d, static_cast<uint16_t *>(copies_[c]) + lane, streams_);
    }
  }

  const Element *grad_;
  const void *sources_[8];
  int64_t source_count_;
  Divider<Format> divider_;
  V factor_;
  float *param_;
  uint16_t *rounded_;
  uint16_t *lower_;
  float *state_[2];
  uint16_t *half_state_[2];
  const uint32_t *random_param_;
  const uint32_t *random_state_[2];
  float *average_;
  V average_weight_;
  void *copies_[Slots::kMostCopies];
  int64_t copy_count_;
  Slots::Handed handed_[Slots::kMostHanded];
  int64_t handed_count_;
  bool streams_;
};

/// Calls work(form) for bf16 gradients.
template <bool kPeers, bool kHalfStates, class Work>
HWY_INLINE void with_kept(const Slots &slots, const Work &work) {
  if (slots.lower != nullptr) return work(Form<Bf16, kPeers, Kept::split, kHalfStates>());
  if (slots.param == nullptr && slots.rounded != nullptr) return work(Form<Bf16, kPeers, Kept::half, kHalfStates>());
  work(Form<Bf16, kPeers, Kept::wide, kHalfStates>());
}

template <bool kPeers, class Work>
HWY_INLINE void with_format(const Slots &slots, const Work &work) {
  switch (slots.grad_dtype) {
    case DType::f16:
      return work(Form<F16, kPeers>());
    case DType::bf16:
      return with_kept<kPeers, false>(slots, work);
    default:
      return work(Form<F32, kPeers>());
  }
}

/// Calls work(form) for bf16 states; only a few of these forms are compiled.
template <class Work>
HWY_INLINE void with_half_states(const Slots &slots, const Work &work) {
  if (slots.grad_dtype == DType::f32) return work(Form<F32, true, Kept::wide, true>());
  with_kept<true, true>(slots, work);
}

/// Calls work(form) for the form of the slots.
template <class Work>
HWY_INLINE void with_form(const Slots &slots, const Work &work) {
  if (slots.half_state[0] != nullptr) return with_half_states(slots, work);
  if (slots.source_count > 0 || slots.copy_count > 0) return with_format<true>(slots, work);
  return with_format<false>(slots, work);
}

/// Calls update(i) for all vectors of whole lines, and prefetches. Parameters are handed on some
/// lines after they were stored. Otherwise operations that wait for divisions would fill the
/// processor's queues.
template <class Form, class Update>
HWY_INLINE void update_lines(const Slots &slots, const Ends<Form> &ends, int state_count, const Update &update) {
  constexpr int64_t kBehind = 8 * kStep<float>;
  const int64_t whole = whole_steps<float>(slots.count);
  for (int64_t i = 0; i < whole; i += kStep<float>) {
    ends.prefetch_param(i);
    ends.prefetch_gradient(i);
    ends.prefetch_average(i);
    prefetch_ahead(slots, i);
    for (int state = 0; state < state_count; ++state) ends.prefetch_state(state, i);
    if (i >= kBehind) ends.hand_on(i - kBehind);
    for (int64_t lane = 0; lane < kStep<float>; lane += static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()))) update(i + lane);
  }
  for (int64_t i = whole > kBehind ? whole - kBehind : 0; i < whole; i += kStep<float>) ends.hand_on(i);
}

/// The slots of the elements after the last whole line. Slots that are not kept are nullptr.
HWY_INLINE Slots rest_of_lines(const Slots &slots, int state_count) {
  const int64_t begin = whole_steps<float>(slots.count);
  const int64_t element_nbytes = slots.grad_dtype == DType::f32 ? 4 : 2;
  Slots result = slots;
  if (result.param != nullptr) result.param += begin;
  if (result.grad != nullptr) result.grad = static_cast<const char *>(result.grad) + begin * element_nbytes;
  if (result.rounded != nullptr) result.rounded = static_cast<uint16_t *>(result.rounded) + begin;
  if (result.lower != nullptr) result.lower += begin;
  if (result.random_param != nullptr) result.random_param += begin / 2;
  if (result.average != nullptr) result.average += begin;
  for (int i = 0; i < state_count; ++i) {
    if (result.state[i] != nullptr) result.state[i] += begin;
    if (result.half_state[i] != nullptr) result.half_state[i] += begin;
    if (result.random_state[i] != nullptr) result.random_state[i] += begin / 2;
  }
  result.peers_offset += begin;
  result.handed_offset += begin;
  result.count -= begin;
  return result;
}

}  // namespace
}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
