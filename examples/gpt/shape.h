/// @file shape: the models that --model names: their sizes, tensors and layers.
/// Knows nothing of what layers compute.
#ifndef GPT_SHAPE_H
#define GPT_SHAPE_H

#include <stdint.h>

enum { kMostTensors = 160, kMostLayers = 80, kByteCount = 256 };

/// Names, shapes and orientation are those of Hugging Face's GPT-2: weights are inputs x outputs.
struct tensor {
  char name[48];
  int64_t extents[2];
  int ndim;
  int64_t count;
  double deviation; /* of first values, which are normal around 0; 0: they are all `constant` */
  double constant;
};

enum layer_kind {
  kEmbedding,
  kAttentionNorm,
  kAttentionIn,  /* query, key and value */
  kAttentionOut, /* attention, and the product behind it */
  kMlpNorm,
  kMlpIn,
  kMlpOut, /* GELU, and the product behind it */
  kFinalNorm,
  kHead
};

/// What computes with one or two tensors. The model runs its layers in order, and back.
struct layer {
  enum layer_kind kind;
  int block;
  int tensors[2]; /* weight and bias; token and place table; the head has one, the other is -1 */
};

struct shape {
  const char *name;
  int64_t blocks, heads, width, vocabulary;
  int64_t places;  /* rows of the place table: no sequence is longer */
  int64_t context; /* tokens of a sequence in training, if not said otherwise */
  int tied;        /* the head multiplies with the token table */
  int tensor_count;
  struct tensor tensors[kMostTensors];
  int layer_count;
  struct layer layers[kMostLayers];
  int64_t parameters;
};

/// Returns 0, or -1 when no model has that name; nothing is written then.
int shape_of(const char *name, int tied, struct shape *out);
/// Tensors and layers of a shape that has its sizes, and nothing more yet.
void shape_fill(struct shape *shape, int tied);
extern const char shape_names[];

#endif
