/// @file zero/dtype.h.
#include "api/barrier.h"
#include "api/checks.h"
#include "core/choice.h"

using namespace zero;

int32_t zero_dtype_nbytes(int32_t dtype, int64_t *out_nbytes) {
  return api::guarded([&]() -> Status {
    ZERO_TRY(check_choice(kDtypes, dtype, "dtype"));
    ZERO_TRY(api::check_pointer(out_nbytes, "out_nbytes"));
    *out_nbytes = dtype_nbytes(static_cast<DType>(dtype));
    return {};
  });
}
