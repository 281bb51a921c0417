/// @file values: the numbers that every language computes with.
#pragma once

#include <stdint.h>

/// Writes v(i, series) for i = 0 .. count - 1; bf16 is the upper half of the f32.
void values_fill(void *data, int32_t dtype, int64_t count, int64_t series);
