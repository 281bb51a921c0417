/// @file sample: one token at a time, with what attention keeps of those before.
/// Knows nothing of training.
#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"

struct writer {
  struct trainer *trainer;
  struct model model;
  int32_t *ids;  /* [context]: what the model sees */
  int64_t known; /* of ids */
  int64_t done;  /* of ids, those that went through the model */
  uint64_t random;
};

static int forward(struct trainer *t, struct model *model) {
  for (int layer = 0; layer < model->shape->layer_count; layer++) {
    const real *params[2];
    if (parameters_acquire(&t->parameters, layer, 2, params)) return -1;
    model_forward(model, layer, params);
    if (parameters_give_back(&t->parameters, layer, 2)) return -1;
  }
  return 0;
}

/// The tokens that the model has not seen yet.
static int advance(struct writer *w) {
  model_continue(&w->model, w->ids, w->done, w->known - w->done);
  if (forward(w->trainer, &w->model)) return -1;
  w->done = w->known;
  return 0;
}

/// A byte by its probability, of which 1 / temperature is the exponent.
static int32_t draw(struct writer *w) {
  const real *logits = w->model.logits + (w->done - 1) * w->model.shape->vocabulary;
  const double temperature = w->trainer->run->options->temperature;
  double weights[kByteCount];
  double all = 0;
  int32_t likeliest = 0;
  for (int32_t i = 1; i < kByteCount; i++) likeliest = logits[i] > logits[likeliest] ? i : likeliest;
  if (temperature == 0) return likeliest;
  for (int32_t i = 0; i < kByteCount; i++) all += weights[i] = exp((logits[i] - logits[likeliest]) / temperature);
  double place = all * ((double)(random_next(&w->random) >> 11) * 0x1p-53);
  for (int32_t i = 0; i < kByteCount; i++) {
    if ((place -= weights[i]) < 0) return i;
  }
  return likeliest;
}

/// When there is no place left, the later half of what the model saw becomes its beginning.
static void append(struct writer *w, int32_t id) {
  const int64_t length = w->model.length;
  if (w->known == length) {
    const int64_t kept = length / 2;
    memmove(w->ids, w->ids + length - kept, (size_t)kept * sizeof *w->ids);
    w->known = kept;
    w->done = 0;
  }
  w->ids[w->known++] = id;
}

static int write_on(struct writer *w) {
  const struct options *o = w->trainer->run->options;
  for (const char *c = o->sample; *c; c++) append(w, (unsigned char)*c);
  if (w->known == 0) append(w, '\n');
  if (w->trainer->rank == 0) printf("--- sample\n%s", o->sample);
  for (int64_t i = 0; i < o->sample_length; i++) {
    if (advance(w)) return -1;
    const int32_t id = draw(w);
    if (w->trainer->rank == 0) putchar(id);
    append(w, id);
  }
  if (w->trainer->rank == 0) printf("\n---\n");
  return 0;
}

int sample_print(struct trainer *t) {
  const struct options *o = t->run->options;
  struct writer writer = {.trainer = t, .random = random_stream((uint64_t)o->seed, UINT64_C(1) << 63)};
  writer.ids = malloc((size_t)o->context * sizeof *writer.ids);
  int status = !writer.ids || model_create(&writer.model, &t->run->shape, 1, o->context, 0);
  if (status) fprintf(stderr, "train_gpt: out of memory\n");
  status = status || write_on(&writer);
  model_release(&writer.model);
  free(writer.ids);
  return status ? -1 : 0;
}

int sample_write_logits(struct trainer *t, FILE *file) {
  const int64_t length = t->run->options->context;
  struct model model = {.memory = NULL};
  int status = model_create(&model, &t->run->shape, 1, length, 0);
  if (status) fprintf(stderr, "train_gpt: out of memory\n");
  text_copy(&t->run->text, 0, length, t->ids, t->targets);
  model_continue(&model, t->ids, 0, length);
  status = status || forward(t, &model);
  if (!status && file) fwrite(model.logits, sizeof *model.logits, (size_t)(length * model.shape->vocabulary), file); /* files_close() tells */
  model_release(&model);
  return status ? -1 : 0;
}
