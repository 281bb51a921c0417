/// @file overhead: nanoseconds of a call from C, which other languages' are compared with (bindings/conformance/README.md).
#include <stdio.h>
#include <time.h>
#include <zero/zero.h>

#include "check.h"

enum { kRounds = 5, kParamCount = 1000, kElements = 16 };

typedef void (*measured_call)(void *context);

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double mean_ns(measured_call call, void *context, int calls) {
  const double start = now_ns();
  for (int i = 0; i < calls; i++) call(context);
  return (now_ns() - start) / calls;
}

/// The least of the rounds' means: what else the machine does only adds to one.
static void measure(const char *name, measured_call call, void *context, int calls) {
  double least = mean_ns(call, context, calls);
  for (int round = 1; round < kRounds; round++) {
    const double mean = mean_ns(call, context, calls);
    if (mean < least) least = mean;
  }
  printf("%s: %.1f\n", name, least);
}

static void empty_call(void *context) {
  (void)context;
  zero_abi_version();
}

static void group_size(void *context) {
  int64_t size;
  must(zero_group_size(context, &size));
}

static void step(void *context) {
  static const float gradient[kElements];
  for (int64_t id = 0; id < kParamCount; id++) must(zero_optimizer_grad_ready(context, id, gradient, 0, kElements, NULL));
  must(zero_optimizer_step(context, NULL, NULL));
}

/// What a step gives in one call: the same gradient for every parameter.
struct bulk {
  zero_optimizer *optimizer;
  int64_t ids[kParamCount];
  const void *grads[kParamCount];
};

static void bulk_step(void *context) {
  const struct bulk *bulk = context;
  must(zero_optimizer_grads_ready(bulk->optimizer, bulk->ids, kParamCount, bulk->grads, NULL));
  must(zero_optimizer_step(bulk->optimizer, NULL, NULL));
}

static void measure_bulk(zero_optimizer *optimizer) {
  static const float gradient[kElements];
  static struct bulk bulk;
  bulk.optimizer = optimizer;
  for (int64_t id = 0; id < kParamCount; id++) {
    bulk.ids[id] = id;
    bulk.grads[id] = gradient;
  }
  measure("step-1000-bulk", bulk_step, &bulk, 100);
}

static zero_optimizer *create_optimizer(zero_group *group) {
  const int64_t shape[] = {kElements};
  zero_config *config;
  zero_optimizer *optimizer;
  must(zero_config_create(&config));
  must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, 0));
  must(zero_optimizer_create(group, config, &optimizer));
  zero_config_release(config);
  for (int i = 0; i < kParamCount; i++) {
    char name[16];
    int64_t id;
    snprintf(name, sizeof name, "p%d", i);
    must(zero_optimizer_add_param(optimizer, NULL, name, ZERO_DTYPE_F32, shape, 1, &id));
  }
  must(zero_optimizer_seal(optimizer));
  must(zero_optimizer_begin(optimizer, ZERO_SOURCE_LOCAL));
  return optimizer;
}

int main(void) {
  zero_group *group;
  must(zero_group_create_local(NULL, 0, 1, NULL, &group));
  zero_optimizer *optimizer = create_optimizer(group);
  measure("empty-call", empty_call, NULL, 1000000);
  measure("group-size", group_size, group, 100000);
  measure("step-1000", step, optimizer, 100);
  measure_bulk(optimizer);
  zero_optimizer_release(optimizer);
  zero_group_release(group);
  return 0;
}
