/// @file zero/dtype.h.
#include "api/barrier.h"
#include "api/checks.h"

using namespace zero;

int32_t zero_dtype_nbytes(int32_t dtype, int64_t *out_nbytes) {
  return api::guarded([&]() -> Status {
    ZERO_CHECK(dtype_nbytes(static_cast<DType>(dtype)) != 0, ZERO_E_INVALID_ARGUMENT, "dtype is %d, which is no zero_dtype", dtype);
    ZERO_TRY(api::check_pointer(out_nbytes, "out_nbytes"));
    *out_nbytes = dtype_nbytes(static_cast<DType>(dtype));
    return {};
  });
}
