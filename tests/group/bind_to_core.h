/// @file Binding threads to cores.
#pragma once

#include "core/thread_pool.h"

#include <sched.h>

#include <cstdint>

namespace zero::test {

/// Lets the calling thread use one core of those that it may use now, counted from 0 and round again. Returns false where that is refused.
inline bool bind_to_core(int64_t index) {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return false;
  index %= usable_cores();
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &usable) && index-- == 0) CPU_SET(core, &one);
  }
  return ::sched_setaffinity(0, sizeof one, &one) == 0;
}

}  // namespace zero::test
