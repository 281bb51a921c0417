/// @file saves: runs that go on from a save, what else a save holds, and saves as tools see them.
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zero/zero.h>

#include "check.h"
#include "model.h"
#include "scenarios.h"
#include "values.h"

enum { kSteps = 5, kCount = 10, kBufferCount = 1000 };

static const int64_t shape_of_tensor[] = {kCount};

/// A new empty folder, whose name it returns; remove_folder ends it.
static void make_folder(char *path, size_t nbytes) {
  const char *parent = getenv("TMPDIR");
  snprintf(path, nbytes, "%s/zero-conformance-XXXXXX", parent ? parent : "/tmp");
  if (mkdtemp(path) != NULL) return;
  perror("conformance: mkdtemp");
  exit(EXIT_FAILURE);
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place) {
  (void)facts;
  (void)kind;
  (void)place;
  return remove(path);
}

static void remove_folder(const char *path) {
  if (nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS) == 0) return;
  perror("conformance: the saves cannot be removed");
  exit(EXIT_FAILURE);
}

/// One world after the other in one folder; `second` may be NULL. Prints what their ranks say.
static void run_in_folder(const char *scenario, int64_t size, rank_body first, int64_t next_size, rank_body second) {
  char folder[256];
  struct text line = {0};
  make_folder(folder, sizeof folder);
  ranks_add(&line, size, first, folder);
  if (second != NULL) ranks_add(&line, next_size, second, folder);
  text_print(scenario, &line);
  remove_folder(folder);
}

/// Sealed.
static void seal(struct model *model, struct rank *self, int64_t stage) {
  zero_config *config = model_config(stage);
  model_create(model, self, config, ZERO_DTYPE_F32);
  zero_config_release(config);
  must(zero_optimizer_seal(model->optimizer));
}

static void train(struct model *model, int64_t from, int64_t to) {
  for (int64_t t = from; t < to; t++) {
    model_give_gradients(model, t);
    model_step(model);
  }
}

static void say_steps(struct model *model) {
  int64_t steps;
  must(zero_optimizer_get_i64(model->optimizer, ZERO_KEY_STEP_COUNT, &steps));
  if (model->rank->id == 0) text_add(&model->rank->text, "%" PRId64, steps);
}

static void resume(struct model *model, const char *folder) {
  int64_t found;
  must(zero_optimizer_resume(model->optimizer, folder, NULL, &found));
  if (model->rank->id == 0) text_add(&model->rank->text, "%" PRId64, found);
}

static void train_and_save(struct rank *self) {
  struct model model;
  seal(&model, self, 1);
  resume(&model, self->context);
  model_begin(&model);
  train(&model, 0, kSteps);
  must(zero_optimizer_save(model.optimizer, self->context, NULL));
  model_release(&model);
}

static void resume_and_train(struct rank *self) {
  struct model model;
  seal(&model, self, 3);
  resume(&model, self->context);
  say_steps(&model);
  model_say_result(&model);
  train(&model, kSteps, kSteps + 1);
  model_say_result(&model);
  model_release(&model);
}

/// Keys that are 1 in the config.
static zero_checkpoint *checkpoint_of(struct rank *self, const int32_t *keys, size_t count) {
  zero_config *config;
  zero_checkpoint *checkpoint;
  must(zero_config_create(&config));
  for (size_t i = 0; i < count; i++) must(zero_config_set_i64(config, keys[i], 1));
  must(zero_checkpoint_create(self->group, config, &checkpoint));
  zero_config_release(config);
  return checkpoint;
}

static void add_tensor(zero_checkpoint *checkpoint, const char *name, int32_t dtype, void *data, int32_t scope) {
  must(zero_checkpoint_add_tensor(checkpoint, name, dtype, shape_of_tensor, 1, data, scope));
}

static void say_floats(struct rank *self, const float *data) { text_add_hash(&self->text, data, kCount * (int64_t)sizeof(float)); }

