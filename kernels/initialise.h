/// @file Initial values of parameters, derived from the place of an element instead of the order of
/// calls. The bits are the same however a tensor is cut. Knows no ranks.
///
/// Element i of a tensor takes word i % 4 of the Philox4x64-10 output with counter (i / 4, 0, 0, 0)
/// and key (seed, tensor). Normal values take both words of the pair that holds the element's word.
///
/// @verbatim
///   u(w) = floor(w / 2^11) * 2^-53, in [0, 1); everything in fp64, rounded to fp32 once
///   constant: a
///   uniform:  a + (b - a) * u(w), a and b rounded to fp32 first;
///             a result of b becomes the number below b
///   normal:   a + b * z, z = sqrt(-2 ln(1 - u(w0))) * cos(2 pi u(w1)) for the first of a pair,
///             sin for the second
/// @endverbatim
///
/// Box and Muller, "A note on the generation of random normal deviates", 1958. The bits depend on
/// the C library's log, cos and sin.
#pragma once

#include <cstdint>

namespace zero::kernels {

enum class Initialiser { constant, uniform, normal };

/// out[0, count) = elements [first_index, first_index + count) of the tensor.
void initialise(float *out, int64_t count, Initialiser kind, double a, double b, uint64_t seed, uint64_t tensor, int64_t first_index);

}  // namespace zero::kernels
