/// @file Reduction: the description of one element-wise reduction, and the interface of whoever computes it and copies what needs no sum.
/// Groups are given a Reducer so that they need not know kernels.
#pragma once

#include "core/dtype.h"
#include "core/side_stream.h"
#include "core/status.h"

#include <cstdint>
#include <memory>

namespace zero {

/// One element-wise reduction over N sources, in the order of the fixed tree (zero/group.h states the arithmetic per dtype).
struct Reduction {
  void *out;                   ///< count elements; may equal any source
  const void *const *sources;  ///< source_count addresses, in rank order
  int64_t source_count;        ///< >= 1
  int64_t count;
  DType dtype;
  ReduceOp op;
  /// sum: the fp32 (fp64 for f64) quotient sum / divisor is stored when divisor != 1. avg: as sum, and integers divide in 64 bits.
  double divisor;
  /// What is stored: DType{} = the sources' dtype; f32 for f16 and bf16 sources = the fp32 results as they are; f16 or bf16 for f32 sources
  /// = the fp32 results rounded to it. Where the dtypes differ, `out` overlaps no source.
  DType out_dtype = DType{};
  /// Bytes of the whole result that this is a part of; what caches would not hold until it is read may go past them. 0: do as if it were
  /// small.
  int64_t total_nbytes = 0;
  /// By source, for sums of f16 and bf16 only: what it is multiplied by in fp32 before the sum. nullptr: 1.
  const float *weights = nullptr;
};

/// Computes reductions. Callable from several threads at once. Where memory is a device's, work may go on when a function has returned;
/// later work on the same memory comes after it.
class Reducer {
 public:
  virtual ~Reducer() = default;
  /// True when every output is finite (always true for integers), or when that is told later to whoever made the reducer.
  virtual bool reduce(const Reduction &reduction) const = 0;
  /// Copies a part of a whole of `total_nbytes`; a whole that caches would not hold until it is read may go past them.
  virtual void copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const = 0;
  /// Waits until other ranks may read what was written, and write what was read.
  virtual Status settle() const { return {}; }

  /// @name Memory of a device
  /// @{
  virtual bool on_device() const { return false; }
  /// Most sources of a reduction.
  virtual int64_t most_sources() const { return INT64_MAX; }
  /// ZERO_E_INVALID_ARGUMENT for memory that cannot be reached; `argument` is its name.
  virtual Status check_memory(const void *, const char * /*argument*/) const { return {}; }
  /// What is asked for from now on comes after what the caller's stream was given. Only where on_device(). Errors:
  /// ZERO_E_INVALID_ARGUMENT for a stream of another device, ZERO_E_STATE for one that is captured.
  virtual Status wait_for(void *) const { return {}; }
  /// A stream beside the work of this object. Only where on_device().
  virtual Status open_lane(std::shared_ptr<SideStream> *) const { return {}; }
  /// @}
};

}  // namespace zero
