/// @file The commands of `zero ckpt`.
#include "zero_ckpt.h"

#include <zero/zero.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { kGood = 0, kDamaged = 1, kUsage = 2, kNothing = 3, kSystem = 4 };

static const char usage[] =
    "usage: zero ckpt list FOLDER [--json]             all saves of a folder, newest first\n"
    "       zero ckpt inspect PATH [--json]            describes a save\n"
    "       zero ckpt verify PATH                      reads everything and checks it\n"
    "       zero ckpt diff PATH PATH [--json]          lists the differences between two saves\n"
    "       zero ckpt export PATH TO                   parameters as plain safetensors: a file, or a folder\n"
    "       zero ckpt prune FOLDER --keep K [--yes]    saves beyond the K newest of each run; removes them with --yes\n"
    "PATH is a save, or a folder of saves; then the newest valid save is taken.\n"
    "Exit code: 0 good, 1 damaged or different, 2 usage, 3 nothing found, 4 the system refused something.\n";

struct arguments {
  const char *paths[2];
  int path_count;
  int64_t keep;
  bool json;
  bool yes;
};

static int code_of(int32_t status) {
  if (status == ZERO_OK) return kGood;
  if (status == ZERO_E_CHECKPOINT) return kDamaged;
  if (status == ZERO_E_NOT_FOUND) return kNothing;
  return status == ZERO_E_INVALID_ARGUMENT || status == ZERO_E_STATE ? kUsage : kSystem;
}

/* Prints the last error; returns the exit code for it. */
static int fail(void) {
  char text[4096];
  const int32_t status = zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "zero ckpt: %s: %s\n", zero_status_name(status), text);
  return code_of(status);
}

static int32_t form_of(const struct arguments *given) { return given->json ? ZERO_TEXT_JSON : ZERO_TEXT_PLAIN; }

/* A text of the library, of whatever length; NULL after an error, which was printed. */
struct text_source {
  int32_t (*make)(const void *object, const struct arguments *given, char *out, int64_t out_nbytes, int64_t *out_needed);
  const void *object;
};

/* Folders may gain saves between two calls: asks again until the text fits. */
static char *text_of(struct text_source source, const struct arguments *given, int *code) {
  char *text = NULL;
  int64_t nbytes = 0;
  for (;;) {
    int64_t needed = 0;
    *code = source.make(source.object, given, text, nbytes, &needed) == ZERO_OK ? kGood : fail();
    if (*code == kGood && needed <= nbytes) return text;
    free(text);
    if (*code != kGood) return NULL;
    nbytes = needed;
    text = malloc((size_t)nbytes);
    if (text == NULL) {
      fprintf(stderr, "zero ckpt: no memory for a text of %" PRId64 " bytes\n", nbytes);
      *code = kSystem;
      return NULL;
    }
  }
}

static int print_text(struct text_source source, const struct arguments *given) {
  int code = kGood;
  char *text = text_of(source, given, &code);
  if (text != NULL) fputs(text, stdout);
  free(text);
  return code;
}

static int32_t make_list(const void *folder, const struct arguments *given, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return zero_save_list(folder, form_of(given), out, out_nbytes, out_needed);
}
static int32_t make_description(const void *save, const struct arguments *given, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return zero_save_describe(save, form_of(given), out, out_nbytes, out_needed);
}
static int32_t make_differences(const void *save, const struct arguments *given, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return zero_save_differences(save, form_of(given), out, out_nbytes, out_needed);
}
static int32_t make_prunable(const void *folder, const struct arguments *given, char *out, int64_t out_nbytes, int64_t *out_needed) {
  return zero_save_prunable(folder, given->keep, out, out_nbytes, out_needed);
}

/* Shows on a terminal how far a save has come, until it is told to stop. */
struct bar {
  const zero_save *save;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool shown;
  bool ends;
};

static void draw(const zero_save *save) {
  int64_t done = 0;
  int64_t total = 0;
  if (zero_save_progress(save, &done, &total) != ZERO_OK || total <= 0) return;
  const int percent = (int)(done >= total ? 100 : (double)done / (double)total * 100);
  fprintf(stderr, "\r[%-40.*s] %3d %%  %" PRId64 " of %" PRId64 " MiB", percent * 40 / 100, "########################################", percent,
          done >> 20, total >> 20);
  fflush(stderr);
}

static void *show(void *argument) {
  struct bar *bar = argument;
  pthread_mutex_lock(&bar->mutex);
  while (!bar->ends) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 200 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&bar->changed, &bar->mutex, &until);
    if (!bar->ends) draw(bar->save);
  }
  pthread_mutex_unlock(&bar->mutex);
  fprintf(stderr, "\r%-78s\r", "");
  return NULL;
}

static void begin_bar(struct bar *bar, const zero_save *save) {
  bar->save = save;
  bar->ends = false;
  bar->shown = false;
  if (!isatty(STDERR_FILENO)) return;
  pthread_mutex_init(&bar->mutex, NULL);
  pthread_cond_init(&bar->changed, NULL);
  bar->shown = pthread_create(&bar->thread, NULL, show, bar) == 0;
}

