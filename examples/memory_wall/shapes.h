/// @file shapes: the tensors of a GPT-2 (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019), by size.
/// Knows nothing of ranks or of libzero.
#ifndef MEMORY_WALL_SHAPES_H
#define MEMORY_WALL_SHAPES_H

#include <stdint.h>

struct size {
  int64_t layers;
  int64_t width;
  int64_t vocabulary;
  int64_t context; /* positions */
};

struct tensor {
  char name[32];
  int64_t shape[2];
  int64_t ndim;
  int64_t count;
  double mean;      /* of its first values, which are normal */
  double deviation; /* 0: constant */
  int64_t tied_to;  /* the tensor whose memory it shares, or -1 */
};

struct shapes {
  struct tensor *tensors; /* in the order in which a forward pass uses them */
  int64_t count;
  int64_t parameters; /* elements, tied ones once */
};

/// Returns 0, or -1 when memory is short.
int shapes_create(const struct size *size, struct shapes *out);
void shapes_release(struct shapes *shapes);

#endif
