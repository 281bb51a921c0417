/// @file report: reads counters, and writes them as a row, as key=value and as CSV.
/// Knows nothing of the model or the text.
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "../check.h"
#include "../counters.h"
#include "products.h"

enum { kNow, kPeak, kFormula, kConstant };

static const char *const kCategoryNames[kReportCategories] = {
    "total", "param", "grad", "state", "grad_pool", "param_pool", "staging", "buffer", "accumulated", "module_buffer", "workspace"};

static int complain(const char *path) {
  fprintf(stderr, "train_gpt: %s: %s\n", path, strerror(errno));
  return -1;
}

/// `begin` is written at once, so that a full disk is told now.
static int open_one(const char *path, const char *begin, FILE **out) {
  if (!path) return 0;
  *out = fopen(path, "wb");
  return *out && fputs(begin, *out) >= 0 && fflush(*out) == 0 ? 0 : complain(path);
}

int files_open(const struct options *o, struct files *out) {
  char stage[32];
  *out = (struct files){NULL, NULL, NULL, NULL, NULL};
  snprintf(stage, sizeof stage, "stage=%" PRId64 "\n", o->stage);
  return open_one(o->csv, "row,step or stage,loss or category,validation or now,rate or peak,norm or formula,constant\n", &out->csv) ||
                 open_one(o->report_file, stage, &out->report) || open_one(o->write_first, "", &out->first) ||
                 open_one(o->write_gradients, "", &out->gradients) || open_one(o->write_logits, "", &out->logits)
             ? -1
             : 0;
}

static int close_one(const char *path, FILE **file) {
  const int wrong = *file && ferror(*file);
  const int lost = *file && fclose(*file) != 0;
  *file = NULL;
  return wrong || lost ? complain(path) : 0;
}

int files_close(const struct options *o, struct files *files) {
  int status = close_one(o->csv, &files->csv);
  status |= close_one(o->report_file, &files->report);
  status |= close_one(o->write_first, &files->first);
  status |= close_one(o->write_logits, &files->logits);
  return close_one(o->write_gradients, &files->gradients) | status;
}

void report_header(void) {
  printf("%-5s | %-43s | %-39s | %-8s | %-21s | %-15s | %s\n", "", "MB per rank in use (pools: peak)", "MB per rank in all", "process",
         "elements sent / 1000", "speed", "result");
  printf("%5s | %8s %8s %8s %8s %7s | %9s %9s %9s %9s | %8s | %10s %10s | %8s %6s | %6s %s\n", "stage", "param", "grad", "state", "pools",
         "staging", "now", "peak", "formula", "constant", "peak MB", "counted", "formula", "tokens/s", "libz.", "loss", "hash");
}

int report_sent(const zero_optimizer *optimizer, struct sent *out) {
  return sent_elements(optimizer, ZERO_OPERATION_REDUCE_SCATTER, &out->reduced) ||
                 sent_elements(optimizer, ZERO_OPERATION_ALL_GATHER, &out->gathered)
             ? -1
             : 0;
}

int report_memory(const zero_optimizer *optimizer, int64_t out[kReportCategories][kReportFields]) {
  for (int32_t category = 0; category < kReportCategories; category++) {
    zero_memory_stats stats;
    if (failed(zero_memory_stats_init(&stats, sizeof stats), "zero_memory_stats_init") ||
        failed(zero_stats_optimizer_memory(optimizer, category, &stats), "zero_stats_optimizer_memory")) {
      return -1;
    }
    out[category][kNow] = stats.now_nbytes;
    out[category][kPeak] = stats.peak_nbytes;
    out[category][kFormula] = stats.formula_nbytes;
    out[category][kConstant] = stats.constant_nbytes;
  }
  return 0;
}

static int64_t process_bytes(const char *key) {
  char line[256];
  long long kibibytes = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, key, strlen(key)) == 0) sscanf(line + strlen(key), "%lld", &kibibytes);
  }
  if (file) fclose(file);
  return kibibytes * 1024;
}

int64_t report_process_now(void) { return process_bytes("VmRSS:"); }
int64_t report_process_peak(void) { return process_bytes("VmHWM:"); }

/// What the table shows, over all ranks.
struct totals {
  int64_t size;
  int64_t memory[kReportCategories][kReportFields];
  int64_t process_before, process_peak;
  double sent, sent_formula; /* elements per step, mean over ranks */
};

/// Elements that go to all ranks per step: in stage 3 what was acquired; in stage 0 ranks of one host
/// write for one another all that they keep.
static int64_t gathered(const struct options *o, const struct outcome_of_run *run, int64_t hosts) {
  if (o->stage == 3) return run->acquired;
  return o->stage == 0 && hosts == 1 ? run->kept : run->parameters;
}

static int over_ranks(zero_group *group, int64_t *values, int64_t count, int32_t how) {
  return failed(zero_group_all_reduce(group, values, count, values, count, ZERO_DTYPE_I64, how, NULL), "zero_group_all_reduce");
}

