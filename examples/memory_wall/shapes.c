/// @file shapes: embeddings, blocks, and the output layer, which is the embedding of tokens under another name.
/// Knows nothing of ranks or of libzero.
#include "shapes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { kPerBlock = 12, kOthers = 5 };

static const double kDeviation = 0.02;

/// Appends a tensor; columns is 0 for one with a single dimension.
static void add(struct shapes *shapes, const char *name, int64_t rows, int64_t columns, double mean, double deviation) {
  struct tensor *tensor = &shapes->tensors[shapes->count++];
  *tensor = (struct tensor){.shape = {rows, columns}, .mean = mean, .deviation = deviation, .tied_to = -1};
  snprintf(tensor->name, sizeof tensor->name, "%s", name);
  tensor->ndim = columns > 0 ? 2 : 1;
  tensor->count = columns > 0 ? rows * columns : rows;
  shapes->parameters += tensor->count;
}

/// A tensor of block `block`; its weight and then its bias.
static void add_pair(struct shapes *shapes, int64_t block, const char *part, int64_t rows, int64_t columns, double mean, double deviation) {
  char name[32];
  snprintf(name, sizeof name, "h%lld.%s.weight", (long long)block, part);
  add(shapes, name, rows, columns, mean, deviation);
  snprintf(name, sizeof name, "h%lld.%s.bias", (long long)block, part);
  add(shapes, name, columns > 0 ? columns : rows, 0, 0, 0);
}

/// Layers that end a residual branch begin smaller, by the root of their number.
static void add_block(struct shapes *shapes, const struct size *size, int64_t block) {
  const int64_t width = size->width;
  const double residual = kDeviation / sqrt(2.0 * (double)size->layers);
  add_pair(shapes, block, "ln_1", width, 0, 1, 0);
  add_pair(shapes, block, "attn.c_attn", width, 3 * width, 0, kDeviation);
  add_pair(shapes, block, "attn.c_proj", width, width, 0, residual);
  add_pair(shapes, block, "ln_2", width, 0, 1, 0);
  add_pair(shapes, block, "mlp.c_fc", width, 4 * width, 0, kDeviation);
  add_pair(shapes, block, "mlp.c_proj", 4 * width, width, 0, residual);
}

int shapes_create(const struct size *size, struct shapes *out) {
  *out = (struct shapes){.tensors = calloc((size_t)(kPerBlock * size->layers + kOthers), sizeof *out->tensors)};
  if (!out->tensors) return -1;
  add(out, "wte", size->vocabulary, size->width, 0, kDeviation);
  add(out, "wpe", size->context, size->width, 0, kDeviation / 2);
  for (int64_t block = 0; block < size->layers; block++) add_block(out, size, block);
  add(out, "ln_f.weight", size->width, 0, 1, 0);
  add(out, "ln_f.bias", size->width, 0, 0, 0);
  add(out, "lm_head", size->vocabulary, size->width, 0, 0);
  out->tensors[out->count - 1].tied_to = 0;
  out->parameters -= out->tensors[0].count;
  return 0;
}

void shapes_release(struct shapes *shapes) { free(shapes->tensors); }
