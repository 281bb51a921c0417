/// @file train_fashion: trains a small classifier on Fashion-MNIST with its states, gradients and parameters sharded by libzero.
/// The use of libzero is in fashion/trainer.c; here are the ranks, the loop over steps and what is printed.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zero/zero.h>

#include "check.h"
#include "counters.h"
#include "fashion/idx.h"
#include "fashion/options.h"
#include "fashion/progress.h"
#include "fashion/report.h"
#include "fashion/trainer.h"
#include "ranks.h"
#include "servers.h"

/// Threads and processes meet by a name that no other run has.
static int open_local_group(const struct options *options, const zero_config *config, int64_t rank, zero_group **out) {
  char name[64];
  const pid_t parent = options->mode == kModeThreads ? getpid() : getppid();
  snprintf(name, sizeof name, "train_fashion.%ld", (long)parent);
  return failed(zero_group_create_local(name, rank, options->ranks, config, out), "zero_group_create_local") ? -1 : 0;
}

/// The group that the options ask for. A model this small needs little staging memory.
static int open_group(const struct options *options, int64_t rank, zero_group **out) {
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  int status = failed(zero_config_set_i64(config, ZERO_KEY_STAGING_BYTES, 65536), "set staging bytes") ? -1 : 0;
  if (!status && options->mode == kModeLauncher) status = failed(zero_group_create_env(config, out), "zero_group_create_env") ? -1 : 0;
  if (!status && options->mode != kModeLauncher) status = open_local_group(options, config, rank, out);
  zero_config_release(config);
  return status;
}

/// The files of rank 0; NULL on other ranks, and for options that were not given. They are opened,
/// and take their first lines, before the training: a file that cannot be written costs no
/// training.
struct files {
  FILE *losses;
  FILE *report;
};

static int complain(const char *path) {
  fprintf(stderr, "train_fashion: %s: %s\n", path, strerror(errno));
  return -1;
}

static int open_files(const struct options *options, struct files *out) {
  if (options->losses && !(out->losses = fopen(options->losses, "w"))) return complain(options->losses);
  return options->report_file ? report_open(options, &out->report) : 0;
}

static int close_files(const struct options *options, const struct files *files) {
  int status = 0;
  if (files->losses && fclose(files->losses) != 0) status = complain(options->losses);
  if (files->report && fclose(files->report) != 0) status = complain(options->report_file);
  return status;
}

/// Each loss is written at once: one that cannot be ends the run.
static int write_loss(const struct options *options, FILE *losses, double loss) {
  return losses && (fprintf(losses, "%.9g\n", loss) < 0 || fflush(losses) != 0) ? complain(options->losses) : 0;
}

static int64_t steps_of(const struct trainer *t) {
  const int64_t all = trainer_steps_in_all(t);
  const int64_t asked = t->run->options->steps;
  return asked > 0 && asked < all ? asked : all;
}

/// All steps; rank 0 shows progress and writes the losses.
static int train(struct trainer *t, FILE *losses, struct outcome_of_run *out) {
  const struct options *options = t->run->options;
  const int64_t per_epoch = sampler_steps_per_epoch(&t->sampler);
  const int64_t steps = steps_of(t);
  struct progress progress;
  progress_begin(&progress, t->rank == 0 && !options->quiet);
  for (int64_t step = t->first_step; step < steps && !t->stop_reason; step++) {
    double loss = 0;
    int64_t samples = 0;
    if (trainer_step(t, step, &loss, &samples) || write_loss(options, losses, loss) ||
        saves_after_step(&t->saves, step + 1, step + 1 == steps, t->stop_reason)) {
      return -1;
    }
    progress_step(&progress, step / per_epoch + 1, options->epochs, step + 1, steps, loss, samples, step + 1 == steps);
  }
  out->steps = steps;
  out->skipped = t->skipped;
  out->loss_scale = t->loss_scale;
  return 0;
}

