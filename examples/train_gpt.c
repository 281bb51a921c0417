/// @file train_gpt: trains a GPT on a text with its states, gradients and parameters sharded by libzero.
/// The use of libzero is in gpt/trainer.c and gpt/parameters.c; here are the ranks, the loop over steps and what is printed.
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
#include "gpt/hugging_face.h"
#include "gpt/options.h"
#include "gpt/plot.h"
#include "gpt/products.h"
#include "gpt/progress.h"
#include "gpt/report.h"
#include "gpt/sample.h"
#include "gpt/trainer.h"
#include "ranks.h"
#include "servers.h"

/// The context of all ranks. Files are those of rank 0.
struct whole_run {
  struct run run;
  struct files files;
};

/// Threads and processes meet by a name that no other run has.
static int open_local_group(const struct options *o, const zero_config *config, int64_t rank, zero_group **out) {
  char name[64];
  snprintf(name, sizeof name, "train_gpt.%ld", (long)(o->mode == kModeThreads ? getpid() : getppid()));
  return failed(zero_group_create_local(name, rank, o->ranks, config, out), "zero_group_create_local") ? -1 : 0;
}

/// The group that the options ask for. Small models need little staging memory.
static int open_group(const struct run *run, int64_t rank, zero_group **out) {
  const int64_t kLeast = 64 << 10;
  const int64_t kMost = 1 << 20;
  const int64_t part = run->shape.parameters / 64;
  zero_config *config = NULL;
  if (failed(zero_config_create(&config), "zero_config_create")) return -1;
  int status = failed(zero_config_set_i64(config, ZERO_KEY_STAGING_BYTES, part < kLeast ? kLeast : part > kMost ? kMost : part),
                      "set staging bytes")
                   ? -1
                   : 0;
  if (!status && run->options->mode == kModeLauncher) status = failed(zero_group_create_env(config, out), "zero_group_create_env") ? -1 : 0;
  if (!status && run->options->mode != kModeLauncher) status = open_local_group(run->options, config, rank, out);
  zero_config_release(config);
  return status;
}

/// A step that was skipped changes nothing: the rate is too high, and it will not get better.
static int check_step(const struct trainer *t, int64_t step, const struct step *result) {
  if (!result->skipped) return 0;
  if (t->rank == 0) fprintf(stderr, "train_gpt: step %" PRId64 ": a gradient is not finite; try a smaller --lr\n", step + 1);
  return -1;
}

/// The loss on the validation part, where it is asked for after step `step`, counted from 1; otherwise -1. Validation ends the steps whose
/// traffic is counted from `*counted`; what a gather ahead sends after it counts for the next steps.
static int validate(struct trainer *t, int64_t step, struct progress *progress, struct sent *counted, struct outcome_of_run *out) {
  const struct options *o = t->run->options;
  const double begun = progress_now();
  struct sent now;
  out->validation = -1;
  if (step < o->steps && (o->validate == 0 || step % o->validate != 0)) return 0;
  if (failed(zero_optimizer_sync(t->optimizer, NULL, NULL), "zero_optimizer_sync") || report_sent(t->optimizer, &now)) return -1;
  out->sent += now.reduced - counted->reduced + now.gathered - counted->gathered;
  if (trainer_validate(t, &out->validation) || report_sent(t->optimizer, counted)) return -1;
  progress_pause(progress, begun);
  if (t->rank == 0 && !o->quiet) fprintf(stderr, "step %" PRId64 ": validation loss %.4f\n", step, out->validation);
  return 0;
}

/// All ranks come here in the same step.
static int stop(struct trainer *t, int64_t reason) {
  t->stopped = reason;
  __atomic_store_n(t->run->stop_reason, reason, __ATOMIC_RELAXED); /* by every rank: some are processes */
  return 0;
}

/// All steps from `first` on; rank 0 shows progress and writes losses. Where the run is stopped all ranks end with the same step.
static int train_steps(struct trainer *t, int64_t first, struct files *files, struct progress *progress, struct outcome_of_run *out) {
  const struct options *o = t->run->options;
  struct sent counted;
  if (report_sent(t->optimizer, &counted)) return -1;
  for (int64_t s = first; s < o->steps && !t->stopped; s++) {
    struct step step;
    if (trainer_step(t, s, s == 0 && o->write_gradients, files->gradients, &step) || check_step(t, s, &step)) return -1;
    progress_step(progress, s + 1, o->steps, step.loss, o->batch * o->context);
    out->tokens_per_second = progress_rate(progress);
    if (validate(t, s + 1, progress, &counted, out)) return -1;
    report_step(files->csv, s + 1, step.loss, out->validation, step.lr, step.grad_norm);
    out->loss = step.loss;
    if (saves_after_step(&t->saves, s + 1, s + 1 == o->steps, step.stop_reason)) return -1;
    if (step.stop_reason) return stop(t, step.stop_reason);
  }
  return 0;
}

