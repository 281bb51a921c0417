/// @file Random numbers by place instead of by order: Philox4x32-10, counter-based, so that how work is cut changes nothing.
///
/// The number of element i of slot s in step t under a seed is word i % 4 of the Philox4x32-10 output with
///   counter word 0: bits 0..31 of i / 4      word 1: bits 32..63 of i / 4
///   counter word 2: bits 0..31 of t          word 3: s + 256 * (bits 32..55 of t), s below 256
///   key word 0: bits 0..31 of the seed       word 1: bits 32..63 of the seed
/// For slots of bf16, which need 16 bits, it is a half of the number of element i / 2: the lower one where i is even.
///
/// Stochastic rounding to a format adds a number that is even in [0, 1) to |x| / unit, where `unit` is the distance of the format's
/// neighbours of x, and cuts what is behind the point. r is the number of the element:
///   bf16:              r is added to the 16 bits that will be cut
///   f16, normal:       the upper 13 bits of r are added to the 13 bits that will be cut
///   f16, below 2^-14:  one unit of 2^-24 more when (r / 2^8 cut) * 2^-24 < the part behind the point
/// So the mean is that of x: exactly, but for f16 below 2^-24, where the chance is a multiple of 2^-24. Values of the format stay as they
/// are. Values from the largest of the format on become it or infinity, by the same rule; NaN becomes the one NaN of the format.
///
/// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
#pragma once

#include "kernels/kernels.h"

namespace zero::kernels {

/// Slots, of which states come last.
inline constexpr uint32_t kParamSlot = 0;
inline constexpr uint32_t kFirstStateSlot = 1;

/// Counter words 2 and 3.
constexpr uint32_t counter_word2(const RandomKey &key) { return static_cast<uint32_t>(key.step); }
constexpr uint32_t counter_word3(const RandomKey &key) { return (key.slot & 0xff) | static_cast<uint32_t>(key.step >> 32) << 8; }

}  // namespace zero::kernels
