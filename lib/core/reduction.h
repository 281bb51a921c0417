/// @file Reduction: the description of one element-wise reduction, and the interface of its
/// implementations, which also copy data that needs no sum. Groups receive a Reducer, so that they
/// know no kernels.
#pragma once

#include "core/dtype.h"
#include "core/side_stream.h"
#include "core/status.h"

#include <cstdint>
#include <memory>

namespace zero {

/// One element-wise reduction over N sources, in the order of the fixed tree (zero/group.h states
/// the arithmetic per dtype).
struct Reduction {
  void *out;                   ///< count elements; may equal any source
  const void *const *sources;  ///< source_count addresses, in rank order
  int64_t source_count;        ///< >= 1
  int64_t count;
  DType dtype;
  ReduceOp op;
  /// sum: the fp32 (fp64 for f64) quotient sum / divisor is stored when divisor != 1. avg: as sum,
  /// and integers divide in 64 bits.
  double divisor;
  /// The dtype of `out`. DType{}: that of the sources. f32 with f16 or bf16 sources: the fp32
  /// results as they are. f16 or bf16 with f32 sources: the fp32 results rounded. If the dtypes
  /// differ, `out` overlaps no source.
  DType out_dtype = DType{};
  /// Bytes of the whole result that this is a part of. A result too large for the caches may bypass
  /// them. 0: treated as small.
  int64_t total_nbytes = 0;
  /// Weight of each source, for sums of f16 and bf16 only; applied in fp32 before the sum. nullptr:
  /// 1.
  const float *weights = nullptr;
};

/// Computes reductions. Callable from several threads at once. On device memory, work may continue
/// after a function has returned; later work on the same memory runs after it.
class Reducer {
 public:
  virtual ~Reducer() = default;
  /// Returns true if every output is finite (always for integers), or if the reducer reports that
  /// later to its creator.
  virtual bool reduce(const Reduction &reduction) const = 0;
  /// Copies a part of a whole of `total_nbytes`. A whole too large for the caches may bypass them.
  virtual void copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const = 0;
  /// Waits until other ranks may read the written memory and write the memory that was read.
  virtual Status settle() const { return {}; }

  /// @name For device memory
  /// @{
  virtual bool on_device() const { return false; }
  /// Maximum number of sources of a reduction.
  virtual int64_t most_sources() const { return INT64_MAX; }
  /// ZERO_E_INVALID_ARGUMENT for memory that cannot be accessed; `argument` is its name.
  virtual Status check_memory(const void *, const char * /*argument*/) const { return {}; }
  /// Later work of this object runs after the work already given to the caller's stream. Only if
  /// on_device(). Errors: ZERO_E_INVALID_ARGUMENT for a stream of another device, ZERO_E_STATE for
  /// one that is captured.
  virtual Status wait_for(void *) const { return {}; }
  /// Opens a stream beside the work of this object. Only if on_device().
  virtual Status open_lane(std::shared_ptr<SideStream> *) const { return {}; }
  /// @}
};

}  // namespace zero
