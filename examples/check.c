/// @file check: turns a failed libzero call into one line on standard error.
/// Knows nothing of what was called.
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <zero/status.h>

int failed(int32_t status, const char *call) {
  char text[1024];
  if (status == ZERO_OK) return 0;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s: %s: %s: %s\n", program_invocation_short_name, call, zero_status_name(status), text);
  return 1;
}
