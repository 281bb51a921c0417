/// @file The list of host kernels: pure functions on pointers, counts and scalars, one row per operation, one table per SIMD target.
/// All targets give the same bits. Nothing here knows ranks, groups or buckets; nothing here allocates, waits or starts a thread: callers
/// cut the work (on multiples of kLine elements) and may run the pieces on any threads.
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

/// Hyper-parameters of one update, as the optimizer headers name them. `step` counts updates from
/// 1.
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
  double average_decay = 0;        ///< of the moving average of the parameter, where one is kept
  double lr_decay = 0;             ///< adagrad
  double initial_accumulator = 0;  ///< adagrad: its state before the first step (Algorithm::initial_state)
  double newton_schulz_steps = 5;  ///< muon
  double trust_ratio = 1;          ///< lamb: of the tensor, from its norms
};

/// What an algorithm computes with, made once for many calls of its kernels: its own struct (as AdamConstants in kernels/adam.h), byte for
/// byte.
struct alignas(8) Constants {
  unsigned char bytes[64];
};

inline constexpr int kMaxStates = 4;

/// Memory that will be read next, for loops over something else to ask for at their own pace, so that memory never rests.
struct Ahead {
  static constexpr int kMost = 16;
  struct Array {
    const std::byte *data;
    int64_t element_nbytes;
  };
  Array arrays[kMost];
  int count = 0;
  int64_t begin = 0;  ///< element that is as far ahead as element 0 of the loop
};

/// The slots of one contiguous piece, all of the same count, and fp32 where nothing else is said.
struct Slots {
  float *param;
  const void *grad;
  float *state[kMaxStates];
  int64_t count;
  uint16_t *half_state[kMaxStates] = {};  ///< bf16 in place of state, which then is nullptr. Not of layerwise algorithms
  DType grad_dtype = DType::f32;          ///< f32, f16, bf16
  float grad_factor = 1;                  ///< the algorithm sees the gradient times this, in fp32
  /// In grad_dtype, or bf16 where that is f32: takes the new parameter too, rounded to nearest even. Not of layerwise algorithms. Where
  /// grad_dtype is bf16 `param` may be nullptr, and then this is the parameter.
  void *rounded = nullptr;
  /// Where grad_dtype is bf16: the parameter is the two joined, as Table::join does it, and `param` nullptr.
  uint16_t *lower = nullptr;
  /// The random numbers by which bf16 in place of fp32 is rounded, of the parameter and of the states, as narrow_stochastic takes them;
  /// nullptr: to nearest even.
  const uint32_t *random_param = nullptr;
  const uint32_t *random_state[kMaxStates] = {};
  /// Moving average of the new parameter (Table::average), or nullptr. Not of layerwise algorithms.
  float *average = nullptr;
  float average_weight = 0;
  /// @name In the memory of other ranks, from element `peers_offset` on. Not of layerwise algorithms.
  /// @{
  static constexpr bool sums(int64_t count) { return count == 0 || count == 2 || count == 4 || count == 8; }
  const void *const *sources = nullptr;  ///< in grad_dtype: the gradient is their sum (reduce.h), rounded to it; `grad` then is nullptr
  int64_t source_count = 0;              ///< one that sums() takes
  double divisor = 1;                    ///< of the sum
  static constexpr int64_t kMostCopies = 7;
  void *const *copies = nullptr;  ///< take what `rounded` takes, or the new parameter itself where there is none
  int64_t copy_count = 0;
  int64_t peers_offset = 0;
  /// Slots of fp32 that go there as they are after the update: `from` begins `handed_offset` elements before this part.
  struct Handed {
    const float *from;
    float *to;
  };
  static constexpr int64_t kMostHanded = kMostCopies * (2 + kMaxStates);  ///< masters, states and averages
  const Handed *handed = nullptr;
  int64_t handed_count = 0;  ///< above 0 only with copies
  int64_t handed_offset = 0;
  /// @}
  bool streams = false;          ///< what goes there, and `rounded`, goes past the caches; flush() comes before other threads are told
  const Ahead *ahead = nullptr;  ///< or nothing to ask for
};

using ReduceKernel = bool (*)(const Reduction &reduction);
using UpdateKernel = void (*)(const Slots &slots, const Constants &constants);

/// A range of bytes.
struct Bytes {
  const void *data;
  int64_t nbytes;
};

/// Which random numbers.
struct RandomKey {
  uint64_t seed;
  uint64_t step;
  uint32_t slot;
};

/// Above about this size, stores past the caches cost less than the reads that plain ones bring with them.
inline constexpr int64_t kStreamedNbytes = 4 << 20;

/// Elements that products of matrices need: a block of rows, packed, that the second-level cache holds.
inline constexpr int64_t kProductWorkspace = 384 * 128;

