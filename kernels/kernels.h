/// @file Host kernels: pure functions on pointers, counts and scalars. There is one row per
/// operation and one table per SIMD target, and all targets give the same bits. Knows no ranks,
/// groups or buckets. Kernels allocate nothing, wait for nothing and start no thread. Callers cut
/// the work on multiples of kLine elements and may run the parts on any threads.
#pragma once

#include "core/dtype.h"
#include "core/partition.h"
#include "core/reduction.h"
#include "kernels/exact_sum.h"
#include "kernels/update_kernels.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace zero::kernels {

using ::zero::Reduction;

/// Hyper-parameters of one update, as the optimizer headers name them. `step` counts from 1.
struct HyperParameters {
  double lr;
  double momentum;
  double dampening;
  double nesterov;
  double beta1;
  double beta2;
  double epsilon;
  double weight_decay;
  int64_t step;
  double average_decay = 0;  ///< decay of the parameter's moving average, if one is kept
  double lr_decay = 0;       ///< adagrad
  /// Adagrad: the state before the first step (Algorithm::initial_state).
  double initial_accumulator = 0;
  double newton_schulz_steps = 5;  ///< muon
  double trust_ratio = 1;          ///< lamb: the tensor's, from its norms
  /// @name Adam: the second moment may stay as it is while all else goes on
  /// @{
  int64_t second_missed = 0;  ///< earlier steps that did not change it
  int64_t second_stays = 0;   ///< 1: nor does this one
  /// @}
};

/// The constants of an algorithm, made once for many calls of its kernels. Holds the bytes of the
/// algorithm's own struct, such as AdamConstants (kernels/adam.h).
struct alignas(8) Constants {
  unsigned char bytes[64];
};

inline constexpr int kMaxStates = 4;

/// Memory that will be read next. Loops over other memory prefetch it at their own pace, so that
/// memory is never idle.
struct Ahead {
  static constexpr int kMost = 16;
  struct Array {
    const std::byte *data;
    int64_t element_nbytes;
  };
  Array arrays[kMost];
  int count = 0;
  int64_t begin = 0;  ///< element to prefetch with element 0 of the loop
};

/// The slots of one contiguous piece, all of the same count, and fp32 unless stated otherwise.
struct Slots {
  float *param;
  const void *grad;
  float *state[kMaxStates];
  int64_t count;
  /// bf16, instead of `state`, which is nullptr then. Not for layerwise algorithms.
  uint16_t *half_state[kMaxStates] = {};
  DType grad_dtype = DType::f32;  ///< f32, f16, bf16
  float grad_factor = 1;          ///< the gradient is multiplied by this, in fp32
  /// Receives the new parameter, rounded to nearest even, in grad_dtype, or in bf16 if that is f32.
  /// Not for layerwise algorithms. If grad_dtype is bf16, `param` may be nullptr; this is the
  /// parameter then.
  void *rounded = nullptr;
  /// Only if grad_dtype is bf16: the parameter is `rounded` joined with this (Table::join), and
  /// `param` is nullptr.
  uint16_t *lower = nullptr;
  /// Random numbers for the stochastic rounding of a bf16 parameter and of bf16 states, as
  /// narrow_stochastic takes them. nullptr: rounds to nearest even.
  const uint32_t *random_param = nullptr;
  const uint32_t *random_state[kMaxStates] = {};
  /// Moving average of the new parameter (Table::average), or nullptr. Not for layerwise
  /// algorithms.
  float *average = nullptr;
  float average_weight = 0;
  /// @name In the memory of other ranks, from `peers_offset` on. Not for layerwise algorithms.
  /// @{
  static constexpr bool sums(int64_t count) { return count == 0 || count == 2 || count == 4 || count == 8; }
  /// In grad_dtype; the gradient is their sum (reduce.h), rounded to it, and `grad` is nullptr.
  const void *const *sources = nullptr;
  int64_t source_count = 0;  ///< a count for which sums() is true
  double divisor = 1;        ///< divides the sum
  static constexpr int64_t kMostCopies = 7;
  /// Receive the bits of `rounded`, or the new fp32 parameter if that is nullptr.
  void *const *copies = nullptr;
  int64_t copy_count = 0;
  int64_t peers_offset = 0;
  /// An fp32 slot that is copied to another rank after the update. `from` begins `handed_offset`
  /// elements before this part.
  struct Handed {
    const float *from;
    float *to;
  };
  /// Masters, states and averages.
  static constexpr int64_t kMostHanded = kMostCopies * (2 + kMaxStates);
  const Handed *handed = nullptr;
  int64_t handed_count = 0;  ///< above 0 only with copies
  int64_t handed_offset = 0;
  /// @}
  /// Writes to other ranks and to `rounded` bypass the caches; call flush() before other threads
  /// read them.
  bool streams = false;
  const Ahead *ahead = nullptr;  ///< memory to prefetch, or nullptr
};

using ReduceKernel = bool (*)(const Reduction &reduction);
using UpdateKernel = void (*)(const Slots &slots, const Constants &constants);

/// A range of bytes.
struct Bytes {
  const void *data;
  int64_t nbytes;
};

/// The key of random numbers (kernels/random.h).
struct RandomKey {
  uint64_t seed;
  uint64_t step;
  uint32_t slot;
};

/// Above about this size, stores that bypass the caches are cheaper: plain stores read the lines
/// that they overwrite.
inline constexpr int64_t kStreamedNbytes = 4 << 20;

/// Workspace of a matrix product, in elements: a packed block of rows, which the L2 cache holds.
inline constexpr int64_t kProductWorkspace = 384 * 128;

