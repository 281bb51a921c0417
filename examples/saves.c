/// @file saves: a run that saves itself, goes on from its newest save, and stops together with all other ranks when one is asked to.
/// Knows nothing of models and data: where the data goes on is a number.
#include "saves.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"
#include "ranks.h"

const char save_usage[] =
    "  --save DIR           save the run into this folder, at the end and when it is stopped (SIGTERM, SIGINT, SIGUSR1)\n"
    "  --save-every K       and after every K steps\n"
    "  --keep K             keep the K newest saves of this run; default 2; 0: all\n"
    "  --resume             continue from the newest valid save in the folder, if there is one; ranks and stage may differ\n"
    "  --stop-exit N        exit code of a run that was stopped and saved; default 128 + the signal (143 for SIGTERM)\n";

enum { kDefaultKeep = 2, kSignalExit = 128 };

static int whole_number(const char *name, const char *text, int64_t most, int64_t *out) {
  char *end;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (!errno && end != text && !*end && value >= 0 && value <= most) {
    *out = value;
    return 1;
  }
  fprintf(stderr, "%s: --%s %s: expected a whole number from 0 to %" PRId64 "\n", program_invocation_short_name, name, text, most);
  return -1;
}

int save_option(struct save_options *options, const char *name, const char *text) {
  if (strcmp(name, "save-every") == 0) return whole_number(name, text, INT64_C(1) << 40, &options->every);
  if (strcmp(name, "keep") == 0) return whole_number(name, text, INT64_C(1) << 30, &options->keep);
  if (strcmp(name, "stop-exit") == 0) return whole_number(name, text, 255, &options->stop_exit);
  if (strcmp(name, "save") == 0) {
    options->folder = text;
    return 1;
  }
  if (strcmp(name, "resume") != 0) return 0;
  options->resume = 1;
  return 1;
}

int save_options_settle(struct save_options *options) {
  if (options->keep < 0) options->keep = kDefaultKeep;
  if (options->folder && mkdir(options->folder, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "%s: --save %s: %s\n", program_invocation_short_name, options->folder, strerror(errno));
    return -1;
  }
  if (options->folder || (!options->every && !options->resume)) return 0;
  fprintf(stderr, "%s: --%s needs --save DIR\n", program_invocation_short_name, options->resume ? "resume" : "save-every");
  return -1;
}

/// Of one of the ranks of this process: it tells all others.
static _Atomic(zero_optimizer *) asked;
static volatile sig_atomic_t early; /* a signal that came before there was an optimizer */

static void on_signal(int number) {
  zero_optimizer *optimizer = atomic_load(&asked);
  ranks_pass_on(number);
  if (optimizer == NULL || zero_optimizer_request_stop(optimizer, number) != ZERO_OK) early = number;
}

void saves_catch_signals(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
}

static int create_checkpoint(struct saves *s, zero_group *group) {
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  const int status = failed(zero_config_set_i64(config, ZERO_KEY_CHECKPOINT_KEEP, s->options->keep), "set kept saves") ||
                     failed(zero_checkpoint_create(group, config, &s->checkpoint), "zero_checkpoint_create");
  zero_config_release(config);
  return status || failed(zero_checkpoint_add_optimizer(s->checkpoint, "", s->optimizer), "zero_checkpoint_add_optimizer") ? -1 : 0;
}

/// Steps count with those that were skipped: their data is not seen again.
static int read_step(struct saves *s, int64_t *out_step) {
  char text[32];
  if (failed(zero_checkpoint_get_text(s->checkpoint, "next_step", text, sizeof text, NULL), "zero_checkpoint_get_text")) return -1;
  *out_step = strtoll(text, NULL, 10);
  s->saved_at = *out_step;
  return 0;
}

int saves_open(struct saves *s, const struct save_options *options, zero_group *group, zero_optimizer *optimizer, int64_t *out_step) {
  *s = (struct saves){.options = options, .optimizer = optimizer, .saved_at = -1};
  *out_step = -1;
  if (failed(zero_group_rank(group, &s->rank), "zero_group_rank")) return -1;
  atomic_store(&asked, optimizer);
  if (early && failed(zero_optimizer_request_stop(optimizer, early), "zero_optimizer_request_stop")) return -1;
  if (!options->folder) return 0;
  if (create_checkpoint(s, group)) return -1;
  if (!options->resume) return 0;
  const int32_t status = zero_checkpoint_load(s->checkpoint, options->folder, ZERO_PART_ALL, NULL, NULL);
  if (status == ZERO_E_NOT_FOUND) return 0;
  return failed(status, "zero_checkpoint_load") ? -1 : read_step(s, out_step);
}

static double seconds_since(const struct timespec *begin) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - begin->tv_sec) + 1e-9 * (double)(end.tv_nsec - begin->tv_nsec);
}

static int save_now(struct saves *s, int64_t done, double *out_seconds) {
  char text[32];
  struct timespec begin;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  snprintf(text, sizeof text, "%" PRId64, done);
  if (failed(zero_optimizer_sync(s->optimizer, NULL, NULL), "zero_optimizer_sync") ||
      failed(zero_checkpoint_set_text(s->checkpoint, "next_step", text), "zero_checkpoint_set_text") ||
      failed(zero_checkpoint_save(s->checkpoint, s->options->folder, NULL, NULL), "zero_checkpoint_save")) {
    return -1;
  }
  s->saved_at = done;
  *out_seconds = seconds_since(&begin);
  return 0;
}

int saves_after_step(struct saves *s, int64_t done, int last, int64_t stop_reason) {
  const int due = s->options->every > 0 && done % s->options->every == 0;
  double seconds = 0;
  if (s->checkpoint && s->saved_at != done && (due || last || stop_reason) && save_now(s, done, &seconds)) return -1;
  if (!stop_reason || s->rank != 0) return 0;
  if (s->checkpoint) {
    fprintf(stderr, "%s: stopped by signal %" PRId64 " after step %" PRId64 ", and saved in %.2f s (Slurm and Kubernetes grant 30 s)\n",
            program_invocation_short_name, stop_reason, done, seconds);
  } else {
    fprintf(stderr, "%s: stopped by signal %" PRId64 " after step %" PRId64 "; nothing was saved (--save DIR)\n",
            program_invocation_short_name, stop_reason, done);
  }
  return 0;
}

void saves_release(struct saves *s) {
  zero_optimizer *mine = s->optimizer;
  if (mine) atomic_compare_exchange_strong(&asked, &mine, NULL);
  zero_checkpoint_release(s->checkpoint);
}

int saves_exit_code(const struct save_options *options, int64_t stop_reason) {
  if (stop_reason == 0) return EXIT_SUCCESS;
  return options->stop_exit > 0 ? (int)options->stop_exit : kSignalExit + (int)stop_reason;
}