/// The kernels of one target.
struct Table {
  const char *target;
  /// out = op over sources; returns true when every output is finite (always true for integers).
  ReduceKernel reduce;
  /// True when no element, f32, f16 or bf16, is NaN or has a magnitude above the limit, which is not negative.
  bool (*all_within)(const void *values, DType dtype, int64_t count, float limit);
  /// The same while it copies; past the caches if asked to.
  bool (*copy_within)(void *out, const void *values, DType dtype, int64_t count, float limit, bool streams);
  /// Copies, past the caches where the machine can: for memory that nobody reads soon. flush() comes before other threads are told.
  void (*stream)(void *out, const void *values, int64_t nbytes);
  void (*flush)();
  /// out = values * scale in fp32; out may equal values.
  void (*scale)(float *out, const float *values, int64_t count, float scale);
  /// out = values in fp32; f16 and bf16.
  void (*widen)(float *out, const void *values, DType dtype, int64_t count);
  /// out = values rounded to nearest even; f16 and bf16.
  void (*narrow)(void *out, DType dtype, const float *values, int64_t count);
  /// The random numbers of elements [first, first + count), `first` a multiple of 4: kernels/random.h says which.
  void (*random_words)(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first);
  /// As narrow, but up or down with probabilities that keep the mean, decided by one random number per element: `random` holds a word for
  /// each, for bf16 one for two (kernels/random.h).
  void (*narrow_stochastic)(void *out, DType dtype, const float *values, int64_t count, const uint32_t *random);
  /// fp32 from its upper half, which was rounded to nearest with ties away from zero, and its lower half; and the reverse.
  void (*join)(float *out, const uint16_t *upper, const uint16_t *lower, int64_t count);
  void (*split)(uint16_t *upper, uint16_t *lower, const float *values, int64_t count);
  /// Slots of f8e4m3 and f8ue5m3, from a line on: kernels/block_scaled.h states the format. `random` nullptr = to nearest even.
  void (*encode)(uint8_t *codes, float *scales, DType dtype, const float *values, int64_t count, const uint32_t *random);
  void (*decode)(float *out, const uint8_t *codes, const float *scales, DType dtype, int64_t count);
  /// out = a + b; out may equal either.
  void (*add)(float *out, const float *a, const float *b, int64_t count);
  /// out = values limited to [-limit, limit], NaN stays NaN; out may equal values.
  void (*clamp)(float *out, const float *values, int64_t count, float limit);
  /// average = fma(weight, values - average, average).
  void (*average)(float *average, const float *values, int64_t count, float weight);
  /// Adds the squares of each line of kLine elements, f32, f16 or bf16, in a fixed order in fp64, and the lines to `sum`. `values` begins
  /// on a line.
  void (*add_squares)(const void *values, DType dtype, int64_t count, ExactSum &sum);
#define ZERO_FIELD(kernel, Algorithm) UpdateKernel kernel;
  ZERO_UPDATE_KERNELS(ZERO_FIELD)
#undef ZERO_FIELD
  UpdateKernel lamb;
  /// The other passes of lamb (kernels/lamb.h): the moments, and the direction from them and the parameter.
  UpdateKernel lamb_moments;
  void (*lamb_direction)(float *out, const Slots &slots, const Constants &constants);
  /// out = a * b, row-major: out[i][j] = fma(a[i][k], b[k][j], ...) over ascending k, from 0 on. `out` overlaps neither. `workspace`:
  /// kProductWorkspace elements.
  void (*multiply)(float *out, const float *a, const float *b, int64_t rows, int64_t inner, int64_t columns, float *workspace);
  /// As multiply, for b whose product with a is its own transpose bit by bit: the transpose of a, or a itself where that is such a product.
  /// One half is made and mirrored.
  void (*multiply_symmetric)(float *out, const float *a, const float *b, int64_t side, int64_t inner, float *workspace);
  /// values = fma(weight, addend, values * factor).
  void (*combine)(float *values, float factor, const float *addend, float weight, int64_t count);
  /// out = from + weight * (to - from): fma(weight, to - from, from) for weights below 0.5, otherwise fma(weight - 1, to - from, to). `out`
  /// may equal either.
  void (*interpolate)(float *out, const float *from, const float *to, float weight, int64_t count);
};

/// Tables this machine can run, slowest (the plain reference, which defines what is right) first.
std::span<const Table *const> supported();

/// The fastest supported table, or the one that the variable ZERO_KERNEL_TARGET names when it is supported. Decided once.
const Table &active();

/// A default of one algorithm that differs from the key's.
struct HyperDefault {
  int32_t key;
  double value;
};

/// One optimizer algorithm: the row that an engine needs to run it.
struct Algorithm {
  const char *name;
  /// What updates an element, and what that computes with. Both nullptr for matrix algorithms, which have functions of their own.
  UpdateKernel Table::*update;
  Constants (*constants)(const HyperParameters &hyper);
  int state_count;
  int32_t state_slot[kMaxStates];  ///< zero_slot numbers, in the order of Slots::state
  std::span<const int32_t> keys;   ///< hyper-parameter keys (zero_key) it reads
  std::span<const HyperDefault> defaults;
  /// The value that every element of state 0 has before the first step; nullptr = 0, as of all other states.
  double HyperParameters::*initial_state = nullptr;
  bool layerwise = false;  ///< the update of an element depends on norms of its whole tensor: several passes (kernels/lamb.h)
  bool matrix = false;     ///< updates two-dimensional tensors, which one rank must hold whole
};

/// nullptr when no algorithm has that name.
const Algorithm *find_algorithm(std::string_view name);
std::span<const Algorithm> algorithms();

}  // namespace zero::kernels
