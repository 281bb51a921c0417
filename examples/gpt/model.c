/// @file model: where activations lie, and which layer reads and writes which.
/// Knows nothing of ranks or of libzero.
#include "model.h"

#include <stdlib.h>

#include "layers.h"

/// The next `count` elements of the memory; without memory only counts them.
static void carve(const struct model *m, int64_t *used, int64_t count, real **out) {
  const int64_t kLine = 16; /* elements */
  *out = m->memory ? m->memory + *used : NULL;
  *used += (count + kLine - 1) / kLine * kLine;
}

static int64_t carve_all(struct model *m, int backward) {
  const struct shape *s = m->shape;
  const int64_t rows = m->sequences * m->length;
  const int64_t halves = 2 * s->blocks + 1;
  int64_t used = 0;
  carve(m, &used, halves * rows * s->width, &m->stream);
  carve(m, &used, halves * rows * s->width, &m->norms);
  carve(m, &used, halves * rows, &m->means);
  carve(m, &used, halves * rows, &m->scales);
  carve(m, &used, s->blocks * rows * 3 * s->width, &m->qkv);
  carve(m, &used, s->blocks * rows * s->heads * m->length, &m->probabilities);
  carve(m, &used, s->blocks * rows * s->width, &m->attended);
  carve(m, &used, s->blocks * rows * 4 * s->width, &m->inner);
  carve(m, &used, s->blocks * rows * 4 * s->width, &m->active);
  carve(m, &used, rows * s->vocabulary, &m->logits);
  if (!backward) return used;
  carve(m, &used, rows * s->width, &m->gradient);
  carve(m, &used, rows * 4 * s->width, &m->wide_gradient);
  carve(m, &used, rows * s->width, &m->narrow_gradient);
  carve(m, &used, kQueries * m->length, &m->scratch);
  return used;
}

int model_create(struct model *m, const struct shape *shape, int64_t sequences, int64_t length, int backward) {
  *m = (struct model){.shape = shape, .sequences = sequences, .length = length};
  const size_t nbytes = (size_t)carve_all(m, backward) * sizeof(real);
  m->memory = aligned_alloc(64, nbytes);
  if (!m->memory) return -1;
  memset(m->memory, 0, nbytes);
  carve_all(m, backward);
  return 0;
}

void model_release(struct model *m) { free(m->memory); }

int64_t model_nbytes(const struct model *m) {
  struct model counted = {.shape = m->shape, .sequences = m->sequences, .length = m->length};
  return carve_all(&counted, m->gradient != NULL) * (int64_t)sizeof(real);
}

void model_begin(struct model *m, const int32_t *ids, const int32_t *targets) {
  m->ids = ids;
  m->targets = targets;
  m->first = 0;
  m->count = m->length;
  m->loss = 0;
}

void model_continue(struct model *m, const int32_t *ids, int64_t first, int64_t count) {
  model_begin(m, ids, NULL);
  m->first = first;
  m->count = count;
}

/// Tokens of this pass, and activations of `width` elements each where they begin.
static int64_t rows_of(const struct model *m) { return m->first ? m->count : (m->sequences - 1) * m->length + m->count; }
static real *at(const struct model *m, real *base, int64_t index, int64_t width) {
  return base + (index * m->sequences * m->length + m->first) * width;
}
static real *stream(const struct model *m, int64_t half) { return at(m, m->stream, half, m->shape->width); }
static real *norm(const struct model *m, int64_t half) { return at(m, m->norms, half, m->shape->width); }

static struct attention attention(const struct model *m) {
  return (struct attention){m->sequences, m->length, m->first, m->count, m->shape->heads, m->shape->width};
}

/// Attention addresses whole sequences.
static real *qkv(const struct model *m, int64_t block) { return m->qkv + block * m->sequences * m->length * 3 * m->shape->width; }
static real *attended(const struct model *m, int64_t block) { return m->attended + block * m->sequences * m->length * m->shape->width; }
static real *probabilities(const struct model *m, int64_t block) {
  return m->probabilities + block * m->sequences * m->length * m->shape->heads * m->length;
}

static void norm_layer(struct model *m, int64_t half, const real *const params[2]) {
  norm_forward(stream(m, half), params[0], params[1], rows_of(m), m->shape->width, norm(m, half), at(m, m->means, half, 1),
               at(m, m->scales, half, 1));
}

static void head_forward(struct model *m, const real *weight) {
  const struct shape *s = m->shape;
  const int64_t rows = rows_of(m);
  real *logits = at(m, m->logits, 0, s->vocabulary);
  head_logits(norm(m, 2 * s->blocks), weight, rows, s->width, s->vocabulary, logits);
  if (m->targets) m->loss = loss_forward(logits, m->targets, rows, s->vocabulary);
}

