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
  ZERO_DTYPE_U8 = 40,

  /* Only in slots of an optimizer (zero/optimizer.h); collectives and buffers do not take them. */
  ZERO_DTYPE_U16 = 41,      /* what a bf16 parameter lacks of its fp32 master */
  ZERO_DTYPE_F8_E4M3 = 50,  /* sign, 4 exponent bits, 3 mantissa bits; with one fp32 scale per 256 elements */
  ZERO_DTYPE_F8_UE5M3 = 51  /* no sign, 5 exponent bits, 3 mantissa bits; with one fp32 scale per 256 elements */
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