/// What was printed has to have arrived: a run whose report is lost has failed.
static int flush_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  fprintf(stderr, "train_fashion: standard output: %s\n", strerror(errno));
  return -1;
}

static int print_result(double accuracy, uint64_t hash) {
  printf("accuracy=%.2f hash=%016" PRIx64 "\n", accuracy, hash);
  return flush_output();
}

/// Trains, evaluates, reports. A run that was stopped only trains: it has little time.
static int work_with(struct trainer *t, const struct files *files) {
  struct outcome_of_run outcome = {0};
  struct report_memory memory;
  outcome.parameters = model_offset(kTensorCount);
  if (kept_elements(t->optimizer, kTensorCount, &outcome.kept) || report_sent(t->optimizer, &outcome.before) ||
      train(t, files->losses, &outcome)) {
    return -1;
  }
  if (t->stop_reason) {
    __atomic_store_n(t->run->stop_reason, t->stop_reason, __ATOMIC_RELAXED); /* by every rank: some are processes */
    return 0;
  }
  if (failed(zero_optimizer_sync(t->optimizer, NULL, NULL), "zero_optimizer_sync") || report_sent(t->optimizer, &outcome.after) ||
      report_memory(t->optimizer, &memory) || trainer_evaluate(t, &outcome.accuracy) || trainer_hash(t, &outcome.hash) ||
      report_write(t->group, t->run->options, &memory, &outcome, files->report)) {
    return -1;
  }
  if (t->rank == 0 && t->run->options->loss_scale != 1) printf("skipped=%" PRId64 " loss_scale=%g\n", outcome.skipped, outcome.loss_scale);
  return t->rank == 0 ? print_result(outcome.accuracy, outcome.hash) : 0;
}

static int work(struct trainer *t) {
  struct files files = {0};
  int status = t->rank == 0 ? open_files(t->run->options, &files) : 0;
  if (!status) status = work_with(t, &files);
  return close_files(t->run->options, &files) || status ? -1 : 0;
}

/// With --server: a rank that pulls and pushes. The first worker shows progress and writes its losses.
struct worker {
  struct trainer *trainer;
  struct servers *servers;
  struct files *files;
  struct progress progress;
};

static int work_on_batch(void *context, int64_t step) {
  struct worker *w = context;
  const struct options *options = w->trainer->run->options;
  const int64_t steps = steps_of(w->trainer);
  double loss = 0;
  int64_t samples = 0;
  if (trainer_gradient(w->trainer, step, &loss, &samples) || write_loss(options, w->files->losses, loss)) return -1;
  if (!isfinite(loss)) {
    fprintf(stderr, "train_fashion: batch %" PRId64 ": the loss is not finite; try a smaller --lr\n", step);
    return -1;
  }
  progress_step(&w->progress, step / sampler_steps_per_epoch(&w->trainer->sampler) + 1, options->epochs, step + 1, steps, loss, samples,
                step + w->servers->workers >= steps);
  return 0;
}

static int work_for_servers(struct trainer *t, struct servers *s, struct files *files) {
  struct worker worker = {.trainer = t, .servers = s, .files = files};
  t->layers.flat_gradients = s->gradients;
  progress_begin(&worker.progress, s->worker == 0 && !t->run->options->quiet);
  return servers_work(s, steps_of(t), work_on_batch, &worker);
}

/// Rank 0 evaluates what all workers have made.
static int serve(struct trainer *t, struct servers *s) {
  double accuracy = 0;
  uint64_t hash = 0;
  if (servers_serve(s)) return -1;
  if (s->rank != 0) return 0;
  return trainer_evaluate(t, &accuracy) || trainer_hash(t, &hash) ? -1 : print_result(accuracy, hash);
}