void model_forward(struct model *m, int layer, const real *const params[2]) {
  const struct layer *l = &m->shape->layers[layer];
  const struct attention shape = attention(m);
  const int64_t rows = rows_of(m);
  const int64_t w = m->shape->width;
  const int64_t half = 2 * l->block;
  switch (l->kind) {
    case kEmbedding:
      embedding_forward(m->ids + m->first, params[0], params[1], rows, m->length, m->first, w, stream(m, 0));
      break;
    case kAttentionNorm:
      norm_layer(m, half, params);
      break;
    case kAttentionIn:
      linear_forward(norm(m, half), params[0], params[1], NULL, rows, w, 3 * w, at(m, m->qkv, l->block, 3 * w));
      break;
    case kAttentionOut:
      attention_forward(&shape, qkv(m, l->block), probabilities(m, l->block), attended(m, l->block));
      linear_forward(at(m, m->attended, l->block, w), params[0], params[1], stream(m, half), rows, w, w, stream(m, half + 1));
      break;
    case kMlpNorm:
      norm_layer(m, half + 1, params);
      break;
    case kMlpIn:
      linear_forward(norm(m, half + 1), params[0], params[1], NULL, rows, w, 4 * w, at(m, m->inner, l->block, 4 * w));
      break;
    case kMlpOut:
      gelu_forward(at(m, m->inner, l->block, 4 * w), rows * 4 * w, at(m, m->active, l->block, 4 * w));
      linear_forward(at(m, m->active, l->block, 4 * w), params[0], params[1], stream(m, half + 1), rows, 4 * w, w, stream(m, half + 2));
      break;
    case kFinalNorm:
      norm_layer(m, 2 * m->shape->blocks, params);
      break;
    case kHead:
      head_forward(m, params[0]);
      break;
  }
}

/// Adds to the gradient of the stream.
static void norm_layer_backward(struct model *m, int64_t half, const real *weight, real *const gradients[2], const int add[2]) {
  norm_backward(stream(m, half), at(m, m->means, half, 1), at(m, m->scales, half, 1), weight, m->narrow_gradient, rows_of(m),
                m->shape->width, m->gradient, gradients[0], add[0], gradients[1], add[1]);
}

static void head_layer_backward(struct model *m, const real *weight, real *const gradients[2], const int add[2]) {
  const struct shape *s = m->shape;
  const int64_t rows = rows_of(m);
  const real *in = norm(m, 2 * s->blocks);
  head_logits(in, weight, rows, s->width, s->vocabulary, m->logits);
  m->loss = loss_backward(m->logits, m->targets, rows, s->vocabulary, m->loss_factor);
  head_backward(weight, m->logits, rows, s->width, s->vocabulary, m->narrow_gradient);
  if (!s->tied) head_table_backward(in, m->logits, rows, s->width, s->vocabulary, gradients[0], add[0]);
  memset(m->gradient, 0, (size_t)(rows * s->width) * sizeof(real)); /* ln_f adds the first part of it */
}

/// With a tied head its part of the token table's gradient comes first: what it is made from was kept.
static void embedding_layer_backward(struct model *m, real *const gradients[2], const int add[2]) {
  const struct shape *s = m->shape;
  const int64_t rows = rows_of(m);
  if (s->tied) head_table_backward(norm(m, 2 * s->blocks), m->logits, rows, s->width, s->vocabulary, gradients[0], add[0]);
  embedding_backward(m->ids, m->gradient, rows, m->length, s->width, s->vocabulary, s->places, gradients[0], s->tied || add[0],
                     gradients[1], add[1]);
}

void model_backward(struct model *m, int layer, const real *const params[2], real *const gradients[2], const int add[2]) {
  const struct shape *s = m->shape;
  const struct layer *l = &s->layers[layer];
  const struct attention shape = attention(m);
  const int64_t rows = rows_of(m);
  const int64_t w = s->width;
  const int64_t half = 2 * l->block;
  switch (l->kind) {
    case kHead:
      head_layer_backward(m, params[0], gradients, add);
      break;
    case kFinalNorm:
      norm_layer_backward(m, 2 * s->blocks, params[0], gradients, add);
      break;
    case kMlpOut:
      linear_backward(at(m, m->active, l->block, 4 * w), params[0], m->gradient, rows, 4 * w, w, m->wide_gradient, gradients[0], add[0],
                      gradients[1], add[1]);
      gelu_backward(at(m, m->inner, l->block, 4 * w), m->wide_gradient, rows * 4 * w, m->wide_gradient);
      break;
    case kMlpIn:
      linear_backward(norm(m, half + 1), params[0], m->wide_gradient, rows, w, 4 * w, m->narrow_gradient, gradients[0], add[0],
                      gradients[1], add[1]);
      break;
    case kMlpNorm:
      norm_layer_backward(m, half + 1, params[0], gradients, add);
      break;
    case kAttentionOut:
      linear_backward(attended(m, l->block), params[0], m->gradient, rows, w, w, m->narrow_gradient, gradients[0], add[0], gradients[1],
                      add[1]);
      attention_backward(&shape, qkv(m, l->block), probabilities(m, l->block), m->narrow_gradient, m->scratch, m->wide_gradient);
      break;
    case kAttentionIn:
      linear_backward(norm(m, half), params[0], m->wide_gradient, rows, w, 3 * w, m->narrow_gradient, gradients[0], add[0], gradients[1],
                      add[1]);
      break;
    case kAttentionNorm:
      norm_layer_backward(m, half, params[0], gradients, add);
      break;
    case kEmbedding:
      embedding_layer_backward(m, gradients, add);
      break;
  }
}