static void save_tensors(struct rank *self) {
  float one[kCount];
  int64_t each[kCount];
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  values_fill(one, ZERO_DTYPE_F32, kCount, self->id);
  values_fill(each, ZERO_DTYPE_I64, kCount, self->id);
  add_tensor(checkpoint, "one", ZERO_DTYPE_F32, one, ZERO_SCOPE_ONE);
  add_tensor(checkpoint, "each", ZERO_DTYPE_I64, each, ZERO_SCOPE_EACH);
  must(zero_checkpoint_set_text(checkpoint, "epoch", "3/10"));
  must(zero_checkpoint_save(checkpoint, self->context, NULL, NULL));
  zero_checkpoint_release(checkpoint);
}

static void load_tensors(struct rank *self) {
  float one[kCount] = {0};
  int64_t each[kCount] = {0};
  char text[16];
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  add_tensor(checkpoint, "one", ZERO_DTYPE_F32, one, ZERO_SCOPE_ONE);
  add_tensor(checkpoint, "each", ZERO_DTYPE_I64, each, ZERO_SCOPE_EACH);
  must(zero_checkpoint_load(checkpoint, self->context, ZERO_PART_ALL, NULL, NULL));
  if (self->id == 0) {
    must(zero_checkpoint_get_text(checkpoint, "epoch", text, sizeof text, NULL));
    text_add(&self->text, "%s", text);
    text_add_status(&self->text, zero_checkpoint_get_text(checkpoint, "gone", text, sizeof text, NULL));
  }
  say_floats(self, one);
  text_add_hash(&self->text, each, sizeof each);
  zero_checkpoint_release(checkpoint);
}

static zero_buffer *add_table(struct rank *self, zero_checkpoint *checkpoint) {
  zero_buffer *buffer;
  must(zero_buffer_create(self->group, NULL, ZERO_DTYPE_F32, kBufferCount, &buffer));
  must(zero_checkpoint_add_buffer(checkpoint, "table", buffer));
  return buffer;
}

static void save_table(struct rank *self) {
  float data[kBufferCount];
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  zero_buffer *buffer = add_table(self, checkpoint);
  values_fill(data, ZERO_DTYPE_F32, kBufferCount, 0);
  must(zero_buffer_write(buffer, 0, data, self->id == 0 ? kBufferCount : 0, NULL));
  must(zero_checkpoint_save(checkpoint, self->context, NULL, NULL));
  zero_checkpoint_release(checkpoint);
  zero_buffer_release(buffer);
}

static void load_table(struct rank *self) {
  int64_t offset, count;
  void *data;
  zero_checkpoint_result result;
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  zero_buffer *buffer = add_table(self, checkpoint);
  must(zero_checkpoint_result_init(&result, sizeof result));
  must(zero_checkpoint_load(checkpoint, self->context, ZERO_PART_ALL, NULL, &result));
  must(zero_buffer_shard(buffer, &data, &offset, &count));
  if (self->id == 0) text_add(&self->text, "%" PRId64, result.step);
  text_add_hash(&self->text, data, count * (int64_t)sizeof(float));
  zero_checkpoint_release(checkpoint);
  zero_buffer_release(buffer);
}

static void save_a_b(struct rank *self) {
  float a[kCount], b[kCount];
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  values_fill(a, ZERO_DTYPE_F32, kCount, 0);
  values_fill(b, ZERO_DTYPE_F32, kCount, 1);
  add_tensor(checkpoint, "a", ZERO_DTYPE_F32, a, ZERO_SCOPE_ONE);
  add_tensor(checkpoint, "b", ZERO_DTYPE_F32, b, ZERO_SCOPE_ONE);
  must(zero_checkpoint_save(checkpoint, self->context, NULL, NULL));
  zero_checkpoint_release(checkpoint);
}

/// The lines as words.
static void say_skipped(struct rank *self, zero_checkpoint *checkpoint) {
  char lines[256];
  must(zero_checkpoint_skipped(checkpoint, lines, sizeof lines, NULL));
  for (char *word = strtok(lines, " \n"); word != NULL; word = strtok(NULL, " \n")) text_add(&self->text, "%s", word);
}

