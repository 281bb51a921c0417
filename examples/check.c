/// @file check: turns a failed libzero call into one line on standard error.
/// Knows nothing of what was called.
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <zero/group.h>

int failed(int32_t status, const char *call) {
  char text[1024];
  if (status == ZERO_OK) return 0;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s: %s: %s: %s\n", program_invocation_short_name, call, zero_status_name(status), text);
  return 1;
}

int launched(void) {
  char variable[64];
  if (failed(zero_group_launcher(variable, sizeof variable, NULL), "zero_group_launcher")) return 1;
  if (*variable == '\0') return 0;
  fprintf(stderr, "%s: its ranks are threads of its own, but a launcher has started it (%s is %s); start it without\n",
          program_invocation_short_name, variable, getenv(variable));
  return 1;
}
