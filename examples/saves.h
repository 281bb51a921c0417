/// @file saves: a run that saves itself, goes on from its newest save, and stops together with all other ranks when one is asked to.
/// Knows nothing of models and data: where the data goes on is a number.
#ifndef EXAMPLES_SAVES_H
#define EXAMPLES_SAVES_H

#include <stdint.h>
#include <zero/zero.h>

struct save_options {
  const char *folder; /* NULL: nothing is saved */
  int64_t every;      /* steps; 0: only at the end, or when the run is stopped */
  int64_t keep;       /* newest saves; 0: all */
  int resume;
  int64_t stop_exit; /* the program's exit code after a stop; 0: 128 + the signal */
};

extern const char save_usage[]; /* lines of a usage text */

/// One option without its dashes: 1 when it is one of these and was taken, 0 for another, -1 after a line on standard error.
int save_option(struct save_options *options, const char *name, const char *text);

/// 0, or -1 after a line on standard error.
int save_options_settle(struct save_options *options);

struct saves {
  const struct save_options *options;
  zero_optimizer *optimizer;
  zero_checkpoint *checkpoint; /* NULL: nothing is saved */
  int64_t rank;
  int64_t saved_at; /* step of the newest save; -1: none */
};

/// SIGTERM, SIGINT and SIGUSR1 ask for a stop from now on. Before ranks are started.
void saves_catch_signals(void);

/// Collectives over the ranks of the optimizer; -1 after a line on standard error, otherwise 0.

/// After seal. With --resume, and where there is a save, the optimizer runs, and *out_step is the step that comes next; otherwise -1.
int saves_open(struct saves *saves, const struct save_options *options, zero_group *group, zero_optimizer *optimizer, int64_t *out_step);

/// After `done` steps, with the stop_reason of the newest: saves where it is time. `last`: no step follows.
int saves_after_step(struct saves *saves, int64_t done, int last, int64_t stop_reason);

/// Also after a failure.
void saves_release(struct saves *saves);

/// The exit code of a program that ended well, stopped by `stop_reason` (0: not at all).
int saves_exit_code(const struct save_options *options, int64_t stop_reason);

#endif