static zero_checkpoint *add_b_c(struct rank *self, size_t key_count, float *b, float *c) {
  static const int32_t keys[] = {ZERO_KEY_CHECKPOINT_MISSING, ZERO_KEY_CHECKPOINT_EXTRA};
  zero_checkpoint *checkpoint = checkpoint_of(self, keys, key_count);
  add_tensor(checkpoint, "b", ZERO_DTYPE_F32, b, ZERO_SCOPE_ONE);
  add_tensor(checkpoint, "c", ZERO_DTYPE_F32, c, ZERO_SCOPE_ONE);
  return checkpoint;
}

static void load_b_c(struct rank *self) {
  float b[kCount] = {0}, c[kCount];
  zero_checkpoint_result result;
  zero_checkpoint *checkpoint = add_b_c(self, 0, b, c);
  values_fill(c, ZERO_DTYPE_F32, kCount, 2);
  text_add_status(&self->text, zero_checkpoint_load(checkpoint, self->context, ZERO_PART_ALL, NULL, NULL));
  zero_checkpoint_release(checkpoint);
  checkpoint = add_b_c(self, 2, b, c);
  must(zero_checkpoint_result_init(&result, sizeof result));
  must(zero_checkpoint_load(checkpoint, self->context, ZERO_PART_ALL, NULL, &result));
  text_add(&self->text, "%" PRId64 " %" PRId64, result.missing, result.extra);
  say_skipped(self, checkpoint);
  say_floats(self, b);
  say_floats(self, c);
  zero_checkpoint_release(checkpoint);
}

static void save_old(struct rank *self) {
  struct model model;
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  seal(&model, self, 1);
  model_begin(&model);
  train(&model, 0, kSteps);
  must(zero_checkpoint_add_optimizer(checkpoint, "old.", model.optimizer));
  must(zero_checkpoint_save(checkpoint, self->context, NULL, NULL));
  zero_checkpoint_release(checkpoint);
  model_release(&model);
}

static void load_new(struct rank *self) {
  struct model model;
  zero_checkpoint_result result;
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  seal(&model, self, 1);
  must(zero_checkpoint_add_optimizer(checkpoint, "new.", model.optimizer));
  must(zero_checkpoint_rename(checkpoint, "old.*", "new.*"));
  must(zero_checkpoint_result_init(&result, sizeof result));
  must(zero_checkpoint_load(checkpoint, self->context, ZERO_PART_PARAMS, NULL, &result));
  text_add(&self->text, "%" PRId64 " %" PRId64, result.missing, result.extra);
  say_steps(&model);
  model_say_result(&model);
  zero_checkpoint_release(checkpoint);
  model_release(&model);
}

static void save_in_background(struct rank *self) {
  struct model model;
  zero_checkpoint_result result;
  zero_request *request;
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  seal(&model, self, 2);
  model_begin(&model);
  must(zero_checkpoint_add_optimizer(checkpoint, "", model.optimizer));
  must(zero_checkpoint_result_init(&result, sizeof result));
  train(&model, 0, 1);
  must(zero_checkpoint_save_async(checkpoint, self->context, NULL, &result, &request));
  train(&model, 1, 3);
  must(zero_request_wait(request));
  zero_request_release(request);
  if (self->id == 0) text_add(&self->text, "%" PRId64, result.step);
  zero_checkpoint_release(checkpoint);
  model_release(&model);
}

static void resume_alone(struct rank *self) {
  struct model model;
  seal(&model, self, 1);
  resume(&model, self->context);
  say_steps(&model);
  model_say_result(&model);
  model_release(&model);
}

/// Saves after each of two steps.
static void save_twice(struct rank *self) {
  struct model model;
  seal(&model, self, 1);
  model_begin(&model);
  for (int64_t t = 0; t < 2; t++) {
    train(&model, t, t + 1);
    must(zero_optimizer_save(model.optimizer, self->context, NULL));
  }
  model_release(&model);
}

