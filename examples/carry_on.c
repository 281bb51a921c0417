/// @file carry_on: a run that is saved and goes on later, with as many ranks and in whichever stage one likes then. Rank 0 writes and reads
/// one file; libzero brings every element from and to the rank that owns it.
/// usage: carry_on FILE [STEPS [STAGE]]: goes on from FILE where there is one, takes STEPS steps (10), and saves. Alone, under mpirun or
/// torchrun.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zero/zero.h>

enum { kTensors = 2, kScalars = 4 };
static const int64_t kShapes[kTensors][2] = {{64, 300}, {300, 1}};
static const int32_t kRunKeys[kScalars] = {ZERO_KEY_STEP_COUNT, ZERO_KEY_SKIPPED_COUNT, ZERO_KEY_GROWTH_COUNT, ZERO_KEY_OVERFLOW_COUNT};

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "carry_on: %s: %s\n", zero_status_name(status), text);
  exit(1);
}

static void check(int holds, const char *what, const char *path) {
  if (holds) return;
  fprintf(stderr, "carry_on: %s %s\n", what, path);
  exit(1);
}

/// As check, with the system's reason.
static void check_system(int holds, const char *what, const char *path) {
  if (holds) return;
  fprintf(stderr, "carry_on: %s %s: %s\n", what, path, strerror(errno));
  exit(1);
}

/// Rank 0's side of a file, to save or to restore.
struct file {
  FILE *stream; /* NULL on other ranks */
  const char *path;
  int restores;
};

static void pass(const struct file *file, void *data, int64_t nbytes) {
  if (!file->stream || nbytes == 0) return;
  const size_t size = (size_t)nbytes;
  if (file->restores) {
    check(fread(data, 1, size, file->stream) == size, "too little in", file->path);
  } else {
    check_system(fwrite(data, 1, size, file->stream) == size, "cannot write", file->path);
  }
}

/// All of one slot of a tensor. Other ranks take part with nothing of their own.
static void pass_slot(zero_optimizer *optimizer, int64_t id, int64_t index, const struct file *file) {
  int64_t slot, dtype, count, element;
  must(zero_optimizer_slot(optimizer, id, index, &slot, &dtype, &count));
  must(zero_dtype_nbytes((int32_t)dtype, &element));
  const int64_t mine = file->stream ? count : 0;
  void *data = malloc((size_t)(mine * element + 1));
  check(data != NULL, "no memory for", file->path);
  if (file->restores) {
    pass(file, data, mine * element);
    must(zero_optimizer_write(optimizer, id, (int32_t)slot, 0, data, mine, NULL));
  } else {
    must(zero_optimizer_read(optimizer, id, (int32_t)slot, 0, data, mine, NULL));
    pass(file, data, mine * element);
  }
  free(data);
}

/// What the program changes on its way: the rate, and the counters of the run. All ranks set the same.
static void pass_scalars(zero_group *group, zero_optimizer *optimizer, const struct file *file) {
  double rate;
  int64_t counts[kScalars];
  must(zero_optimizer_get_f64(optimizer, 0, ZERO_KEY_LR, &rate));
  for (int i = 0; i < kScalars; i++) must(zero_optimizer_get_i64(optimizer, kRunKeys[i], &counts[i]));
  pass(file, &rate, sizeof rate);
  pass(file, counts, sizeof counts);
  if (!file->restores) return;
  must(zero_group_broadcast(group, &rate, 1, ZERO_DTYPE_F64, 0, NULL));
  must(zero_group_broadcast(group, counts, kScalars, ZERO_DTYPE_I64, 0, NULL));
  must(zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_LR, rate));
  for (int i = 0; i < kScalars; i++) must(zero_optimizer_set_i64(optimizer, kRunKeys[i], counts[i]));
}

/// The scalars come first: setting the step count sets the update count of every tensor, which is a
/// slot.
static void pass_run(zero_group *group, zero_optimizer *optimizer, const struct file *file) {
  pass_scalars(group, optimizer, file);
  for (int64_t id = 0; id < kTensors; id++) {
    int64_t slots;
    must(zero_optimizer_slot_count(optimizer, id, &slots));
    for (int64_t index = 0; index < slots; index++) pass_slot(optimizer, id, index, file);
  }
}

enum { kLongestName = 4096 };

/// The file that the run is saved to, opened before the steps: one that cannot be written costs
/// none. It has another name at first, so that a run which ends on the way leaves the older file as
/// it was.
static struct file open_to_save(int64_t rank, const char *path, char name[kLongestName]) {
  check(snprintf(name, kLongestName, "%s.new", path) < kLongestName, "too long:", path);
  const struct file file = {rank == 0 ? fopen(name, "wb") : NULL, name, 0};
  check_system(rank != 0 || file.stream != NULL, "cannot write", name);
  return file;
}

