/// @file Precision: the dtypes that a config sets for a parameter's slots, and checks of their
/// combinations. Knows the keys; never memory.
#pragma once

#include "core/config.h"
#include "core/dtype.h"
#include "core/status.h"

#include <zero/config.h>

#include <cstdint>

namespace zero {

/// Dtypes with which parameters may be registered.
inline constexpr Choice kRegisteredDtypes[] = {
    {ZERO_DTYPE_F32, "ZERO_DTYPE_F32"}, {ZERO_DTYPE_F16, "ZERO_DTYPE_F16"}, {ZERO_DTYPE_BF16, "ZERO_DTYPE_BF16"}};

/// The values of zero_master.
enum class Master : int64_t {
  f32 = ZERO_MASTER_F32,
  none = ZERO_MASTER_NONE,
  remainder = ZERO_MASTER_REMAINDER,
};

struct Precision {
  int64_t param = 0;  ///< dtype of storage, a zero_dtype; 0: the parameter's dtype
  int64_t grad = 0;   ///< a zero_dtype; 0: the parameter's dtype
  Master master = Master::f32;
  DType first_moment = DType::f32;
  DType second_moment = DType::f32;
};

/// Reads the keys that are set; the other members of `out` stay unchanged.
void read_precision(const Config &config, Precision *out);

/// Checks that a parameter of `dtype` may have this precision. `name`: for the error text, as
/// quoted_name() returns it.
Status check_precision(const char *name, DType dtype, const Precision &precision);

constexpr DType grad_dtype(DType param, const Precision &precision) {
  return precision.grad == 0 ? param : static_cast<DType>(precision.grad);
}

}  // namespace zero
