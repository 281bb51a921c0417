/// @file ranks: runs one body per rank, as threads of this process or as processes of their own.
/// Knows nothing of what a rank does; libzero must not have been called before, because its state does not survive a fork.
#ifndef EXAMPLES_RANKS_H
#define EXAMPLES_RANKS_H

#include <stdint.h>

/// What a rank does. Returns 0, or anything else after a line on standard error.
typedef int (*rank_body)(void *context, int64_t rank);

/// Each runs body(context, 0) .. body(context, count - 1) at the same time. Returns 0 when all returned 0; ranks that failed are named on
/// standard error.
int ranks_run_threads(int64_t count, rank_body body, void *context);
int ranks_run_processes(int64_t count, rank_body body, void *context);

/// In the process that has started ranks as processes: sends them a signal. For signal handlers.
void ranks_pass_on(int number);

#endif
