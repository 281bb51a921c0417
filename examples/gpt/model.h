/// @file model: the activations of a GPT, and its layers one by one, forward and backward.
/// Knows nothing of ranks or of libzero: parameters and gradients are plain pointers of the caller.
#ifndef GPT_MODEL_H
#define GPT_MODEL_H

#include <stdint.h>

#include "real.h"
#include "shape.h"

struct model {
  const struct shape *shape;
  int64_t sequences; /* room */
  int64_t length;    /* tokens of each */
  int64_t first;     /* of a forward pass: the tokens [first, first + count) of each sequence; */
  int64_t count;     /* with first above 0 there is one sequence, whose earlier tokens went before */
  real loss_factor;
  const int32_t *ids;     /* [sequences][length] */
  const int32_t *targets; /* the same */
  double loss;            /* sum over the tokens of the last forward pass with targets */
  real *memory;           /* holds all below */
  real *stream;           /* [2 * blocks + 1]: the sum that runs through all blocks, before each half of a block and at the end */
  real *norms;            /* [2 * blocks + 1] */
  real *means, *scales;   /* [2 * blocks + 1], a number for each token */
  real *qkv, *probabilities, *attended, *inner, *active; /* [blocks] */
  real *logits;
  real *gradient, *wide_gradient, *narrow_gradient, *scratch; /* of the stream; of what a layer has inside */
};

/// Room for `sequences` of `length` tokens each, all of it touched. Without `backward` it is enough
/// for forward passes. Returns 0, or -1 when memory is short.
int model_create(struct model *model, const struct shape *shape, int64_t sequences, int64_t length, int backward);
void model_release(struct model *model);
int64_t model_nbytes(const struct model *model);

/// Begins a forward pass over whole sequences; model_continue over one more part of a single one.
/// Without targets the head leaves its logits in `logits`; with targets it adds up their loss.
void model_begin(struct model *model, const int32_t *ids, const int32_t *targets);
void model_continue(struct model *model, const int32_t *ids, int64_t first, int64_t count);

/// One layer, called in order; params[1] of the head is NULL.
void model_forward(struct model *model, int layer, const real *const params[2]);

/// Backward, in the reverse order. The head computes forward too, with the loss: it needs no call of
/// model_forward before. Its gradient is that of loss_factor times the loss. Of params only [0]
/// is read, and none by the embedding. Gradients are overwritten where add is 0, else added to. A
/// table that head and embedding share gets all of its gradient from the embedding, which comes last;
/// gradients[0] of the head is then NULL.
void model_backward(struct model *model, int layer, const real *const params[2], real *const gradients[2], const int add[2]);

#endif