/// The names of the saves, newest first, which stand at the beginnings of the lines of the list.
static int64_t names_of(const char *folder, char names[2][64]) {
  char list[4096];
  int64_t count = 0;
  must(zero_save_list(folder, ZERO_TEXT_PLAIN, list, sizeof list, NULL));
  for (char *line = strtok(list, "\n"); line != NULL; line = strtok(NULL, "\n"), count++) {
    if (count < 2) snprintf(names[count], 64, "%.*s", (int)strcspn(line, " "), line);
  }
  return count;
}

static zero_save *open_save(const char *folder, const char *name) {
  char path[512];
  zero_save *save;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  must(zero_save_open(path, &save));
  return save;
}

static void compare(struct rank *self) {
  char names[2][64];
  int64_t other_count, own_count;
  const int64_t count = names_of(self->context, names);
  zero_save *newest = open_save(self->context, names[0]);
  zero_save *older = open_save(self->context, names[1]);
  text_add(&self->text, "%" PRId64, count);
  text_add_status(&self->text, zero_save_verify(newest));
  must(zero_save_compare(newest, older, &other_count));
  must(zero_save_compare(newest, newest, &own_count));
  text_add(&self->text, "%" PRId64 " %" PRId64, other_count, own_count);
  zero_save_release(newest);
  zero_save_release(older);
}

static void remove_saves(struct rank *self) {
  char names[2][64], lines[256];
  int64_t count = 0;
  names_of(self->context, names);
  must(zero_save_prunable(self->context, 1, lines, sizeof lines, NULL));
  for (char *line = strtok(lines, "\n"); line != NULL; line = strtok(NULL, "\n")) count++;
  text_add(&self->text, "%" PRId64, count);
  text_add_status(&self->text, zero_save_remove(self->context, names[1]));
  text_add_status(&self->text, zero_save_remove(self->context, names[0]));
  text_add_status(&self->text, zero_save_remove(self->context, names[1]));
}

static void find_nothing(struct rank *self) {
  char nowhere[512];
  zero_save *save;
  struct model model;
  zero_checkpoint *checkpoint = checkpoint_of(self, NULL, 0);
  snprintf(nowhere, sizeof nowhere, "%s/no", (const char *)self->context);
  seal(&model, self, 1);
  must(zero_checkpoint_add_optimizer(checkpoint, "", model.optimizer));
  text_add_status(&self->text, zero_save_open(self->context, &save));
  text_add_status(&self->text, zero_checkpoint_load(checkpoint, self->context, ZERO_PART_ALL, NULL, NULL));
  const int32_t before_begin = zero_checkpoint_save(checkpoint, self->context, NULL, NULL);
  model_begin(&model);
  text_add_status(&self->text, zero_checkpoint_save(checkpoint, nowhere, NULL, NULL));
  text_add_status(&self->text, before_begin);
  zero_checkpoint_release(checkpoint);
  model_release(&model);
}

static void stop(struct rank *self) {
  struct model model;
  seal(&model, self, 1);
  model_begin(&model);
  for (int64_t t = 0; t < 4; t++) {
    if (t == 2 && self->id == 1) must(zero_optimizer_request_stop(model.optimizer, 7));
    train(&model, t, t + 1);
    if (t >= 2) text_add(&self->text, "%" PRId64, model.result.stop_reason);
  }
  model_release(&model);
}

void save_scenarios(void) {
  run_in_folder("save-resume", 3, train_and_save, 2, resume_and_train);
  run_in_folder("save-tensors", 2, save_tensors, 3, load_tensors);
  run_in_folder("save-buffer", 3, save_table, 2, load_table);
  run_in_folder("save-names", 1, save_a_b, 1, load_b_c);
  run_in_folder("save-renamed", 1, save_old, 1, load_new);
  run_in_folder("save-background", 2, save_in_background, 1, resume_alone);
  run_in_folder("save-compare", 1, save_twice, 1, compare);
  run_in_folder("save-remove", 1, save_twice, 1, remove_saves);
  run_in_folder("save-nothing", 1, find_nothing, 1, NULL);
  ranks_run("stop", 3, stop, NULL);
}
