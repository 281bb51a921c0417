/// @file check: ends the program where no scenario can go on.
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <zero/status.h>

void must(int32_t status) {
  char text[1024];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s: %s\n", zero_status_name(status), text);
  exit(EXIT_FAILURE);
}
