/// @file One fp32 element kept as a bf16 and the 16 bits that it lacks.
///
/// @verbatim
///   M = the bits of the fp32 value (NaN in its one form), all modulo 2^32
///   upper = (M + 2^15) >> 16, lower = M mod 2^16
///   back: M = upper * 2^16 + lower as a signed number
/// @endverbatim
///
/// Every M is restored: M - upper * 2^16 is in [-2^15, 2^15), and lower is that number modulo 2^16.
/// `upper` is the value rounded to the nearest bf16, ties away from zero. With ties to even, both
/// neighbours of a tie could have the same upper and lower half.
#pragma once

#include "kernels/reference/float_bits.h"

namespace zero::kernels::reference {

ZERO_ELEMENT float joined(uint16_t upper, uint16_t lower) {
  const auto difference = static_cast<uint32_t>(static_cast<int32_t>(static_cast<int16_t>(lower)));
  return std::bit_cast<float>((static_cast<uint32_t>(upper) << 16) + difference);
}

struct Halves {
  uint16_t upper, lower;
};

ZERO_ELEMENT Halves halves_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(canonical(value));
  return {static_cast<uint16_t>((bits + 0x8000) >> 16), static_cast<uint16_t>(bits)};
}

}  // namespace zero::kernels::reference
