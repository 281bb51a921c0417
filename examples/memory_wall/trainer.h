/// @file trainer: one rank of memory_wall: the file that shows how a model is trained that no rank could hold.
/// Knows nothing of how ranks are started.
#ifndef MEMORY_WALL_TRAINER_H
#define MEMORY_WALL_TRAINER_H

#include <stdint.h>
#include <zero/zero.h>

#include "options.h"
#include "shapes.h"

struct trainer {
  const struct options *options;
  const struct shapes *shapes;
  zero_group *group;
  int64_t rank;
  zero_optimizer *optimizer;
  float *chunk; /* a part of one gradient */
};

/// 1 after a line on standard error that tells why a call failed, 0 for ZERO_OK.
int failed(int32_t status, const char *call);

/// All functions below but release are collectives, and return 0, or -1 after a line on standard error.

/// From options, shapes, group and rank: an optimizer of a stage, sealed. *out_status tells whether the stage fits: ZERO_OK, or
/// ZERO_E_OUT_OF_MEMORY (no failure; the optimizer is gone again).
int trainer_create(struct trainer *trainer, int64_t stage, int32_t *out_status);
void trainer_release(struct trainer *trainer);

/// Every rank makes the first values of its own shards.
int trainer_first_values(struct trainer *trainer);

/// One step towards zero: the loss is half the sum of squares of all parameters, so that gradients need no data. *out_mean_square is that
/// of the parameters before the step.
int trainer_step(struct trainer *trainer, double *out_mean_square);

/// Bytes of all ranks that were compared with what the last step left, and pieces that differ.
int trainer_verify(struct trainer *trainer, int64_t *out_nbytes, int64_t *out_differing);

#endif
