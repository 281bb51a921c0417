/// @file What a benchmark does with an error: it says which and ends. Knows no library beyond its public functions.
#pragma once

#include <zero/zero.h>

#include <errno.h>

#include <cstdio>
#include <cstdlib>

namespace zero::bench {

[[noreturn]] inline void fail(const char *what, const char *why) {
  std::fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
  std::exit(1);
}

inline void must(int32_t status) {
  if (status == ZERO_OK) return;
  char text[1024];
  zero_last_error_copy(text, sizeof text);
  fail(zero_status_name(status), text);
}

}  // namespace zero::bench