static int train(struct trainer *t, struct files *files, struct outcome_of_run *out) {
  const struct options *o = t->run->options;
  struct progress progress;
  progress_begin(&progress, t->rank == 0 && !o->quiet);
  t->parameters.acquired = t->parameters.library_ns = t->steps_ns = 0;
  const int64_t first = t->first_step;
  if (train_steps(t, first, files, &progress, out)) return -1;
  if (t->stopped) return 0;
  if (first >= o->steps) return trainer_validate(t, &out->validation); /* the save is of the end */
  out->library_share = (double)t->parameters.library_ns / (double)t->steps_ns;
  out->acquired = t->parameters.acquired / (o->steps - first);
  out->sent /= o->steps - first;
  return 0;
}

/// What was printed has to have arrived: a run whose report is lost has failed.
static int flush_output(void) {
  if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
  fprintf(stderr, "train_gpt: standard output: %s\n", strerror(errno));
  return -1;
}

static int print_result(double loss, uint64_t hash) {
  printf("loss=%.4f hash=%016" PRIx64 "\n", loss, hash);
  return flush_output();
}

/// Trains, validates, samples, reports.
static int work(struct trainer *t, struct files *files) {
  const struct options *o = t->run->options;
  struct outcome_of_run outcome = {.parameters = t->run->shape.parameters, .process_before = t->process_before};
  outcome.activations = model_nbytes(&t->model);
  if (kept_elements(t->optimizer, t->run->shape.tensor_count, &outcome.kept) ||
      (o->write_first && trainer_write_parameters(t, files->first)) || train(t, files, &outcome)) {
    return -1;
  }
  if (t->stopped) return 0; /* what follows takes time that a stopped run may not have */
  if (report_memory(t->optimizer, outcome.memory)) return -1;
  outcome.process_peak = report_process_peak();
  if (trainer_hash(t, &outcome.hash) || report_write(t->group, o, &outcome, files) || (o->sample && sample_print(t))) return -1;
  if (o->write_logits && sample_write_logits(t, files->logits)) return -1;
  if (o->export_to && hugging_face_export(o, &t->run->shape, t->group, t->optimizer)) return -1;
  return t->rank == 0 ? print_result(outcome.validation, outcome.hash) : 0;
}

/// Outputs are tried before the training.
static int open_outputs(const struct options *o, struct files *files) {
  return files_open(o, files) || (o->plot && plot_check(o->plot)) ? -1 : 0;
}

/// With --server: a rank that pulls and pushes. The first worker shows progress and writes its losses.
struct worker {
  struct trainer *trainer;
  FILE *csv;
  struct progress progress;
};

static int work_on_batch(void *context, int64_t step) {
  struct worker *w = context;
  const struct options *o = w->trainer->run->options;
  double loss = 0;
  if (trainer_gradient(w->trainer, step, &loss)) return -1;
  if (!isfinite(loss)) {
    fprintf(stderr, "train_gpt: batch %" PRId64 ": the loss is not finite; try a smaller --lr\n", step + 1);
    return -1;
  }
  report_step(w->csv, step + 1, loss, -1, o->lr, 0);
  progress_step(&w->progress, step + 1, o->steps, loss, o->batch * o->context);
  return 0;
}

static int work_for_servers(struct trainer *t, struct servers *s, FILE *csv) {
  struct worker worker = {.trainer = t, .csv = csv};
  t->parameters.flat_gradients = s->gradients;
  progress_begin(&worker.progress, s->worker == 0 && !t->run->options->quiet);
  return servers_work(s, t->run->options->steps, work_on_batch, &worker);
}

/// Rank 0 validates what all workers have made.
static int serve(struct trainer *t, struct servers *s) {
  double loss = 0;
  uint64_t hash = 0;
  if (servers_serve(s)) return -1;
  if (s->rank != 0) return 0;
  if (trainer_validate(t, &loss) || trainer_hash(t, &hash) || (t->run->options->sample && sample_print(t))) return -1;
  return print_result(loss, hash);
}

static int connect_servers(struct trainer *t, struct servers *s) {
  zero_config *config = NULL;
  if ((s->worker < 0 && trainer_first_values(t, s->parameters)) || failed(zero_config_create(&config), "zero_config_create")) return -1;
  t->parameters.flat = s->parameters;
  const int status = trainer_configure(config, t->run->options) || servers_connect(s, config);
  zero_config_release(config);
  return status ? -1 : 0;
}

