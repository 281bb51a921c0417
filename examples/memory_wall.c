/// @file memory_wall: a model that stage 0 has no room for is trained in stage 3 on the same machine. GPT-2 large with fp32 AdamW keeps 16
/// bytes per parameter: 12.4 GB once, but about 50 GB when each of four ranks keeps all of it. The use of libzero is in
/// memory_wall/trainer.c.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "memory_wall/footprint.h"
#include "memory_wall/options.h"
#include "memory_wall/shapes.h"
#include "memory_wall/trainer.h"

/// What all ranks share.
struct run {
  const struct options *options;
  const struct shapes *shapes;
  struct footprint *footprint;
};

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double gib(int64_t nbytes) { return (double)nbytes / (double)(INT64_C(1) << 30); }

/// Rank 0 tells what was done since `*since`, and what all ranks take.
static void tell(const struct run *run, int64_t rank, double *since, const char *what) {
  const double now = seconds();
  if (rank == 0) {
    printf("%-44s %7.1f s   all ranks hold %6.2f GiB, at most %6.2f GiB so far\n", what, now - *since, gib(run->footprint->now),
           gib(run->footprint->peak));
    fflush(stdout);
  }
  *since = now;
}

static int show_stage_0(struct trainer *t) {
  char text[1024];
  int32_t status = ZERO_OK;
  if (trainer_create(t, 0, &status)) return -1;
  if (status == ZERO_OK) {
    if (t->rank == 0) printf("stage 0: fits this machine; see --limit-gib\n");
    trainer_release(t);
    return 0;
  }
  zero_last_error_copy(text, sizeof text);
  if (t->rank == 0) printf("stage 0: refused: %s: %s\n", zero_status_name(status), text);
  return 0;
}

/// A line per rank: gigabytes by category.
static int show_memory(const struct trainer *t) {
  enum { kCategories = ZERO_MEMORY_STAGING + 1 };
  int64_t nbytes[kCategories + 1];
  int64_t *all = malloc((size_t)t->options->ranks * sizeof nbytes);
  int status = all == NULL;
  for (int32_t category = 0; !status && category < kCategories; category++) {
    zero_memory_stats stats;
    status = failed(zero_memory_stats_init(&stats, sizeof stats), "zero_memory_stats_init") ||
             failed(zero_stats_optimizer_memory(t->optimizer, category, &stats), "zero_stats_optimizer_memory");
    nbytes[category] = stats.now_nbytes;
    if (category == ZERO_MEMORY_TOTAL) nbytes[kCategories] = stats.peak_nbytes;
  }
  const int64_t count = kCategories + 1;
  const int64_t total = t->options->ranks * count;
  status = status || failed(zero_group_gather(t->group, nbytes, count, all, t->rank == 0 ? total : 0, total, ZERO_DTYPE_I64, 0, NULL),
                            "zero_group_gather");
  for (int64_t rank = 0; !status && t->rank == 0 && rank < t->options->ranks; rank++) {
    const int64_t *of = all + rank * count;
    printf("rank %" PRId64
           ": GiB: param %.3f, grad %.3f, state %.3f, grad_pool %.3f, param_pool %.3f, staging %.3f, total %.3f, peak %.3f\n",
           rank, gib(of[ZERO_MEMORY_PARAM]), gib(of[ZERO_MEMORY_GRAD]), gib(of[ZERO_MEMORY_STATE]), gib(of[ZERO_MEMORY_GRAD_POOL]),
           gib(of[ZERO_MEMORY_PARAM_POOL]), gib(of[ZERO_MEMORY_STAGING]), gib(of[ZERO_MEMORY_TOTAL]), gib(of[kCategories]));
  }
  free(all);
  return status ? -1 : 0;
}

