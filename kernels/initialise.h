/// @file First values of parameters by place instead of by order: the same bits however a tensor is cut. Knows no ranks.
///
/// Element i of a tensor takes word i % 4 of the Philox4x64-10 output with counter (i / 4, 0, 0, 0) and key (seed, tensor); normal values
/// take both words of the pair it stands in. u(w) = (w / 2^11 cut) * 2^-53, in [0, 1); everything in fp64, rounded to fp32 once.
///   constant: a
///   uniform:  a + (b - a) * u(w), a and b rounded to fp32 first; what rounds to b becomes the number below it
///   normal:   a + b * z, z = sqrt(-2 ln(1 - u(w0))) * cos(2 pi u(w1)) for the first of a pair, sin for the second
/// Box and Muller, "A note on the generation of random normal deviates", 1958. Its bits are those of the C library's log, cos and sin.
#pragma once

#include <cstdint>

namespace zero::kernels {

enum class Initialiser { constant, uniform, normal };

/// out[0, count) = elements [first_index, first_index + count) of the tensor.
void initialise(float *out, int64_t count, Initialiser kind, double a, double b, uint64_t seed, uint64_t tensor, int64_t first_index);

}  // namespace zero::kernels