/// The kernels of one target.
struct Table {
  const char *target;
  /// out = op over sources. Returns true if every output is finite (always for integers).
  ReduceKernel reduce;
  /// True if no element (f32, f16 or bf16) is NaN or has a magnitude above the limit, which is not
  /// negative.
  bool (*all_within)(const void *values, DType dtype, int64_t count, float limit);
  /// As all_within, and copies the values. `streams` bypasses the caches.
  bool (*copy_within)(void *out, const void *values, DType dtype, int64_t count, float limit, bool streams);
  /// Copies, bypassing the caches if the machine can: for memory that is not read soon. Call
  /// flush() before other threads read it.
  void (*stream)(void *out, const void *values, int64_t nbytes);
  void (*flush)();
  /// out = values * scale in fp32; out may equal values.
  void (*scale)(float *out, const float *values, int64_t count, float scale);
  /// out = values in fp32; f16 and bf16.
  void (*widen)(float *out, const void *values, DType dtype, int64_t count);
  /// out = values rounded to nearest even; f16 and bf16.
  void (*narrow)(void *out, DType dtype, const float *values, int64_t count);
  /// The random numbers of elements [first, first + count), as kernels/random.h defines them.
  /// `first` is a multiple of 4.
  void (*random_words)(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first);
  /// As narrow, but rounds up or down at random such that the mean is kept. `random` holds one word
  /// per element, or for bf16 one word per two elements (kernels/random.h).
  void (*narrow_stochastic)(void *out, DType dtype, const float *values, int64_t count, const uint32_t *random);
  /// join makes fp32 values from an upper half, rounded to nearest with ties away from zero, and a
  /// lower half. split is the reverse.
  void (*join)(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count);
  void (*split)(uint16_t *upper, uint16_t *lower, const float *values, int64_t count);
  /// Conversions of slots of f8e4m3 and f8ue5m3, which begin on a line (kernels/block_scaled.h).
  /// `random` nullptr: rounds to nearest even.
  void (*encode)(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random);
  void (*decode)(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count);
  /// out = a + b; out may equal either.
  void (*add)(float *out, const float *a, const float *b, int64_t count);
  /// out = values limited to [-limit, limit], NaN stays NaN; out may equal values.
  void (*clamp)(float *out, const float *values, int64_t count, float limit);
  /// average = fma(weight, values - average, average).
  void (*average)(float *average, const float *values, int64_t count, float weight);
  /// Adds the squares of each line of kLine elements (f32, f16 or bf16) in fp64 in a fixed order,
  /// and adds the lines to `sum`. `values` begins on a line.
  void (*add_squares)(const void *values, DType dtype, int64_t count, ExactSum &sum);
#define ZERO_FIELD(kernel, Algorithm) UpdateKernel kernel;
  ZERO_UPDATE_KERNELS(ZERO_FIELD)
#undef ZERO_FIELD
  UpdateKernel lamb;
  /// The other passes of lamb (kernels/lamb.h): the moments, and the direction from them and the
  /// parameter.
  UpdateKernel lamb_moments;
  void (*lamb_direction)(float *out, const Slots &slots, const Constants &constants);
  /// out = a * b, row-major: out[i][j] = fma(a[i][k], b[k][j], ...) over ascending k, from 0 on.
  /// `out` overlaps neither. `workspace`: kProductWorkspace elements.
  void (*multiply)(float *out, const float *a, const float *b, int64_t rows, int64_t inner, int64_t columns, float *workspace);
  /// As multiply, if the product is its own transpose bit by bit. b is the transpose of a, or a
  /// itself if a is such a product. Only one half is computed and then mirrored.
  void (*multiply_symmetric)(float *out, const float *a, const float *b, int64_t side, int64_t inner, float *workspace);
  /// values = fma(weight, addend, values * factor).
  void (*combine)(float *values, float factor, const float *addend, float weight, int64_t count);
  /// out = from + weight * (to - from): fma(weight, to - from, from) for weights below 0.5,
  /// otherwise fma(weight - 1, to - from, to). `out` may equal either.
  void (*interpolate)(float *out, const float *from, const float *to, float weight, int64_t count);
};

/// The tables that this machine can run, slowest first. The slowest is the plain reference, which
/// defines the right results.
std::span<const Table *const> supported();

/// The fastest supported table, or the one that the variable ZERO_KERNEL_TARGET names when it is
/// supported. Decided once.
const Table &active();

/// A default value of one algorithm that differs from the key's.
struct HyperDefault {
  int32_t key;
  double value;
};

/// One optimizer algorithm: the row that an engine needs to run it.
struct Algorithm {
  const char *name;
  /// The kernel that updates elements, and the function that makes its constants. Both are nullptr
  /// for matrix algorithms, which have functions of their own.
  UpdateKernel Table::*update;
  Constants (*constants)(const HyperParameters &hyper);
  int state_count;
  int32_t state_slot[kMaxStates];  ///< zero_slot numbers, in the order of Slots::state
  std::span<const int32_t> keys;   ///< hyper-parameter keys (zero_key) it reads
  std::span<const HyperDefault> defaults;
  /// The value that every element of state 0 has before the first step; nullptr = 0, as of all
  /// other states.
  double HyperParameters::*initial_state = nullptr;
  /// The update of an element depends on norms of its whole tensor: several passes
  /// (kernels/lamb.h).
  bool layerwise = false;
  bool matrix = false;  ///< updates two-dimensional tensors, which one rank must hold whole
};

/// Returns nullptr if no algorithm has that name.
const Algorithm *find_algorithm(std::string_view name);
std::span<const Algorithm> algorithms();

}  // namespace zero::kernels
