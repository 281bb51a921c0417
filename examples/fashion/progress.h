/// @file progress: a line that says how far the training is: rewritten in place on a terminal, a new one every few seconds elsewhere.
/// Knows nothing of how training works.
#ifndef FASHION_PROGRESS_H
#define FASHION_PROGRESS_H

#include <stdint.h>

struct progress {
  int on;
  int terminal;
  double begun;
  double shown;
  int64_t images;
};

void progress_begin(struct progress *progress, int on);

/// After each step; `last` forces the line out and ends it.
void progress_step(struct progress *progress, int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss, int64_t images,
                   int last);

#endif
