/// @file Random numbers by place instead of by order. Philox4x32-10 is counter-based, so the cut of
/// the work changes nothing.
///
/// The number of element i of slot s in step t under a seed is word i % 4 of the Philox4x32-10
/// output with
/// @verbatim
///   counter word 0: bits 0..31 of i / 4      word 1: bits 32..63 of i / 4
///   counter word 2: bits 0..31 of t          word 3: s + 256 * (bits 32..55 of t), s below 256
///   key word 0: bits 0..31 of the seed       word 1: bits 32..63 of the seed
/// @endverbatim
/// A bf16 slot needs 16 bits per element: element i takes a half of the number of element i / 2,
/// the lower half if i is even.
///
/// Stochastic rounding adds a number uniform in [0, 1) to |x| / unit and truncates, where `unit` is
/// the spacing of the format at x. r is the number of the element:
/// @verbatim
///   bf16:              r is added to the 16 bits that will be cut
///   f16, normal:       the upper 13 bits of r are added to the 13 bits that will be cut
///   f16, below 2^-14:  one unit of 2^-24 more if floor(r / 2^8) * 2^-24 < the fractional part
/// @endverbatim
/// So the mean is exactly x, except for f16 below 2^-24, where the probability is a multiple of
/// 2^-24. Values of the format are not changed. Values from the format's largest on become the
/// largest or infinity, by the same rule. NaN becomes the one NaN of the format.
///
/// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

/// The slot numbers s: the parameter, then the states.
inline constexpr uint32_t kParamSlot = 0;
inline constexpr uint32_t kFirstStateSlot = 1;

/// Counter words 2 and 3.
constexpr uint32_t counter_word2(const RandomKey &key) { return static_cast<uint32_t>(key.step); }
constexpr uint32_t counter_word3(const RandomKey &key) { return (key.slot & 0xff) | static_cast<uint32_t>(key.step >> 32) << 8; }

}  // namespace zero::kernels