static int connect_servers(struct trainer *t, struct servers *s) {
  const struct recipe *recipe = t->run->options->recipe;
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  if (s->worker < 0) trainer_first_values(t, s->parameters);
  t->layers.flat_params = s->parameters;
  const int status = recipe_fill(recipe, config) || failed(zero_config_set_f64(config, ZERO_KEY_LR, t->run->options->lr), "set rate") ||
                     servers_connect(s, config);
  zero_config_release(config);
  return status ? -1 : 0;
}

/// One rank of a run with --server.
static int server_rank_main(const struct run *run, int64_t rank) {
  const struct options *options = run->options;
  struct trainer trainer = {.run = run};
  struct servers servers = {0};
  struct files files = {0};
  zero_group *group = NULL;
  int status = open_group(options, rank, &group) ||
               servers_open(&servers, &options->servers, group, model_offset(kTensorCount), &trainer.group) || trainer_create(&trainer) ||
               (servers.worker == 0 && open_files(options, &files)) || connect_servers(&trainer, &servers);
  if (status) servers_give_up(&servers);
  status = status || (servers.worker < 0 ? serve(&trainer, &servers) : work_for_servers(&trainer, &servers, &files));
  if (close_files(options, &files)) status = 1;
  servers_release(&servers);
  trainer_release(&trainer);
  return status ? -1 : 0;
}

/// One rank, in its own thread or process. A rank that fails aborts the group, so that the others do not wait for it.
static int rank_main(void *context, int64_t rank) {
  const struct run *run = context;
  if (run->options->servers.count > 0) return server_rank_main(run, rank);
  struct trainer trainer = {.run = run};
  const int status = open_group(run->options, rank, &trainer.group) || trainer_create(&trainer) || work(&trainer);
  if (status && trainer.group) zero_group_abort(trainer.group, "a rank of train_fashion gave up; see its own message");
  trainer_release(&trainer);
  return status ? -1 : 0;
}

/// Reads --init: exactly as many floats as the model has parameters.
static int read_first_values(const char *path, float **out) {
  const size_t count = (size_t)model_offset(kTensorCount);
  FILE *file = fopen(path, "rb");
  if (!file) {
    fprintf(stderr, "train_fashion: %s: %s\n", path, strerror(errno));
    return -1;
  }
  *out = malloc((count + 1) * sizeof(float));
  const size_t got = *out ? fread(*out, sizeof(float), count + 1, file) : 0;
  fclose(file);
  if (got == count) return 0;
  fprintf(stderr, "train_fashion: %s: expected %zu floats of 4 bytes, the parameters of the model\n", path, count);
  return -1;
}

static int start_ranks(struct run *run) {
  switch (run->options->mode) {
    case kModeThreads:
      return ranks_run_threads(run->options->ranks, rank_main, run);
    case kModeProcesses:
      return ranks_run_processes(run->options->ranks, rank_main, run);
    default:
      return rank_main(run, 0);
  }
}

int main(int argc, char **argv) {
  struct options options;
  const enum outcome outcome = options_parse(argc, argv, &options);
  if (outcome == kOutcomeDone) return flush_output() ? EXIT_FAILURE : EXIT_SUCCESS;
  if (outcome == kOutcomeWrong) return 2;
  struct run run = {.options = &options};
  run.stop_reason = mmap(NULL, sizeof *run.stop_reason, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (run.stop_reason == MAP_FAILED) {
    complain("memory that all ranks see");
    return EXIT_FAILURE;
  }
  if (options.servers.count > 0) {
    servers_end_by_signals();
  } else {
    saves_catch_signals();
  }
  float *first_values = NULL;
  int status = dataset_read(options.data, "train", options.limit, &run.train) || dataset_read(options.data, "t10k", 0, &run.test) ||
               (options.init && read_first_values(options.init, &first_values));
  run.first_values = first_values;
  status = status || start_ranks(&run);
  free(first_values);
  dataset_release(&run.train);
  dataset_release(&run.test);
  return status ? EXIT_FAILURE : saves_exit_code(&options.saves, *run.stop_reason);
}
