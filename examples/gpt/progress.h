/// @file progress: a line that says how far the training is.
/// Knows nothing of how training works.
#ifndef GPT_PROGRESS_H
#define GPT_PROGRESS_H

#include <stdint.h>

struct progress {
  int on;
  int terminal;
  double begun; /* after the first step, which also makes what later ones use */
  double shown;
  int64_t tokens; /* since begun */
};

void progress_begin(struct progress *progress, int on);

/// After step `step`, counted from 1, of `steps`, which took `tokens`.
void progress_step(struct progress *progress, int64_t step, int64_t steps, double loss, int64_t tokens);

/// Something else took from `begun` until now.
void progress_pause(struct progress *progress, double begun);
double progress_now(void);

/// Tokens per second since the first step; 0 after a single one.
double progress_rate(const struct progress *progress);

#endif
