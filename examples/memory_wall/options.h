/// @file options: the command line of memory_wall.
/// Knows nothing of what the options do.
#ifndef MEMORY_WALL_OPTIONS_H
#define MEMORY_WALL_OPTIONS_H

#include <stdint.h>

#include "shapes.h"

struct options {
  struct size size;
  int64_t ranks;
  int64_t steps;
  double limit_gib; /* 0: what the machine has */
};

enum outcome { kOutcomeRun, kOutcomeDone, kOutcomeWrong };

/// Reads the command line. kOutcomeDone after --help, kOutcomeWrong after one line on standard error.
enum outcome options_parse(int argc, char **argv, struct options *out);

#endif