/// One rank of a run with --server. Files are those of the first worker.
static int server_rank_main(struct whole_run *whole, int64_t rank) {
  const struct options *o = whole->run.options;
  struct trainer trainer = {.run = &whole->run};
  struct servers servers = {0};
  struct files none = {NULL, NULL, NULL, NULL, NULL};
  zero_group *group = NULL;
  int status =
      open_group(&whole->run, rank, &group) || servers_open(&servers, &o->servers, group, whole->run.shape.parameters, &trainer.group);
  struct files *files = servers.group && servers.worker == 0 ? &whole->files : &none;
  status = status || trainer_create(&trainer, servers.worker >= 0) ||
           (o->mode == kModeLauncher && files != &none && files_open(o, files)) || connect_servers(&trainer, &servers);
  if (status) servers_give_up(&servers);
  status = status || (servers.worker < 0 ? serve(&trainer, &servers) : work_for_servers(&trainer, &servers, files->csv));
  if (files_close(o, files)) status = 1;
  servers_release(&servers);
  trainer_release(&trainer);
  return status ? -1 : 0;
}

/// One rank, in its own thread or process. A rank that fails aborts the group, so that the others do not wait for it.
static int rank_main(void *context, int64_t rank) {
  struct whole_run *whole = context;
  const struct options *o = whole->run.options;
  if (o->servers.count > 0) return server_rank_main(whole, rank);
  struct files none = {NULL, NULL, NULL, NULL, NULL};
  struct trainer trainer = {.run = &whole->run, .rank = rank};
  int status = open_group(&whole->run, rank, &trainer.group) || trainer_create(&trainer, 0) ||
               saves_open(&trainer.saves, &o->saves, trainer.group, trainer.optimizer, &trainer.first_step);
  if (trainer.first_step < 0) trainer.first_step = 0;
  struct files *files = trainer.rank == 0 ? &whole->files : &none;
  if (!status && o->mode == kModeLauncher && trainer.rank == 0) status = open_outputs(o, files);
  status = status || work(&trainer, files);
  if (files_close(o, files)) status = -1;
  if (!status && trainer.rank == 0 && o->plot) status = plot_draw(o->csv, o->plot);
  if (status && trainer.group) zero_group_abort(trainer.group, "a rank of train_gpt gave up; see its own message");
  trainer_release(&trainer);
  return status ? -1 : 0;
}

/// What can be known to be wrong before ranks start.
static int check_batch(const struct options *o) {
  const int64_t parts = o->ranks * o->micro_steps;
  if (o->mode == kModeLauncher || o->servers.count > 0 || o->batch % parts == 0) return 0;
  fprintf(stderr, "train_gpt: --batch %" PRId64 ": expected a multiple of %" PRId64 ": %" PRId64 " ranks x %" PRId64 " micro-steps\n",
          o->batch, parts, o->ranks, o->micro_steps);
  return -1;
}

static int start_ranks(struct whole_run *whole) {
  const struct options *o = whole->run.options;
  if (o->mode == kModeLauncher) return rank_main(whole, 0);
  if (open_outputs(o, &whole->files)) return -1;
  const int status = o->mode == kModeThreads ? ranks_run_threads(o->ranks, rank_main, whole) : ranks_run_processes(o->ranks, rank_main, whole);
  return files_close(o, &whole->files) || status ? -1 : 0;
}

/// Reads the text, trains and draws. Returns the exit code.
static int run(const struct options *o) {
  struct whole_run whole = {.run = {.options = o}};
  struct text *text = &whole.run.text;
  shape_of(o->model, !o->untied_head, &whole.run.shape);
  whole.run.stop_reason = mmap(NULL, sizeof *whole.run.stop_reason, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (whole.run.stop_reason == MAP_FAILED) {
    fprintf(stderr, "train_gpt: memory that all ranks see: %s\n", strerror(errno));
    return EXIT_FAILURE;
  }
  if (o->servers.count > 0) {
    servers_end_by_signals();
  } else {
    saves_catch_signals();
  }
  const int status = products_choose((enum products)o->products) ||
                     (o->tokens ? text_read_tokens(o->tokens, text) : text_read(o->text, text)) ||
                     text_check(text, o->batch, o->context, whole.run.shape.vocabulary) ||
                     hugging_face_check(o, &whole.run.shape) || start_ranks(&whole);
  text_release(text);
  return status ? EXIT_FAILURE : saves_exit_code(&o->saves, *whole.run.stop_reason);
}

int main(int argc, char **argv) {
  struct options options;
  const enum outcome outcome = options_parse(argc, argv, &options);
  if (outcome == kOutcomeDone) return flush_output() ? EXIT_FAILURE : EXIT_SUCCESS;
  if (outcome == kOutcomeWrong || check_batch(&options)) return 2;
  return run(&options);
}
