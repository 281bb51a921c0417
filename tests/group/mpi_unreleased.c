/// @file A program that returns from main with status 0 and has released nothing, run by mpirun: where libzero initialised MPI it finalises
/// it, so that the launcher sees a run that has ended well.
#include <zero/zero.h>

#include <stdio.h>
#include <string.h>

static int fail(const char *call) {
  char text[1024];
  zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s: %s\n", call, text);
  return 1;
}

/* An optimizer that holds the group, and one that was made from a group split from it. */
static int train(zero_group *group) {
  const int64_t shape = 4;
  const float gradient[4] = {1, 1, 1, 1};
  zero_optimizer *optimizer = NULL;
  int64_t id = 0;
  if (zero_optimizer_create(group, NULL, &optimizer) != ZERO_OK) return fail("zero_optimizer_create");
  if (zero_optimizer_add_param(optimizer, NULL, "weight", ZERO_DTYPE_F32, &shape, 1, &id) != ZERO_OK)
    return fail("zero_optimizer_add_param");
  if (zero_optimizer_seal(optimizer) != ZERO_OK) return fail("zero_optimizer_seal");
  if (zero_optimizer_begin(optimizer, ZERO_SOURCE_ROOT) != ZERO_OK) return fail("zero_optimizer_begin");
  if (zero_optimizer_grad_ready(optimizer, id, gradient, 0, 4, NULL) != ZERO_OK) return fail("zero_optimizer_grad_ready");
  if (zero_optimizer_step(optimizer, NULL, NULL) != ZERO_OK) return fail("zero_optimizer_step");
  return 0;
}

int main(int argc, char **argv) {
  zero_group *group = NULL;
  zero_group *part = NULL;
  if (zero_group_create_env(NULL, &group) != ZERO_OK) return fail("zero_group_create_env");
  if (argc > 1 && strcmp(argv[1], "train") == 0) {
    if (zero_group_split(group, 0, 0, &part) != ZERO_OK) return fail("zero_group_split");
    return train(group) != 0 || train(part) != 0 ? 1 : 0;
  }
  if (zero_group_barrier(group) != ZERO_OK) return fail("zero_group_barrier");
  return 0;
}
