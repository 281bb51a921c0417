/// @file Precision: the dtypes that a parameter's slots were asked to have, and which go together. Knows the keys; never memory.
#pragma once

#include "core/config.h"
#include "core/dtype.h"
#include "core/status.h"

#include <zero/config.h>

#include <cstdint>

namespace zero {

/// Of parameters, as they are registered.
inline constexpr Choice kRegisteredDtypes[] = {
    {ZERO_DTYPE_F32, "ZERO_DTYPE_F32"}, {ZERO_DTYPE_F16, "ZERO_DTYPE_F16"}, {ZERO_DTYPE_BF16, "ZERO_DTYPE_BF16"}};

/// Numbers of zero_master.
enum class Master : int64_t {
  f32 = ZERO_MASTER_F32,
  none = ZERO_MASTER_NONE,
  remainder = ZERO_MASTER_REMAINDER,
};

struct Precision {
  int64_t param = 0;  ///< of storage: a zero_dtype; 0: that of the parameter
  int64_t grad = 0;   ///< a zero_dtype; 0: that of the parameter
  Master master = Master::f32;
  DType first_moment = DType::f32;
  DType second_moment = DType::f32;
};

/// Reads the keys that are set; the others keep what `out` holds.
void read_precision(const Config &config, Precision *out);

/// Which dtypes a parameter of `dtype` may have with it. `name` is for the text, as quoted_name has it.
Status check_precision(const char *name, DType dtype, const Precision &precision);

constexpr DType grad_dtype(DType param, const Precision &precision) {
  return precision.grad == 0 ? param : static_cast<DType>(precision.grad);
}

}  // namespace zero
