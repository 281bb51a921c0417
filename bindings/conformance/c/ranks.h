/// @file ranks: runs a scenario on the ranks of a local group, which are threads of this program.
#pragma once

#include <stdint.h>
#include <zero/group.h>

#include "text.h"

/// One rank of a scenario.
struct rank {
  int64_t id, size;
  zero_group *group; /* released after all ranks have ended; NULL when the rank released it itself */
  const void *context;
  struct text text; /* what this rank has to say */
};

typedef void (*rank_body)(struct rank *self);

/// Runs `body` on `size` ranks of a new group, then prints the scenario's line: what each rank had to say, in the order of ranks.
void ranks_run(const char *scenario, int64_t size, rank_body body, const void *context);
