/// @file readme: the program that the README shows: fits w in y = w x to y = 2 x with everything sharded over as many ranks as there are.
/// Alone it is a world of one; under mpirun or torchrun every rank brings a sample of its own.
#include <stdio.h>
#include <stdlib.h>
#include <zero/zero.h>

static void must(int32_t status) {
  char text[512];
  if (status == ZERO_OK) return;
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s: %s\n", zero_status_name(status), text);
  exit(1);
}

int main(void) {
  zero_group *group;
  zero_config *config;
  zero_optimizer *optimizer;
  int64_t rank, w;
  must(zero_group_create_env(NULL, &group));
  must(zero_group_rank(group, &rank));
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_STAGE, 3));
  must(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  must(zero_config_set_f64(config, ZERO_KEY_LR, 0.1));
  must(zero_optimizer_create(group, config, &optimizer));
  must(zero_optimizer_add_param(optimizer, NULL, "w", ZERO_DTYPE_F32, NULL, 0, &w));
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL)); /* w was not written: 0 on every rank */
  const float x = 1 + 1.0f / (float)(rank + 1), y = 2 * x;
  for (int step = 0; step <= 100; step++) {
    void *address; /* of w, gathered from the rank that holds it */
    must(zero_optimizer_param_acquire(optimizer, w, NULL, 0, NULL, &address));
    const float value = *(const float *)address;
    must(zero_optimizer_param_release(optimizer, w));
    if (step % 20 == 0 && rank == 0) printf("step %3d  w = %.5f\n", step, value);
    const float gradient = (value * x - y) * x; /* of 1/2 (w x - y)^2; averaged over the ranks */
    must(zero_optimizer_grad_ready(optimizer, w, &gradient, 0, 1, NULL));
    must(zero_optimizer_step(optimizer, NULL, NULL));
  }
  zero_optimizer_release(optimizer);
  zero_config_release(config);
  zero_group_release(group);
  return 0;
}