static void end_bar(struct bar *bar) {
  if (!bar->shown) return;
  pthread_mutex_lock(&bar->mutex);
  bar->ends = true;
  pthread_cond_signal(&bar->changed);
  pthread_mutex_unlock(&bar->mutex);
  pthread_join(bar->thread, NULL);
}

static int list(const struct arguments *given) { return print_text((struct text_source){make_list, given->paths[0]}, given); }

static int inspect(const struct arguments *given) {
  zero_save *save = NULL;
  if (zero_save_open(given->paths[0], &save) != ZERO_OK) return fail();
  const int code = print_text((struct text_source){make_description, save}, given);
  zero_save_release(save);
  return code;
}

static int verify(const struct arguments *given) {
  zero_save *save = NULL;
  if (zero_save_open(given->paths[0], &save) != ZERO_OK) return fail();
  struct bar bar;
  begin_bar(&bar, save);
  const int32_t status = zero_save_verify(save);
  end_bar(&bar);
  int64_t done = 0;
  int64_t total = 0;
  int code = status == ZERO_OK ? kGood : fail();
  if (code == kGood && zero_save_progress(save, &done, &total) == ZERO_OK) printf("good: %" PRId64 " bytes checked\n", done);
  zero_save_release(save);
  return code;
}

static int diff(const struct arguments *given) {
  zero_save *first = NULL;
  zero_save *second = NULL;
  int64_t count = 0;
  int code = zero_save_open(given->paths[0], &first) == ZERO_OK && zero_save_open(given->paths[1], &second) == ZERO_OK ? kGood : fail();
  if (code == kGood) {
    struct bar bar;
    begin_bar(&bar, first);
    const int32_t status = zero_save_compare(first, second, &count);
    end_bar(&bar);
    code = status == ZERO_OK ? print_text((struct text_source){make_differences, first}, given) : fail();
  }
  zero_save_release(second);
  zero_save_release(first);
  return code == kGood && count > 0 ? kDamaged : code;
}

static int export_to(const struct arguments *given) {
  zero_save *save = NULL;
  if (zero_save_open(given->paths[0], &save) != ZERO_OK) return fail();
  struct bar bar;
  begin_bar(&bar, save);
  const int32_t status = zero_save_export(save, given->paths[1]);
  end_bar(&bar);
  const int code = status == ZERO_OK ? kGood : fail();
  zero_save_release(save);
  return code;
}

/* Prints each name before it removes it. */
static int prune(const struct arguments *given) {
  int code = kGood;
  char *names = text_of((struct text_source){make_prunable, given->paths[0]}, given, &code);
  if (names == NULL) return code;
  for (char *name = strtok(names, "\n"); name != NULL && code == kGood; name = strtok(NULL, "\n")) {
    printf("%s %s\n", given->yes ? "removing" : "would remove", name);
    fflush(stdout);
    if (given->yes && zero_save_remove(given->paths[0], name) != ZERO_OK) code = fail();
  }
  free(names);
  return code;
}

struct command {
  const char *name;
  int (*run)(const struct arguments *given);
  int paths;
  bool json;
  bool prunes;
};

static const struct command commands[] = {{"list", list, 1, true, false},   {"inspect", inspect, 1, true, false},
                                          {"verify", verify, 1, false, false}, {"diff", diff, 2, true, false},
                                          {"export", export_to, 2, false, false}, {"prune", prune, 1, false, true}};

static int misused(const char *text, const char *argument) {
  fprintf(stderr, "zero ckpt: %s '%s'; zero ckpt --help lists the commands\n", text, argument);
  return kUsage;
}

/* One argument; `next` is the one behind it, or NULL. Returns how many were taken, 0 for one that does not belong there. */
static int take(struct arguments *given, const struct command *command, const char *argument, const char *next) {
  char *end = NULL;
  if (strcmp(argument, "--json") == 0 && command->json) {
    given->json = true;
    return 1;
  }
  if (strcmp(argument, "--yes") == 0 && command->prunes) {
    given->yes = true;
    return 1;
  }
  if (strcmp(argument, "--keep") == 0 && command->prunes && next != NULL) {
    given->keep = strtoll(next, &end, 10);
    return end != next && *end == '\0' && given->keep >= 1 ? 2 : 0;
  }
  if (argument[0] == '-' || given->path_count == command->paths) return 0;
  given->paths[given->path_count++] = argument;
  return 1;
}

int zero_ckpt(int argc, char **argv) {
  if (argc >= 1 && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
    fputs(usage, stdout);
    return kGood;
  }
  if (argc < 1) return misused("no command given after", "ckpt");
  const struct command *command = NULL;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
    if (strcmp(argv[0], commands[i].name) == 0) command = &commands[i];
  }
  if (command == NULL) return misused("unknown command", argv[0]);
  struct arguments given = {{NULL, NULL}, 0, 0, false, false};
  for (int i = 1; i < argc;) {
    const int taken = take(&given, command, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
    if (taken == 0) return misused("unexpected or incomplete argument", argv[i]);
    i += taken;
  }
  if (given.path_count < command->paths) return misused("a path is missing after", argv[0]);
  if (command->prunes && given.keep < 1) return misused("--keep K is missing after", argv[0]);
  return command->run(&given);
}
