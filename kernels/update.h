/// @file Update: one optimizer update of slots in any storage format. Knows no ranks and no
/// buckets.
///
/// Algorithms compute in fp32. Their loops (Slots) widen and scale the gradient, round a 16-bit
/// parameter or keep it in two halves, and average it. They also sum the gradients of a few other
/// ranks and write to the memory of those ranks. Other formats pass through fp32 blocks that stay
/// in the L1 cache, so the bytes that move are those of the slots.
///
/// @verbatim
///   p           = master if there is one, else parameter; in fp32, as are gradient and states
///   gradient    = the slot, or the sum of sources by the fixed tree / divisor,
///                 rounded to nearest even into the slot's dtype
///   g           = fp32(gradient) * grad_factor, limited to +-clip_value if clip_value > 0
///   (p, states) = algorithm(p, g, states)
///   master f32:   master = p, parameter = p rounded to nearest even (f8: with a scale per line)
///   master u16:   the 16 bits of p that its bf16 parameter lacks (reference/remainder-inl.h);
///                 parameter = p rounded to nearest, ties away from zero
///   no master:    parameter = p rounded to nearest even, or stochastically
///   states:       rounded to nearest even, or stochastically
///                 (8 bits: with a scale per line, block_scaled.h)
///   average     = fma(fp32(1 - average_decay), q - average, average),
///                 q = p with a master, else the parameter as stored
/// @endverbatim
///
/// NaN is stored as the one NaN of its format. Stochastic rounding (random.h) uses slot 0 for the
/// parameter and 1 + s for state s. The place of an element is UpdateSegment::first + its index.
#pragma once

#include "kernels/kernels.h"

#include <span>

namespace zero::kernels {

/// Elements of one slot in any storage format. data nullptr: the slot is not kept.
struct Elements {
  void *data = nullptr;
  DType dtype = DType::f32;
  float *scales = nullptr;  ///< f8 dtypes: one per kLine elements, from the line of element 0 on
};

/// Most contributions to a gradient.
inline constexpr size_t kMostSources = 64;

/// Slots of another rank that receive the values that the update writes to this rank's slots. data
/// nullptr: that slot is not copied.
struct Replica {
  Elements param;
  Elements master;
  Elements state[kMaxStates];
  Elements average;
};

/// A contiguous piece of one tensor or of several adjacent ones. Begins with a tensor or on a line.
struct UpdateSegment {
  Elements param;  ///< f32, f16, bf16; with a master in f32 also f8e4m3
  /// f32, u16 (remainder of a bf16 parameter), or none: then the parameter itself is updated.
  Elements master;
  Elements grad;               ///< f32, f16, bf16
  Elements state[kMaxStates];  ///< f32, bf16, f8
  Elements average;            ///< f32 or none: exponential moving average of the parameter
  int64_t count = 0;
  /// @name In the memory of other ranks. Each begins `peers_offset` elements before the piece.
  /// @{
  /// Contributions to the gradient, in grad.dtype; empty: grad is the gradient.
  std::span<const void *const> sources;
  double divisor = 1;                 ///< divides their sum
  std::span<const Replica> replicas;  ///< all have the same slots, the parameter among them
  int64_t peers_offset = 0;
  /// @}
  /// Place of element 0 in the flat space, a multiple of kTensorStart: with seed and step the key
  /// of stochastic rounding.
  uint64_t first = 0;
};

/// The elements from `begin` on, which is on a line.
Elements slice(const Elements &elements, int64_t begin);
/// The `count` elements from `begin` on, which is on a line of the piece.
UpdateSegment slice(const UpdateSegment &piece, int64_t begin, int64_t count);

/// The scalars of one update.
struct UpdateScalars {
  HyperParameters hyper;
  float grad_factor = 1;  ///< unscales and clips by norm
  float clip_value = 0;   ///< 0 = off
  double average_decay = 0;
  /// Parameters without master and states of fewer than 32 bits are rounded stochastically.
  bool stochastic = false;
  uint64_t seed = 0;
  /// The step of the run, from 1: with the seed the key of stochastic rounding. hyper.step may be
  /// the tensor's instead.
  int64_t step = 0;
  bool streams = false;  ///< writes to memory that is not read bypass the caches
};

/// Sets the states to their values before the first step: Algorithm::initial_state and zeros.
void begin_states(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars);

/// to = from; both have the same format. `streams` bypasses the caches; call Table::flush() before
/// other threads read.
void copy_elements(const Table &table, const Elements &to, const Elements &from, int64_t count, bool streams);
/// Copies the slots that an update wrote, except the parameter, to the replicas that take them.
void hand_on_states(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars);

/// One update of `piece` by `algorithm`. For layerwise algorithms only the last pass (lamb.h),
/// which reads no gradient and writes no state. Matrix algorithms have functions of their own
/// (muon.h).
void update(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars);

/// Moves the average of a piece that is not updated, and copies it to the replicas that take it.
void move_average(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars);

}  // namespace zero::kernels
