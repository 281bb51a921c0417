/// @file report: what a run cost per rank, as libzero and the system counted it, beside what the formulas say; one run is one row of a table.
/// Knows nothing of the model or the text.
#ifndef GPT_REPORT_H
#define GPT_REPORT_H

#include <stdint.h>
#include <stdio.h>
#include <zero/zero.h>

#include "options.h"

/// The outputs of rank 0; NULL on other ranks, and for options that were not given.
struct files {
  FILE *csv, *report, *first, *gradients, *logits;
};

/// Opens them, and writes what is known before the training: a file that cannot be written costs
/// none. Closing tells what did not arrive. Return 0, or -1 after a line on standard error.
int files_open(const struct options *options, struct files *out);
int files_close(const struct options *options, struct files *files);

/// Elements this rank's optimizer has sent so far: gradients, parameters (in stage 0 states too).
struct sent {
  int64_t reduced, gathered;
};

enum { kReportCategories = ZERO_MEMORY_WORKSPACE + 1, kReportFields = 4 };

/// What is known of a run at its end, on one rank.
struct outcome_of_run {
  int64_t parameters;
  int64_t kept;     /* parameters, and what is kept beside each */
  int64_t acquired; /* elements per step */
  int64_t sent;     /* elements per step */
  int64_t memory[kReportCategories][kReportFields]; /* now, peak, formula, constant */
  int64_t process_before;                           /* bytes of the process before the optimizer was made */
  int64_t process_peak;
  int64_t activations;
  double tokens_per_second;
  double library_share; /* of the time of the steps */
  double loss;          /* of the last step */
  double validation;
  uint64_t hash;
};

void report_header(void);

/// Each of these reads one part of the outcome. Return 0, or -1 after a line on standard error.
int report_sent(const zero_optimizer *optimizer, struct sent *out);
int report_memory(const zero_optimizer *optimizer, int64_t out[kReportCategories][kReportFields]);

/// Bytes of this process in memory, now (VmRSS) and at peak (VmHWM), as /proc/self/status says; 0 where there is none.
int64_t report_process_now(void);
int64_t report_process_peak(void);

/// A collective: rank 0 prints the row, writes the rest of its files, or both, as the options say; bytes
/// are those of the largest rank. Returns 0, or -1 after a line on standard error.
int report_write(zero_group *group, const struct options *options, const struct outcome_of_run *run, const struct files *files);

/// A line of the CSV file for one step. `validation` is negative where it was not asked for.
void report_step(FILE *csv, int64_t step, double loss, double validation, double lr, double grad_norm);

#endif
