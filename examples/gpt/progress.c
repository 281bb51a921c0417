/// @file progress: a line that says how far the training is.
/// Knows nothing of how training works.
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double progress_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(struct progress *p, int on) { *p = (struct progress){.on = on, .terminal = isatty(STDERR_FILENO), .shown = progress_now()}; }

void progress_pause(struct progress *p, double begun) { p->begun += progress_now() - begun; }

double progress_rate(const struct progress *p) {
  const double taken = progress_now() - p->begun;
  return p->tokens > 0 && taken > 0 ? (double)p->tokens / taken : 0;
}

void progress_step(struct progress *p, int64_t step, int64_t steps, double loss, int64_t tokens) {
  const double now = progress_now();
  const double pause = p->terminal ? 0.1 : 5;
  if (step == 1) {
    p->begun = now;
  } else {
    p->tokens += tokens;
  }
  if (!p->on || (step < steps && now - p->shown < pause)) return;
  p->shown = now;
  const double rate = progress_rate(p);
  const long left = rate > 0 ? (long)((double)((steps - step) * tokens) / rate) : 0;
  fprintf(stderr, "%sstep %lld of %lld  %3lld %%  loss %.4f  %.0f tokens/s  %ld:%02ld left%s", p->terminal ? "\r" : "", (long long)step,
          (long long)steps, (long long)(100 * step / steps), loss, rate, left / 60, left % 60, p->terminal ? "   " : "\n");
  if (step == steps && p->terminal) fputc('\n', stderr);
  fflush(stderr);
}
