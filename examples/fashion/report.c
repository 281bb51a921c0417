/// @file report: what a run cost per rank, as libzero counted it, beside what the formulas say.
/// Knows nothing of the model or the data.
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../check.h"
#include "../counters.h"

enum { kNow, kPeak, kFormula, kConstant };

static const char *const kCategoryNames[kReportCategories] = {
    "total", "param", "grad", "state", "grad_pool", "param_pool", "staging", "buffer", "accumulated", "module_buffer", "workspace"};

/// What the table shows, over all ranks.
struct totals {
  struct report_memory memory; /* of the rank that has most, field by field */
  double sent_mean;            /* elements per step to reduce gradients and gather parameters, mean over ranks */
  double sent_largest;         /* of the rank that sent most */
  double sent_formula;
  double votes_mean;
};

void report_header(void) {
  printf("%-5s | %-50s | %-39s | %-29s | %s\n", "", "bytes per rank in use (pools: peak)", "bytes per rank in all",
         "elements sent per rank and step", "result");
  printf("%5s | %8s %8s %8s %7s %7s %7s | %9s %9s %9s %9s | %9s %9s %9s | %5s | %s\n", "stage", "param", "grad", "state", "g.pool",
         "p.pool", "staging", "now", "formula", "constant", "peak", "counted", "formula", "votes", "acc.", "hash");
}

int report_sent(const zero_optimizer *optimizer, struct sent *out) {
  return sent_elements(optimizer, ZERO_OPERATION_REDUCE_SCATTER, &out->reduce) ||
                 sent_elements(optimizer, ZERO_OPERATION_ALL_GATHER, &out->gather) ||
                 sent_elements(optimizer, ZERO_OPERATION_ALL_REDUCE, &out->vote)
             ? -1
             : 0;
}

int report_memory(const zero_optimizer *optimizer, struct report_memory *out) {
  for (int32_t category = 0; category < kReportCategories; category++) {
    zero_memory_stats stats;
    if (failed(zero_memory_stats_init(&stats, sizeof stats), "zero_memory_stats_init") ||
        failed(zero_stats_optimizer_memory(optimizer, category, &stats), "zero_stats_optimizer_memory")) {
      return -1;
    }
    int64_t *to = out->nbytes[category];
    to[kNow] = stats.now_nbytes;
    to[kPeak] = stats.peak_nbytes;
    to[kFormula] = stats.formula_nbytes;
    to[kConstant] = stats.constant_nbytes;
  }
  return 0;
}

/// Elements that go to all ranks per step. Stage 3 gathers parameters twice in each micro-step, for forward and for backward; in stage 0
/// ranks that reach one another's memory write for one another all that they keep.
static int64_t gathered(const struct options *options, const struct outcome_of_run *run, int64_t hosts) {
  if (options->stage == 3) return 2 * options->accumulate * run->parameters;
  const int on_host = options->device < 0 || options->tier == ZERO_TIER_HOST;
  return options->stage == 0 && hosts == 1 && on_host ? run->kept : run->parameters;
}

/// Sums and maxima over ranks. On average over ranks a reduction sends P (N - 1) / N elements and so does a gather, however uneven the
/// shards are.
static int total_up(zero_group *group, const struct options *options, const struct report_memory *memory, const struct outcome_of_run *run,
                    struct totals *out) {
  const int64_t count = kReportCategories * kReportFields;
  const struct sent *a = &run->before;
  const struct sent *b = &run->after;
  const int64_t data = b->reduce - a->reduce + b->gather - a->gather;
  int64_t sums[2] = {data, b->vote - a->vote};
  int64_t largest = data;
  int64_t size = 0;
  int64_t hosts = 0;
  *out = (struct totals){.memory = *memory};
  if (failed(zero_group_size(group, &size), "zero_group_size") || failed(zero_group_host_count(group, &hosts), "zero_group_host_count") ||
      failed(zero_group_all_reduce(group, out->memory.nbytes, count, out->memory.nbytes, count, ZERO_DTYPE_I64, ZERO_REDUCE_MAX, NULL),
             "zero_group_all_reduce") ||
      failed(zero_group_all_reduce(group, sums, 2, sums, 2, ZERO_DTYPE_I64, ZERO_REDUCE_SUM, NULL), "zero_group_all_reduce") ||
      failed(zero_group_all_reduce(group, &largest, 1, &largest, 1, ZERO_DTYPE_I64, ZERO_REDUCE_MAX, NULL), "zero_group_all_reduce")) {
    return -1;
  }
  const int64_t reductions = options->manner == ZERO_MICRO_STEP_REDUCE ? options->accumulate : 1;
  out->sent_mean = (double)sums[0] / (double)(size * run->steps);
  out->sent_largest = (double)largest / (double)run->steps;
  out->sent_formula = (double)(reductions * run->parameters + gathered(options, run, hosts)) * (double)(size - 1) / (double)size;
  out->votes_mean = (double)sums[1] / (double)(size * run->steps);
  return 0;
}

