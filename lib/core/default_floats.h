/// @file DefaultFloats: the floating-point environment that numbers are computed in. Knows nothing of which numbers.
#pragma once

#include <cfenv>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace zero {

/// The default environment while it lives: a caller's rounding mode or flushing of subnormals must not change bits. Of the thread that
/// made it, so it must not outlive a task's wait. Compilers do not know that arithmetic depends on it: what is computed meanwhile must
/// come from memory or from a call, and go there.
class DefaultFloats {
 public:
  DefaultFloats(const DefaultFloats &) = delete;
#if defined(__SSE2__)
  // Nothing computes on the x87 unit, whose state takes long to save and set.
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