static void save(zero_group *group, zero_optimizer *optimizer, const struct file *file, const char *path) {
  pass_run(group, optimizer, file);
  if (file->stream) check_system(fclose(file->stream) == 0 && rename(file->path, path) == 0, "cannot write", path);
}

/// Whether there was a file. One that cannot be read is an error: a run that began anew would take its place.
static int restore(zero_group *group, zero_optimizer *optimizer, int64_t rank, const char *path) {
  const struct file file = {rank == 0 ? fopen(path, "rb") : NULL, path, 1};
  check_system(rank != 0 || file.stream != NULL || errno == ENOENT, "cannot read", path);
  int64_t found = file.stream != NULL;
  must(zero_group_broadcast(group, &found, 1, ZERO_DTYPE_I64, 0, NULL));
  if (found) pass_run(group, optimizer, &file);
  check(!file.stream || fgetc(file.stream) == EOF, "too much in", path);
  if (file.stream) fclose(file.stream);
  return found != 0;
}

/// Of 1/2 |w - y|^2, the same on every rank, so that the number of ranks makes no difference to the sum here.
static void give_gradient(zero_optimizer *optimizer, int64_t id) {
  const int64_t count = kShapes[id][0] * kShapes[id][1];
  void *address, *gradient;
  int64_t accumulate;
  must(zero_optimizer_param_acquire(optimizer, id, NULL, 0, NULL, &address));
  must(zero_optimizer_grad_acquire(optimizer, id, NULL, &gradient, &accumulate));
  for (int64_t i = 0; i < count; i++) ((float *)gradient)[i] = ((const float *)address)[i] - (float)(i % 17 - 8) / 4;
  must(zero_optimizer_param_release(optimizer, id));
  must(zero_optimizer_grad_ready(optimizer, id, NULL, 0, count, NULL));
}

/// FNV-1a of all parameters.
static uint64_t hash_of_parameters(zero_optimizer *optimizer) {
  uint64_t hash = 14695981039346656037u;
  for (int64_t id = 0; id < kTensors; id++) {
    void *address;
    must(zero_optimizer_param_acquire(optimizer, id, NULL, 0, NULL, &address));
    const unsigned char *bytes = address;
    for (int64_t i = 0; i < kShapes[id][0] * kShapes[id][1] * 4; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    must(zero_optimizer_param_release(optimizer, id));
  }
  return hash;
}

static int64_t number(const char *text) {
  char *end;
  errno = 0;
  const long long value = strtoll(text, &end, 10);
  if (end != text && *end == '\0' && value >= 0 && errno == 0) return value;
  fprintf(stderr, "usage: carry_on FILE [STEPS [STAGE]]\n");
  exit(2);
}

int main(int argc, char **argv) {
  const int64_t steps = number(argc > 2 ? argv[2] : "10");
  const int64_t stage = number(argc < 2 || argc > 4 || argv[1][0] == '-' ? "" : argc > 3 ? argv[3] : "3");
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  int64_t rank, size, id, before, after;
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &size));
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
  must(zero_config_set_f64(config, ZERO_KEY_LR, 0.05));
  must(zero_config_set_i64(config, ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED));
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "weight", ZERO_DTYPE_F32, kShapes[0], 2, &id));
  must(zero_optimizer_add_param(optimizer, NULL, "bias", ZERO_DTYPE_F32, kShapes[1], 2, &id));
  must(zero_optimizer_seal(optimizer));
  const int restored = restore(group, optimizer, rank, argv[1]);
  char name[kLongestName];
  const struct file saved = open_to_save(rank, argv[1], name);
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_SHARDS));
  must(zero_optimizer_get_i64(optimizer, ZERO_KEY_STEP_COUNT, &before));
  for (int64_t step = 0; step < steps; step++) {
    double rate;
    /* In one of three steps the bias stays as it is, and so does its update count. */
    for (int64_t tensor = (before + step) % 3 == 1 ? 0 : 1; tensor >= 0; tensor--) give_gradient(optimizer, tensor);
    must(zero_optimizer_step(optimizer, NULL, NULL));
    must(zero_optimizer_get_f64(optimizer, 0, ZERO_KEY_LR, &rate));
    must(zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_LR, 0.97 * rate));
  }
  must(zero_optimizer_get_i64(optimizer, ZERO_KEY_STEP_COUNT, &after));
  save(group, optimizer, &saved, argv[1]);
  const uint64_t hash = hash_of_parameters(optimizer);
  if (rank == 0) {
    printf("%s at step %" PRId64 ", saved at step %" PRId64 " by %" PRId64 " ranks: parameters %016" PRIx64 "\n",
           restored ? "went on" : "began", before, after, size, hash);
  }
  zero_optimizer_release(optimizer);
  zero_config_release(config);
  zero_group_release(group);
  return 0;
}
