/// @file shape: three models, and how their tensors follow from a few sizes.
/// Knows nothing of what layers compute.
#include "shape.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct shape kModels[] = {
    {.name = "tiny", .blocks = 4, .heads = 4, .width = 256, .vocabulary = kByteCount, .places = 128, .context = 128},
    {.name = "small", .blocks = 6, .heads = 6, .width = 384, .vocabulary = kByteCount, .places = 256, .context = 256},
    {.name = "gpt2", .blocks = 12, .heads = 12, .width = 768, .vocabulary = 50257, .places = 1024, .context = 256},
};

const char shape_names[] = "tiny, small or gpt2";

/// Registers a tensor and gives its number. `columns` is 0 for a vector.
static int add(struct shape *s, const char *name, int64_t rows, int64_t columns, double deviation, double constant) {
  struct tensor *t = &s->tensors[s->tensor_count];
  *t = (struct tensor){.extents = {rows, columns}, .ndim = columns ? 2 : 1, .deviation = deviation, .constant = constant};
  t->count = columns ? rows * columns : rows;
  snprintf(t->name, sizeof t->name, "%s", name);
  s->parameters += t->count;
  return s->tensor_count++;
}

static void add_layer(struct shape *s, enum layer_kind kind, int block, int first, int second) {
  s->layers[s->layer_count++] = (struct layer){.kind = kind, .block = block, .tensors = {first, second}};
}

/// A layer of a block: `name` is the part of its tensors' names that stands before the last dot.
static void add_block_layer(struct shape *s, enum layer_kind kind, int block, const char *name, int64_t inputs, int64_t outputs,
                            double deviation) {
  char full[48];
  snprintf(full, sizeof full, "transformer.h.%d.%s.weight", block, name);
  const int is_norm = inputs == 0;
  const int weight = is_norm ? add(s, full, outputs, 0, 0, 1) : add(s, full, inputs, outputs, deviation, 0);
  snprintf(full, sizeof full, "transformer.h.%d.%s.bias", block, name);
  add_layer(s, kind, block, weight, add(s, full, outputs, 0, 0, 0));
}

/// As GPT-2 begins: deviation 0.02, and less for what is added to the sum that runs through all
/// blocks (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019, section 2.3).
static void add_block(struct shape *s, int block) {
  const int64_t w = s->width;
  const double added = 0.02 / sqrt(2.0 * (double)s->blocks);
  add_block_layer(s, kAttentionNorm, block, "ln_1", 0, w, 0);
  add_block_layer(s, kAttentionIn, block, "attn.c_attn", w, 3 * w, 0.02);
  add_block_layer(s, kAttentionOut, block, "attn.c_proj", w, w, added);
  add_block_layer(s, kMlpNorm, block, "ln_2", 0, w, 0);
  add_block_layer(s, kMlpIn, block, "mlp.c_fc", w, 4 * w, 0.02);
  add_block_layer(s, kMlpOut, block, "mlp.c_proj", 4 * w, w, added);
}

void shape_fill(struct shape *s, int tied) {
  s->tied = tied;
  const int tokens = add(s, "transformer.wte.weight", s->vocabulary, s->width, 0.02, 0);
  add_layer(s, kEmbedding, 0, tokens, add(s, "transformer.wpe.weight", s->places, s->width, 0.01, 0));
  for (int block = 0; block < s->blocks; block++) add_block(s, block);
  const int weight = add(s, "transformer.ln_f.weight", s->width, 0, 0, 1);
  add_layer(s, kFinalNorm, 0, weight, add(s, "transformer.ln_f.bias", s->width, 0, 0, 0));
  add_layer(s, kHead, 0, tied ? tokens : add(s, "lm_head.weight", s->vocabulary, s->width, 0.02, 0), -1);
}

int shape_of(const char *name, int tied, struct shape *out) {
  size_t at = 0;
  while (at < sizeof kModels / sizeof *kModels && strcmp(kModels[at].name, name) != 0) at++;
  if (at == sizeof kModels / sizeof *kModels) return -1;
  *out = kModels[at];
  shape_fill(out, tied);
  return 0;
}
