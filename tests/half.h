/// @file Half: what the compiler calls a float of 16 bits (IEEE binary16).
#pragma once

namespace zero::test {

#if defined(__aarch64__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
using Half = __fp16;  // C++ has no _Float16 there
#else
using Half = _Float16;
#endif

}  // namespace zero::test
