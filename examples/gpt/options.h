/// @file options: the command line of train_gpt.
/// Knows nothing of what the options do.
#ifndef GPT_OPTIONS_H
#define GPT_OPTIONS_H

#include <stdint.h>

#include "../replicas.h"
#include "../saves.h"
#include "../servers.h"

enum mode { kModeThreads, kModeProcesses, kModeLauncher };
enum outcome { kOutcomeRun, kOutcomeDone, kOutcomeWrong };

struct options {
  const char *model;
  int untied_head;
  int64_t ranks; /* 0: as many as the launcher started (kModeLauncher) */
  int64_t mode;  /* an enum mode */
  int64_t stage;
  int64_t dtype; /* of parameters and gradients */
  const char *text;
  const char *tokens; /* or NULL */
  int64_t steps;
  int64_t batch;   /* sequences of all ranks in a step */
  int64_t context; /* tokens of a sequence; 0: as the model says */
  int64_t micro_steps;
  double lr; /* the highest */
  int64_t warm_up;
  double weight_decay;
  double clip_norm; /* 0: gradients are not clipped */
  int64_t seed;
  int64_t validate; /* every so many steps; 0: at the end */
  int64_t validation_batches;
  const char *sample; /* or NULL */
  int64_t sample_length;
  double temperature;
  int64_t products; /* an enum products */
  const char *init;   /* these eight: or NULL */
  const char *export_to;
  const char *csv;
  const char *plot;
  const char *report_file;
  const char *write_first;
  const char *write_gradients;
  const char *write_logits;
  int report;
  int report_header;
  int quiet;
  struct save_options saves;
  struct replica_options replicas;
  struct server_options servers;
};

/// Reads the command line. kOutcomeDone after --help and --report-header, kOutcomeWrong after one line on standard error.
enum outcome options_parse(int argc, char **argv, struct options *out);

#endif
