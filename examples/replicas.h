/// @file replicas: the options of a run whose ranks hold several replicas of the model. Knows nothing of models and data.
#ifndef EXAMPLES_REPLICAS_H
#define EXAMPLES_REPLICAS_H

#include <stdint.h>
#include <zero/zero.h>

struct replica_options {
  int64_t ranks;        /* of one replica; 0: all, -1: those of a host */
  int64_t param_ranks;  /* that hold all parameters of stage 3 between them; 0: as states, -1: those of a host */
  int64_t every;        /* steps from one synchronisation to the next; 0 and 1: replicas make every step together */
  int64_t after;        /* steps before which replicas make every step together */
  int64_t nesterov;     /* synchronisations end with an outer step */
  int64_t fragments;    /* parts of the model that meet in turn; 0 and 1: all at once */
  int64_t delay;        /* steps from the values that travel to the use of the result */
  double mix;           /* the weight of own values beside the result */
  int64_t neighbours;   /* a zero_neighbours: the replicas that meet */
  int64_t grad_code;    /* a zero_code: of sums of gradients between replicas */
  int64_t sync_code;    /* a zero_code: of changes of parameters */
  int64_t gather_code;  /* a zero_code: of differences by which parameters follow their masters */
  int64_t code_top;     /* values of 256 that a code keeps; 0: the code is another */
  int64_t code_rank;    /* of factors of matrices; 0: the code is another */
  int64_t code_after;   /* steps before which nothing is coded */
  int64_t code_freeze;  /* codes carry the first moment of Adam, and its second moment stays */
  double code_momentum; /* of gradients before the code, in the place of the optimizer's own */
  int64_t residual;     /* a zero_residual */
  int64_t grad_delay;   /* steps by which updates lag behind their gradients */
  int64_t flush;        /* steps from one that sends all in full to the next; 0: none does */
  const char *strategy; /* sets what is not given by its name; NULL: none */
};

extern const char replica_usage[]; /* lines of a usage text */

/// One option without its dashes: 1 when it is one of these and was taken, 0 for another, -1 after a line on standard error.
int replica_option(struct replica_options *options, const char *name, const char *text);

/// 0, or -1 after a line on standard error.
int replica_configure(const struct replica_options *options, zero_config *config);

/// What step `step` (0, 1, ...) reports of a stop concerns all ranks where replicas are together; until then it is 0.
int64_t replica_stop(const struct replica_options *options, int64_t step, const zero_step_result *result);

#endif
