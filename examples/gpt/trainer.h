/// @file trainer: one rank's part of the training: the file that shows how libzero is used.
/// Knows nothing of how ranks are started or what is printed.
#ifndef GPT_TRAINER_H
#define GPT_TRAINER_H

#include <stdint.h>
#include <stdio.h>
#include <zero/zero.h>

#include "model.h"
#include "options.h"
#include "parameters.h"
#include "shape.h"
#include "text.h"
#include "../saves.h"

/// What all ranks share; read only.
struct run {
  const struct options *options;
  struct shape shape;
  struct text text;
  int64_t *stop_reason; /* of the run, where all processes see it */
};

struct trainer {
  const struct run *run;
  zero_group *group; /* with --server, of this rank alone */
  int64_t rank;
  int64_t size;
  zero_optimizer *optimizer;
  struct parameters parameters;
  struct model model;
  int64_t sequences; /* of this rank in a micro-step */
  int32_t *ids;      /* [sequences][context] */
  int32_t *targets;
  int64_t steps_ns;       /* time in steps so far */
  struct saves saves;
  int64_t first_step; /* where a run that was saved goes on */
  int64_t stopped;    /* the reason for which all ranks stop; 0: none */
  int64_t process_before; /* bytes of the process before the optimizer was made */
};

/// What a step was like, the same on all ranks.
struct step {
  double loss; /* mean over the tokens of all ranks */
  double lr;
  double grad_norm; /* 0 without clipping */
  int64_t skipped;  /* 1: a gradient was not finite */
  int64_t stop_reason; /* 0: go on */
};

/// All functions but release are collectives, and return 0, or -1 after a line on standard error.

/// Makes everything up to the first step, from `run` and `group`; all else is zero before. A worker of servers has no optimizer:
/// `parameters` gets flat arrays from the caller.
int trainer_create(struct trainer *trainer, int is_worker);

/// Also after a failure; releases the group too.
void trainer_release(struct trainer *trainer);

/// On a server, after trainer_create: first values of all parameters, one after another. The optimizer that made them is gone then.
int trainer_first_values(struct trainer *trainer, float *out);

/// On a worker: the gradient of batch `step` in the flat array of `parameters`, and the mean loss over its tokens.
int trainer_gradient(struct trainer *trainer, int64_t step, double *out_loss);

/// The algorithm and its rates.
int trainer_configure(zero_config *config, const struct options *options);

/// Step `step` from 0. The reduced gradients go to a file too, when one is given, on rank 0.
int trainer_step(struct trainer *trainer, int64_t step, int write_gradients, FILE *gradients, struct step *out);

/// Mean loss over sequences that are spread over the validation part.
int trainer_validate(struct trainer *trainer, double *out_loss);

/// All parameters as raw fp32 numbers, in order, on rank 0, whose `file` it is.
int trainer_write_parameters(struct trainer *trainer, FILE *file);

/// FNV-1a of all parameters, on rank 0; 0 on others.
int trainer_hash(struct trainer *trainer, uint64_t *out_hash);

#endif
