/// @file trainer: one rank's part of the training: the file that shows how libzero is used.
/// Knows nothing of how ranks are started or where images come from.
#ifndef FASHION_TRAINER_H
#define FASHION_TRAINER_H

#include <stdint.h>
#include <zero/zero.h>

#include "compute.h"
#include "idx.h"
#include "layers.h"
#include "model.h"
#include "options.h"
#include "report.h"
#include "sampler.h"
#include "../saves.h"

/// What all ranks share; read only.
struct run {
  const struct options *options;
  struct dataset train;
  struct dataset test;
  const float *first_values; /* all parameters one after another, or NULL: made from the seed */
  int64_t *stop_reason;      /* of the run, where all processes see it */
};

struct trainer {
  const struct run *run;
  zero_group *group; /* with --server, of this rank alone */
  int64_t rank;
  int64_t size;
  int64_t device; /* CUDA's number of it; -1: the host */
  zero_optimizer *optimizer;
  struct compute *compute;
  struct sampler sampler;
  struct layers layers;
  int64_t capacity;       /* samples that fit the model at once */
  const uint8_t **images; /* [capacity] */
  uint8_t *labels;        /* [capacity] */
  double loss_scale;      /* of the next step */
  int64_t skipped;        /* steps so far */
  int64_t stop_reason;    /* that the newest step has told; 0: none */
  int64_t first_step;     /* where a run that was saved goes on */
  struct saves saves;
};

/// All functions but release are collectives, and return 0, or -1 after a line on standard error.

/// Makes everything up to the first step, from `run` and `group`; all else is zero before. With --server that is no optimizer: `layers`
/// gets flat arrays from the caller.
int trainer_create(struct trainer *trainer);

/// Also after a failure; releases the group too.
void trainer_release(struct trainer *trainer);

int64_t trainer_steps_in_all(const struct trainer *trainer);

/// Step `step` from 0, in as many micro-steps as the options say: the mean loss over the samples of all ranks, and their number.
int trainer_step(struct trainer *trainer, int64_t step, double *out_loss, int64_t *out_samples);

/// First values of all parameters, one after another. Not a collective.
void trainer_first_values(const struct trainer *trainer, float *out);

/// On a worker of servers: the gradient of batch `step` in the flat array of `layers`. Returns the
/// mean loss over its samples, and their number.
int trainer_gradient(struct trainer *trainer, int64_t step, double *out_loss, int64_t *out_samples);

/// Percent of the test images classified correctly; each rank looks at its share.
int trainer_evaluate(struct trainer *trainer, double *out_percent);

/// FNV-1a of all parameters, the same on all ranks.
int trainer_hash(struct trainer *trainer, uint64_t *out_hash);

#endif
