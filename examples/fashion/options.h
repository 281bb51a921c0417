/// @file options: the command line of train_fashion.
/// Knows nothing of what the options do.
#ifndef FASHION_OPTIONS_H
#define FASHION_OPTIONS_H

#include <stdint.h>

#include "../replicas.h"
#include "../saves.h"
#include "../servers.h"
#include "recipe.h"

enum mode { kModeNotGiven, kModeThreads, kModeProcesses, kModeLauncher };

struct options {
  int64_t ranks; /* 0: as many as the launcher started (kModeLauncher) */
  enum mode mode;
  int64_t stage;
  int64_t bucket_nbytes;
  const char *data;
  int64_t epochs;
  int64_t batch;  /* of all ranks together */
  int64_t steps;  /* 0: all steps of all epochs */
  int64_t device; /* CUDA's number of it; -1: the host */
  int own_device; /* each rank has the device of its number on its host instead */
  int32_t tier;   /* a zero_tier */
  const struct recipe *recipe;
  double lr; /* the first */
  int64_t seed;
  int32_t divisor;    /* a zero_divisor */
  int32_t dtype;      /* of parameters and gradients */
  int64_t accumulate; /* micro-steps per step */
  int32_t manner;     /* a zero_micro_step: of all micro-steps but the last of a step */
  double clip_norm;   /* 0: gradients are not clipped */
  int dynamic_scale;
  double loss_scale;  /* the first */
  double first_scale; /* 0: not given */
  int64_t limit;      /* 0: all training images */
  const char *losses;
  const char *init;
  const char *report_file;
  int report;
  int quiet;
  int caller_memory;
  struct save_options saves;
  struct replica_options replicas;
  struct server_options servers;
};

enum outcome { kOutcomeRun, kOutcomeDone, kOutcomeWrong };

/// Reads the command line. kOutcomeDone after --help and --report-header, kOutcomeWrong after one line on standard error.
enum outcome options_parse(int argc, char **argv, struct options *out);

#endif
