/// @file DefaultFloats: the floating-point environment of computations. Knows nothing of their
/// numbers.
#pragma once

#include <cfenv>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace zero {

/// Sets the default environment of the calling thread during its lifetime, so that a caller's
/// rounding mode or flushing of subnormals cannot change bits. It must not outlive a task's wait.
/// Compilers do not know that arithmetic depends on the environment. A computation must therefore
/// read its inputs from memory or a call, and write its results there.
class DefaultFloats {
 public:
  DefaultFloats(const DefaultFloats &) = delete;
#if defined(__SSE2__)
  // The library does not use the x87 unit, whose state takes long to save and set.
  DefaultFloats() {
    _mm_setcsr(_MM_MASK_MASK);
    keep_apart();
  }
  ~DefaultFloats() {
    keep_apart();
    _mm_setcsr(before_);
  }

 private:
  static void keep_apart() { asm volatile("" ::: "memory"); }

  const unsigned before_ = _mm_getcsr();
#else
  DefaultFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloats() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
#endif
};

}  // namespace zero