/// On average over ranks a reduction sends P (N - 1) / N elements and so does a gather, however uneven the shards are.
static int total_up(zero_group *group, const struct options *o, const struct outcome_of_run *run, struct totals *out) {
  int64_t hosts = 0;
  int64_t sent = run->sent;
  int64_t process[2] = {run->process_before, run->process_peak};
  memcpy(out->memory, run->memory, sizeof out->memory);
  if (failed(zero_group_size(group, &out->size), "zero_group_size") ||
      failed(zero_group_host_count(group, &hosts), "zero_group_host_count") ||
      over_ranks(group, &out->memory[0][0], (int64_t)kReportCategories * kReportFields, ZERO_REDUCE_MAX) ||
      over_ranks(group, process, 2, ZERO_REDUCE_MAX) || over_ranks(group, &sent, 1, ZERO_REDUCE_SUM)) {
    return -1;
  }
  const double others = (double)(out->size - 1) / (double)out->size;
  out->process_before = process[0];
  out->process_peak = process[1];
  out->sent = (double)sent / (double)out->size;
  out->sent_formula = (double)(o->micro_steps * run->parameters + gathered(o, run, hosts)) * others;
  return 0;
}

static double mb(int64_t nbytes) { return (double)nbytes / 1e6; }

static void print_row(const struct options *o, const struct totals *t, const struct outcome_of_run *run) {
  const int64_t(*m)[kReportFields] = t->memory;
  printf("%5" PRId64 " | %8.2f %8.2f %8.2f %8.2f %7.2f | %9.2f %9.2f %9.2f %9.2f | %8.1f | %10.1f %10.1f | %8.0f %5.1f%% | %6.4f %016" PRIx64
         "\n",
         o->stage, mb(m[ZERO_MEMORY_PARAM][kNow]), mb(m[ZERO_MEMORY_GRAD][kNow]), mb(m[ZERO_MEMORY_STATE][kNow]),
         mb(m[ZERO_MEMORY_GRAD_POOL][kPeak] + m[ZERO_MEMORY_PARAM_POOL][kPeak]), mb(m[ZERO_MEMORY_STAGING][kNow]),
         mb(m[ZERO_MEMORY_TOTAL][kNow]), mb(m[ZERO_MEMORY_TOTAL][kPeak]), mb(m[ZERO_MEMORY_TOTAL][kFormula]),
         mb(m[ZERO_MEMORY_TOTAL][kConstant]), mb(t->process_peak), t->sent / 1e3, t->sent_formula / 1e3, run->tokens_per_second,
         100 * run->library_share, run->validation, run->hash);
}

static void write_file(FILE *file, const struct options *o, const struct totals *t, const struct outcome_of_run *run) {
  static const char *const kFieldNames[kReportFields] = {"now", "peak", "formula", "constant"};
  fprintf(file, "model=%s\nranks=%" PRId64 "\nparameters=%" PRId64 "\nsteps=%" PRId64 "\nproducts=%s\n", o->model, t->size, run->parameters,
          o->steps, products_name());
  for (int c = 0; c < kReportCategories; c++) {
    for (int f = 0; f < kReportFields; f++) fprintf(file, "memory.%s.%s=%" PRId64 "\n", kCategoryNames[c], kFieldNames[f], t->memory[c][f]);
  }
  fprintf(file, "process.before=%" PRId64 "\nprocess.peak=%" PRId64 "\nactivations=%" PRId64 "\n", t->process_before, t->process_peak,
          run->activations);
  fprintf(file, "sent_per_step.mean=%.3f\nsent_per_step.formula=%.3f\ntokens_per_second=%.1f\nlibrary_share=%.4f\n", t->sent, t->sent_formula,
          run->tokens_per_second, run->library_share);
  fprintf(file, "loss=%.9g\nvalidation=%.9g\nhash=%016" PRIx64 "\n", run->loss, run->validation, run->hash);
}

static void write_csv(FILE *file, const struct options *o, const struct totals *t) {
  for (int c = 0; c < kReportCategories; c++) {
    const int64_t *m = t->memory[c];
    fprintf(file, "bytes,%" PRId64 ",%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", o->stage, kCategoryNames[c], m[kNow], m[kPeak],
            m[kFormula], m[kConstant]);
  }
}

void report_step(FILE *csv, int64_t step, double loss, double validation, double lr, double grad_norm) {
  if (!csv) return;
  fprintf(csv, "loss,%" PRId64 ",%.9g,", step, loss);
  if (validation >= 0) fprintf(csv, "%.9g", validation);
  fprintf(csv, ",%.9g,%.9g,\n", lr, grad_norm);
}

int report_write(zero_group *group, const struct options *o, const struct outcome_of_run *run, const struct files *files) {
  int64_t rank = 0;
  struct totals totals;
  if (failed(zero_group_rank(group, &rank), "zero_group_rank") || total_up(group, o, run, &totals)) return -1;
  if (rank == 0 && o->report) print_row(o, &totals, run);
  if (files->report) write_file(files->report, o, &totals, run);
  if (files->csv) write_csv(files->csv, o, &totals);
  return 0;
}
