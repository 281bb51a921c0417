/// @file One optimizer update of slots that are stored in any way. Algorithms know fp32 only, but their loops widen and scale the gradient,
/// round a parameter of 16 bits or keep it in two halves, average it, and add up and write what a few other ranks have of them themselves
/// (Slots); other storage passes through fp32 blocks that stay in the first-level cache, so that the bytes that move are those of the
/// slots. Knows no ranks and no buckets.
///
///   p = master when there is one, else parameter; in fp32, as are gradient and states
///   gradient = the slot, or the sum of sources by the fixed tree / divisor, rounded to nearest even into the slot's dtype
///   g = fp32(gradient) * grad_factor, then limited to [-clip_value, clip_value] when clip_value > 0
///   (p, states) = algorithm(p, g, states)
///   master f32:   master = p, parameter = p rounded to nearest even (f8: with a scale per line)
///   master u16:   the bits that p has more than its bf16 parameter, which is p rounded to nearest with ties away from zero
///                 (reference/remainder-inl.h)
///   no master:    parameter = p rounded to nearest even, or stochastically
///   states:       rounded to nearest even, or stochastically; 8-bit ones with a scale per line (block_scaled.h)
///   average = fma(fp32(1 - average_decay), q - average, average), q = p with a master, else the parameter as it is stored
///
/// NaN is stored as the one NaN of its format. Stochastic rounding (random.h) takes slot 0 for the parameter and 1 + s for state s; the
/// place of an element is UpdateSegment::first + its index.
#pragma once

#include "kernels/kernels.h"

#include <span>

namespace zero::kernels {

/// Elements of one slot, stored in any way. data nullptr: the slot is not kept.
struct Elements {
  void *data = nullptr;
  DType dtype = DType::f32;
  float *scales = nullptr;  ///< f8 dtypes: one per kLine elements, from the line of element 0 on
};

/// Most contributions to a gradient.
inline constexpr size_t kMostSources = 64;

/// The slots of a piece in the memory of another rank that take what the update writes into this rank's. data nullptr: that slot does not.
struct Replica {
  Elements param;
  Elements master;
  Elements state[kMaxStates];
  Elements average;
};

/// A contiguous piece of one tensor or of several that lie end to end. Begins with a tensor or on a line.
struct UpdateSegment {
  Elements param;              ///< f32, f16, bf16; with a master in f32 also f8e4m3
  Elements master;             ///< f32, u16 (remainder of a bf16 parameter), or none: then the parameter itself is updated
  Elements grad;               ///< f32, f16, bf16
  Elements state[kMaxStates];  ///< f32, bf16, f8
  Elements average;            ///< f32 or none: exponential moving average of the parameter
  int64_t count = 0;
  /// @name In the memory of other ranks. Each begins `peers_offset` elements before the piece.
  /// @{
  std::span<const void *const> sources;  ///< contributions to the gradient, in grad.dtype; empty: grad is the gradient
  double divisor = 1;                    ///< of their sum
  std::span<const Replica> replicas;     ///< all have the same slots, the parameter among them
  int64_t peers_offset = 0;
  /// @}
  /// Place of element 0 in the flat space, a multiple of kTensorStart: with seed and step the key of stochastic rounding.
  uint64_t first = 0;
};

/// From element `begin` on, which is on a line.
Elements slice(const Elements &elements, int64_t begin);
/// `count` elements from `begin` on, which is on a line of the piece.
UpdateSegment slice(const UpdateSegment &piece, int64_t begin, int64_t count);

/// What one update is told beside its slots.
struct UpdateScalars {
  HyperParameters hyper;
  float grad_factor = 1;  ///< unscales and clips by norm
  float clip_value = 0;   ///< 0 = off
  double average_decay = 0;
  bool stochastic = false;  ///< parameters without master and states of fewer than 32 bits are rounded stochastically
  uint64_t seed = 0;
  /// Of the run, from 1: with the seed the key of stochastic rounding. hyper.step may be the
  /// tensor's.
  int64_t step = 0;
  bool streams = false;  ///< what is only written goes past the caches
};

/// Gives the states the values that they have before the first step: Algorithm::initial_state and zeros.
void begin_states(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars);

/// to = from, which are stored alike. `streams`: past the caches; Table::flush() comes before other threads are told.
void copy_elements(const Table &table, const Elements &to, const Elements &from, int64_t count, bool streams);
/// Copies what an update wrote beside the parameter to the replicas that take it.
void hand_on_states(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars);

/// One update of `piece` by `algorithm`. Layerwise algorithms: the last of their passes (lamb.h), which reads no gradient and writes no
/// state. Matrix algorithms have functions of their own (muon.h).
void update(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars);

/// Moves the average of a piece that is not updated, and copies it to the replicas that take it.
void move_average(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars);

}  // namespace zero::kernels
