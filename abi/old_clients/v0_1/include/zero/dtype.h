/* Element types. */
#ifndef ZERO_DTYPE_H
#define ZERO_DTYPE_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values are stable; gaps are reserved. */
enum zero_dtype {
  ZERO_DTYPE_F32 = 1,
  ZERO_DTYPE_F64 = 2,
  ZERO_DTYPE_F16 = 3,  /* IEEE 754 binary16 */
  ZERO_DTYPE_BF16 = 4, /* upper half of binary32 */
  ZERO_DTYPE_I32 = 20,
  ZERO_DTYPE_I64 = 21,
  ZERO_DTYPE_U8 = 40
};

/*
 * Bytes of one element.
 *   dtype       [in]  a zero_dtype
 *   out_nbytes  [out]
 * Errors: ZERO_E_INVALID_ARGUMENT. Threads: any. Since ZERO_0.1.
 */
ZERO_API int32_t zero_dtype_nbytes(int32_t dtype, int64_t *out_nbytes);

#ifdef __cplusplus
}
#endif

#endif
