/// @file parameters: how a layer's parameters come from libzero, and its gradients go there: the calls that every layer makes.
/// Knows nothing of what layers compute, or of steps.
#ifndef GPT_PARAMETERS_H
#define GPT_PARAMETERS_H

#include <stdint.h>
#include <zero/zero.h>

#include "shape.h"

struct parameters {
  zero_optimizer *optimizer; /* not its owner */
  float *flat;               /* not its owner: all tensors one after another, instead of an optimizer; NULL: there is one */
  float *flat_gradients;     /* the same; not needed without backward */
  const struct shape *shape;
  int32_t dtype;           /* of parameters and gradients */
  float *wide[2];          /* parameters of the layer in use, when the dtype is not fp32 */
  float *wide_gradient[2]; /* the same of gradients */
  void *gradient[2];       /* what libzero gave for them */
  int64_t acquired;        /* elements so far */
  int64_t library_ns;      /* time in libzero so far */
};

/// All functions but release return 0, or -1 after a line on standard error. The optimizer, or the
/// flat arrays, are set later, before the first acquire.
int parameters_create(struct parameters *parameters, const struct shape *shape, int32_t dtype);
void parameters_release(struct parameters *parameters);

/// The first `count` tensors of a layer, 1 or 2, in fp32. The same calls on all ranks: in stage 3 they are gathered now.
int parameters_acquire(struct parameters *parameters, int layer, int count, const float *out[2]);
int parameters_give_back(struct parameters *parameters, int layer, int count);

/// Where the gradients of a layer go, and whether to add to what is there.
int parameters_gradients(struct parameters *parameters, int layer, float *out[2], int add[2]);

/// They are complete, and libzero may reduce them. A table that head and embedding share has its
/// gradient from the embedding alone, the last layer of the way back: no buffer is held until then.
int parameters_ready(struct parameters *parameters, int layer);

/// Monotonic time, of which library_ns is a part.
int64_t parameters_clock(void);

#endif
