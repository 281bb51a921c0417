/// @file values: v(i, s) in every element type that scenarios use.
#include "values.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/dtype.h>

static int64_t step_of(int64_t i, int64_t series) { return (7 * i + 13 * series) % 97; }

static uint16_t upper_half(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static void write_element(void *data, int32_t dtype, int64_t i, int64_t k) {
  const double value = (double)(k - 48) / 16;
  switch (dtype) {
    case ZERO_DTYPE_F32:
      ((float *)data)[i] = (float)value;
      return;
    case ZERO_DTYPE_F64:
      ((double *)data)[i] = value;
      return;
    case ZERO_DTYPE_BF16:
      ((uint16_t *)data)[i] = upper_half((float)value);
      return;
    case ZERO_DTYPE_I32:
      ((int32_t *)data)[i] = (int32_t)(k - 48);
      return;
    case ZERO_DTYPE_I64:
      ((int64_t *)data)[i] = k - 48;
      return;
    case ZERO_DTYPE_U8:
      ((uint8_t *)data)[i] = (uint8_t)k;
      return;
  }
  fprintf(stderr, "conformance: no values of dtype %d\n", dtype);
  exit(EXIT_FAILURE);
}

void values_fill(void *data, int32_t dtype, int64_t count, int64_t series) {
  for (int64_t i = 0; i < count; i++) write_element(data, dtype, i, step_of(i, series));
}
