/// @file carry_on: a run that is saved and goes on later, with as many ranks and in whichever stage one likes then.
/// usage: carry_on FOLDER [STEPS [STAGE]]: goes on from the newest save in FOLDER where there is one, takes STEPS steps (10), and saves.
/// Alone, under mpirun or torchrun.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zero/zero.h>

enum { kTensors = 2 };
static const int64_t kShapes[kTensors][2] = {{64, 300}, {300, 1}};

static void must(int32_t status) {
  char text[2048];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "carry_on: %s: %s\n", zero_status_name(status), text);
  exit(1);
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

/// One step, and the rate of the next one, which the save holds as well.
static void take_step(zero_optimizer *optimizer, int64_t step) {
  double rate;
  /* In one of three steps the bias stays as it is, and so does its update count. */
  for (int64_t tensor = step % 3 == 1 ? 0 : 1; tensor >= 0; tensor--) give_gradient(optimizer, tensor);
  must(zero_optimizer_step(optimizer, NULL, NULL));
  must(zero_optimizer_get_f64(optimizer, 0, ZERO_KEY_LR, &rate));
  must(zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_LR, 0.97 * rate));
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
  fprintf(stderr, "usage: carry_on FOLDER [STEPS [STAGE]]\n");
  exit(2);
}

static zero_optimizer *make_optimizer(zero_group *group, int64_t stage) {
  zero_config *config;
  zero_optimizer *optimizer;
  int64_t id;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_STAGE, stage));
  must(zero_config_set_f64(config, ZERO_KEY_LR, 0.05));
  must(zero_config_set_i64(config, ZERO_KEY_UNFILLED, ZERO_UNFILLED_UNTOUCHED));
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "weight", ZERO_DTYPE_F32, kShapes[0], 2, &id));
  must(zero_optimizer_add_param(optimizer, NULL, "bias", ZERO_DTYPE_F32, kShapes[1], 2, &id));
  must(zero_optimizer_seal(optimizer));
  zero_config_release(config);
  return optimizer;
}

int main(int argc, char **argv) {
  const int64_t steps = number(argc > 2 ? argv[2] : "10");
  const int64_t stage = number(argc < 2 || argc > 4 || argv[1][0] == '-' ? "" : argc > 3 ? argv[3] : "3");
  const char *folder = argv[1];
  zero_group *group;
  int64_t rank, size, found, before, after;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    fprintf(stderr, "carry_on: cannot make %s: %s\n", folder, strerror(errno));
    return 1;
  }
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &size));
  zero_optimizer *optimizer = make_optimizer(group, stage);
  must(zero_optimizer_resume(optimizer, folder, NULL, &found));
  if (!found) must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  must(zero_optimizer_get_i64(optimizer, ZERO_KEY_STEP_COUNT, &before));
  for (int64_t step = 0; step < steps; step++) take_step(optimizer, before + step);
  must(zero_optimizer_get_i64(optimizer, ZERO_KEY_STEP_COUNT, &after));
  must(zero_optimizer_save(optimizer, folder, NULL));
  const uint64_t hash = hash_of_parameters(optimizer);
  if (rank == 0) {
    printf("%s at step %" PRId64 ", saved at step %" PRId64 " by %" PRId64 " ranks: parameters %016" PRIx64 "\n",
           found ? "went on" : "began", before, after, size, hash);
  }
  zero_optimizer_release(optimizer);
  zero_group_release(group);
  return 0;
}
