/// @file layers: a layer's parameters and gradients as the model wants them, fp32, wherever and in whatever precision they are kept.
/// Knows nothing of steps or samples.
#ifndef FASHION_LAYERS_H
#define FASHION_LAYERS_H

#include <stdint.h>
#include <zero/zero.h>

#include "compute.h"
#include "model.h"
#include "options.h"

struct layers {
  zero_optimizer *optimizer;     /* not its owner */
  struct compute *compute;       /* the same */
  const float *flat_params;      /* not its owner: of all tensors one after another, instead of an optimizer; NULL: there is one */
  float *flat_gradients;         /* the same; not needed without backward */
  int32_t dtype;                 /* of parameters and gradients */
  void *params[kTensorCount];    /* in the program's own memory, otherwise NULL: libzero's */
  void *gradients[kTensorCount]; /* the same */
  float *wide_params[2];         /* of the layer in use, when the dtype is not fp32 */
  float *wide_gradients[2];
  void *acquired[2]; /* where the gradients of the layer in use go in their own precision */
};

/// All functions but release return 0, or -1 after a line on standard error. The optimizer, or the
/// flat arrays, are set later, before the first acquire.
int layers_create(struct layers *layers, const struct options *options, struct compute *compute);
void layers_release(struct layers *layers);

/// Weight and bias of a layer. Calls must be the same on all ranks: in stage 3 the parameters are gathered now.
int layers_acquire(struct layers *layers, int layer, const float *out[2]);
int layers_give_back(struct layers *layers, int layer);

/// Where to add the gradients of weight and bias, and that they are complete; libzero may reduce them from then on.
int layers_gradients(struct layers *layers, int layer, float *out[2]);
int layers_ready(struct layers *layers, int layer);

/// First values of one parameter, given in fp32.
int layers_write_first(struct layers *layers, int id, const float *values);

#endif
