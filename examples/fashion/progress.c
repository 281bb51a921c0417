/// @file progress: a line that says how far the training is.
/// Knows nothing of how training works.
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(struct progress *progress, int on) {
  const double now = seconds();
  *progress = (struct progress){.on = on, .terminal = isatty(STDERR_FILENO), .begun = now, .shown = now};
}

void progress_step(struct progress *progress, int64_t epoch, int64_t epochs, int64_t step, int64_t steps, double loss, int64_t images,
                   int last) {
  progress->images += images;
  if (!progress->on) return;
  const double now = seconds();
  const double pause = progress->terminal ? 0.1 : 3;
  if (!last && now - progress->shown < pause) return;
  progress->shown = now;
  fprintf(stderr, "%sepoch %lld/%lld  step %lld/%lld  loss %.4f  %.0f images/s%s", progress->terminal ? "\r" : "", (long long)epoch,
          (long long)epochs, (long long)step, (long long)steps, loss, (double)progress->images / (now - progress->begun),
          progress->terminal ? "   " : "\n");
  if (last && progress->terminal) fputc('\n', stderr);
  fflush(stderr);
}
