/// @file report: what a run cost per rank, as libzero counted it, beside what the formulas say; one run is one row of a table.
/// Knows nothing of the model or the data.
#ifndef FASHION_REPORT_H
#define FASHION_REPORT_H

#include <stdint.h>
#include <stdio.h>
#include <zero/zero.h>

#include "options.h"

/// Elements this rank's optimizer has sent so far.
struct sent {
  int64_t reduce; /* gradients */
  int64_t gather; /* parameters, in stage 0 states too */
  int64_t vote;
};

struct outcome_of_run {
  struct sent before; /* the first step */
  struct sent after;  /* the last step */
  int64_t steps;
  int64_t parameters;
  int64_t kept;    /* parameters and what is kept beside each: masters, moments, scales */
  double accuracy; /* percent */
  uint64_t hash;
  int64_t skipped; /* steps */
  double loss_scale;
};

/// Prints the head of the table to standard output.
void report_header(void);

/// Counts what is kept of `tensors` tensors. Returns 0, or -1 after a line on standard error.

/// Reads the counters. Returns 0, or -1 after a line on standard error.
int report_sent(const zero_optimizer *optimizer, struct sent *out);

/// Memory of this rank, for report_memory: categories of zero_memory, each now, peak, formula, constant.
enum { kReportCategories = ZERO_MEMORY_WORKSPACE + 1, kReportFields = 4 };
struct report_memory {
  int64_t nbytes[kReportCategories][kReportFields];
};
int report_memory(const zero_optimizer *optimizer, struct report_memory *out);

/// Opens --report-file, and writes what is known before the training. Returns 0, or -1 after a line
/// on standard error.
int report_open(const struct options *options, FILE **out);

/// A collective: rank 0 prints the row, writes the rest of the file, or both, as the options say;
/// memory is that of the largest rank. `file` is NULL on the other ranks.
int report_write(zero_group *group, const struct options *options, const struct report_memory *memory, const struct outcome_of_run *run,
                 FILE *file);

#endif
