/// @file Results: reports of an optimizer about views, slots, memory and times. Knows neither how
/// they are found nor the structs of the ABI.
#pragma once

#include "core/dtype.h"

#include <cstdint>

namespace zero {

/// A contiguous piece of a tensor that this rank updates.
struct View {
  int64_t param;
  int64_t offset;  ///< first element within the tensor
  int64_t count;
  void *data;
};

/// One slot of a parameter.
struct SlotInfo {
  int32_t number;
  DType dtype;
  int64_t count;  ///< entries
};

/// Bytes of one category. `formula_nbytes`: kept by the stage until release. `constant_nbytes`: the
/// most in steady use beyond that.
struct MemoryUse {
  int64_t now_nbytes;
  int64_t peak_nbytes;
  int64_t formula_nbytes;
  int64_t constant_nbytes;
};

/// Time and stalls since seal.
struct StepTimes {
  int64_t step_count;
  int64_t reduce_ns;
  int64_t apply_ns;
  int64_t gather_ns;
  int64_t stalled_nbytes;
  int64_t pool_grow_count;
  bool overlap_active;
};

}  // namespace zero
