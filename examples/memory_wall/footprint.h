/// @file footprint: the memory of all ranks together: their proportional set sizes, in which a page shared by n processes counts 1/n in
/// each. Knows nothing of what the ranks do.
#ifndef MEMORY_WALL_FOOTPRINT_H
#define MEMORY_WALL_FOOTPRINT_H

#include <stdint.h>
#include <sys/types.h>

/// Bytes; written by the process that started the ranks, read by the ranks.
struct footprint {
  _Atomic int64_t now;
  _Atomic int64_t peak;
};

/// Before the ranks are started. NULL after a line on standard error.
struct footprint *footprint_create(void);
void footprint_release(struct footprint *footprint);

/// Adds up the ranks that still run.
void footprint_sample(struct footprint *footprint, const pid_t *pids, int64_t count);

#endif
