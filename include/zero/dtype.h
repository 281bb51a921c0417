/**
 * @file
 * Element types.
 *
 * @code
 * int64_t nbytes;
 * zero_dtype_nbytes(ZERO_DTYPE_BF16, &nbytes);                        // 2
 * void *data = malloc((size_t)(count * nbytes));
 * zero_group_broadcast(group, data, count, ZERO_DTYPE_BF16, 0, NULL);
 * @endcode
 */
#ifndef ZERO_DTYPE_H
#define ZERO_DTYPE_H

#include <zero/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Element types. Values are stable; gaps are reserved. */
enum zero_dtype {
  ZERO_DTYPE_F32 = 1,  /**< IEEE 754 binary32. */
  ZERO_DTYPE_F64 = 2,  /**< IEEE 754 binary64. */
  ZERO_DTYPE_F16 = 3,  /**< IEEE 754 binary16. */
  ZERO_DTYPE_BF16 = 4, /**< The upper half of binary32. */
  ZERO_DTYPE_I32 = 20, /**< Signed integer of 32 bits. */
  ZERO_DTYPE_I64 = 21, /**< Signed integer of 64 bits. */
  ZERO_DTYPE_U8 = 40,  /**< Unsigned integer of 8 bits. */

  /* Only in slots of an optimizer (optimizer.h). Collectives and buffers do not take these. */

  ZERO_DTYPE_U16 = 41, /**< The 16 bits that complete a bf16 parameter to its fp32 master. */
  /** Sign, 4 exponent bits, 3 mantissa bits; with one fp32 scale per 256 elements. */
  ZERO_DTYPE_F8_E4M3 = 50,
  /** No sign, 5 exponent bits, 3 mantissa bits; with one fp32 scale per 256 elements. */
  ZERO_DTYPE_F8_UE5M3 = 51
};

/**
 * Returns the bytes of one element.
 *
 * @param[in]  dtype       A zero_dtype.
 * @param[out] out_nbytes  Bytes of one element.
 * @return ZERO_OK or ZERO_E_INVALID_ARGUMENT. Threads: any.
 * @since ZERO_0.1
 */
ZERO_API int32_t zero_dtype_nbytes(int32_t dtype, int64_t *out_nbytes);

#ifdef __cplusplus
}
#endif

#endif