static int train_in_stage_3(const struct run *run, struct trainer *t) {
  double since = seconds();
  int32_t status = ZERO_OK;
  char what[64];
  if (trainer_create(t, 3, &status)) return -1;
  if (failed(status, "stage 3: zero_optimizer_seal")) return -1;
  tell(run, t->rank, &since, "stage 3: sealed");
  if (trainer_first_values(t)) return -1;
  tell(run, t->rank, &since, "first values");
  for (int64_t step = 1; step <= run->options->steps; step++) {
    double mean_square = 0;
    if (trainer_step(t, &mean_square)) return -1;
    snprintf(what, sizeof what, "step %" PRId64 ": mean square was %.6e", step, mean_square);
    tell(run, t->rank, &since, what);
  }
  int64_t nbytes = 0;
  int64_t differing = 0;
  if (trainer_verify(t, &nbytes, &differing)) return -1;
  snprintf(what, sizeof what, "verify: %" PRId64 " pieces differ of %.2f GiB", differing, gib(nbytes));
  tell(run, t->rank, &since, what);
  return show_memory(t) || differing != 0 ? -1 : 0;
}

static int rank_main(const struct run *run, int64_t rank) {
  struct trainer trainer = {.options = run->options, .shapes = run->shapes, .rank = rank};
  char name[64];
  snprintf(name, sizeof name, "memory_wall.%ld", (long)getppid());
  int status = failed(zero_group_create_local(name, rank, run->options->ranks, NULL, &trainer.group), "zero_group_create_local") ||
               show_stage_0(&trainer) || train_in_stage_3(run, &trainer);
  trainer_release(&trainer);
  zero_group_release(trainer.group);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}

/// Samples memory until all ranks have ended.
static int wait_for_all(const struct run *run, pid_t *pids, int64_t started) {
  const struct timespec pause = {.tv_nsec = 250000000};
  int64_t running = started;
  int bad = 0;
  while (running > 0) {
    nanosleep(&pause, NULL);
    footprint_sample(run->footprint, pids, started);
    for (int64_t rank = 0; rank < started; rank++) {
      int status = 0;
      if (pids[rank] == 0 || waitpid(pids[rank], &status, WNOHANG) == 0) continue;
      if (status != 0) fprintf(stderr, "memory_wall: rank %" PRId64 " failed\n", rank);
      bad |= status != 0;
      pids[rank] = 0;
      running--;
    }
  }
  return bad ? -1 : 0;
}

/// A process per rank. They are forked before libzero is used, because its state does not survive a fork.
static int start_ranks(const struct run *run) {
  pid_t *pids = calloc((size_t)run->options->ranks, sizeof *pids);
  int64_t started = 0;
  int bad = pids == NULL;
  fflush(NULL);
  for (; !bad && started < run->options->ranks; started++) {
    pids[started] = fork();
    if (pids[started] == 0) exit(rank_main(run, started));
    if (pids[started] < 0) {
      fprintf(stderr, "memory_wall: cannot start rank %" PRId64 ": %s\n", started, strerror(errno));
      bad = 1;
      break;
    }
  }
  bad |= wait_for_all(run, pids, started) != 0;
  free(pids);
  return bad ? -1 : 0;
}

/// A launcher would start as many models as ranks.
static int refuse_launcher(void) {
  char variable[64];
  if (failed(zero_group_launcher(variable, sizeof variable, NULL), "zero_group_launcher")) return -1;
  if (*variable == '\0') return 0;
  fprintf(stderr, "memory_wall: it starts its ranks itself, but a launcher has started it (%s is %s); start it without\n", variable,
          getenv(variable));
  return -1;
}

int main(int argc, char **argv) {
  struct options options;
  struct shapes shapes;
  const enum outcome outcome = options_parse(argc, argv, &options);
  if (outcome != kOutcomeRun) return outcome == kOutcomeDone ? EXIT_SUCCESS : 2;
  if (refuse_launcher()) return 2;
  struct run run = {.options = &options, .shapes = &shapes, .footprint = footprint_create()};
  if (!run.footprint || shapes_create(&options.size, &shapes)) return EXIT_FAILURE;
  printf("GPT-2 of %" PRId64 " layers and width %" PRId64 ": %" PRId64 " parameters, fp32 AdamW, %" PRId64 " ranks\n", options.size.layers,
         options.size.width, shapes.parameters, options.ranks);
  const int status = start_ranks(&run);
  if (!status) printf("all ranks together held at most %.2f GiB\n", gib(run.footprint->peak));
  shapes_release(&shapes);
  footprint_release(run.footprint);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