static void print_row(const struct options *options, const struct totals *t, const struct outcome_of_run *run) {
  const int64_t(*m)[kReportFields] = t->memory.nbytes;
  printf("%5" PRId64 " | %8" PRId64 " %8" PRId64 " %8" PRId64 " %7" PRId64 " %7" PRId64 " %7" PRId64 " | %9" PRId64 " %9" PRId64
         " %9" PRId64 " %9" PRId64 " | %9.0f %9.0f %9.0f | %5.2f | %016" PRIx64 "\n",
         options->stage, m[ZERO_MEMORY_PARAM][kNow], m[ZERO_MEMORY_GRAD][kNow], m[ZERO_MEMORY_STATE][kNow], m[ZERO_MEMORY_GRAD_POOL][kPeak],
         m[ZERO_MEMORY_PARAM_POOL][kPeak], m[ZERO_MEMORY_STAGING][kNow], m[ZERO_MEMORY_TOTAL][kNow], m[ZERO_MEMORY_TOTAL][kFormula],
         m[ZERO_MEMORY_TOTAL][kConstant], m[ZERO_MEMORY_TOTAL][kPeak], t->sent_mean, t->sent_formula, t->votes_mean, run->accuracy,
         run->hash);
}

/// What was written has to have arrived, or is told now.
static int flush_file(const struct options *options, FILE *file) {
  if (file && fflush(file) == 0 && !ferror(file)) return 0;
  fprintf(stderr, "train_fashion: %s: %s\n", options->report_file, strerror(errno));
  return -1;
}

int report_open(const struct options *options, FILE **out) {
  *out = fopen(options->report_file, "w");
  if (*out) fprintf(*out, "stage=%" PRId64 "\n", options->stage);
  return flush_file(options, *out);
}

static int write_file(const struct options *options, int64_t size, const struct totals *t, const struct outcome_of_run *run, FILE *file) {
  static const char *const kFieldNames[kReportFields] = {"now", "peak", "formula", "constant"};
  fprintf(file, "ranks=%" PRId64 "\nparameters=%" PRId64 "\nsteps=%" PRId64 "\n", size, run->parameters, run->steps);
  for (int c = 0; c < kReportCategories; c++) {
    for (int f = 0; f < kReportFields; f++) {
      fprintf(file, "memory.%s.%s=%" PRId64 "\n", kCategoryNames[c], kFieldNames[f], t->memory.nbytes[c][f]);
    }
  }
  fprintf(file, "sent_per_step.mean=%.3f\nsent_per_step.largest=%.3f\nsent_per_step.formula=%.3f\nvotes_per_step.mean=%.3f\n", t->sent_mean,
          t->sent_largest, t->sent_formula, t->votes_mean);
  fprintf(file, "skipped=%" PRId64 "\nloss_scale=%g\n", run->skipped, run->loss_scale);
  fprintf(file, "accuracy=%.2f\nhash=%016" PRIx64 "\n", run->accuracy, run->hash);
  return flush_file(options, file);
}

int report_write(zero_group *group, const struct options *options, const struct report_memory *memory, const struct outcome_of_run *run,
                 FILE *file) {
  int64_t rank = 0;
  int64_t size = 0;
  struct totals totals;
  if (!options->report && !options->report_file) return 0;
  if (failed(zero_group_rank(group, &rank), "zero_group_rank") || failed(zero_group_size(group, &size), "zero_group_size") ||
      total_up(group, options, memory, run, &totals)) {
    return -1;
  }
  if (rank == 0 && options->report) print_row(options, &totals, run);
  return file ? write_file(options, size, &totals, run, file) : 0;
}
