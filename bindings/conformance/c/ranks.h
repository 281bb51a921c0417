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

/// Runs `body` on `size` ranks of a new group, and adds what each rank had to say to the line, in the order of ranks.
void ranks_add(struct text *line, int64_t size, rank_body body, const void *context);

/// As ranks_add, and prints the scenario's line.
void ranks_run(const char *scenario, int64_t size, rank_body body, const void *context);
