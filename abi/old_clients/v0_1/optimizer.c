/*
 * The part of the client that uses optimizers, and the statistics of them.
 */
#include "client.h"

#include <stddef.h>

static zero_optimizer *built(zero_group *group, const zero_config *config) {
  zero_optimizer *optimizer = NULL;
  const int64_t shape[2] = {2, COUNT / 2};
  const int64_t order[1] = {0};
  int64_t id = -1;
  int64_t set = -1;
  OK(zero_optimizer_create(group, config, &optimizer));
  OK(zero_optimizer_add_set(optimizer, NULL, &set));
  CHECK(set == 1);
  OK(zero_optimizer_set_model_group(optimizer, group));
  OK(zero_optimizer_add_param(optimizer, NULL, "weight", ZERO_DTYPE_F32, shape, 2, &id));
  CHECK(id == 0);
  OK(zero_optimizer_set_order(optimizer, order, 1));
  OK(zero_optimizer_set_gather_order(optimizer, order, 1));
  OK(zero_optimizer_add_module_buffer(optimizer, "mean", ZERO_DTYPE_F32, shape, 2, ZERO_SYNC_AVERAGE, &id));
  CHECK(id == 0);
  return optimizer;
}

/* One step by plain SGD at rate 0.5: every parameter goes down by half its gradient, which is 2. */
static void give_gradients(zero_optimizer *optimizer) {
  void *data = NULL;
  int64_t accumulate = -1;
  const float gradient[COUNT / 2] = {2.0F, 2.0F, 2.0F, 2.0F};
  OK(zero_optimizer_set_weight(optimizer, 1.0));
  OK(zero_optimizer_grad_acquire(optimizer, 0, NULL, &data, &accumulate));
  CHECK(accumulate == 0);
  for (int i = 0; i < COUNT / 2; ++i) ((float *)data)[i] = 2.0F;
  OK(zero_optimizer_grad_ready(optimizer, 0, NULL, 0, COUNT / 2, NULL));
  OK(zero_optimizer_grad_ready(optimizer, 0, gradient, COUNT / 2, COUNT / 2, NULL));
}

static void check_param(zero_optimizer *optimizer, float first) {
  float values[COUNT];
  void *data = NULL;
  zero_request *request = NULL;
  OK(zero_optimizer_read(optimizer, 0, ZERO_SLOT_PARAM, 0, values, 4, NULL));
  OK(zero_optimizer_read_async(optimizer, 0, ZERO_SLOT_PARAM, 4, values + 4, 4, NULL, &request));
  finish(request);
  check_numbers(values, first);
  OK(zero_optimizer_param_acquire(optimizer, 0, NULL, 0, NULL, &data));
  check_numbers(data, first);
  OK(zero_optimizer_param_release(optimizer, 0));
  OK(zero_optimizer_param_acquire_async(optimizer, 0, values, COUNT, NULL, &data, &request));
  finish(request);
  CHECK(data == values);
  check_numbers(values, first);
  OK(zero_optimizer_param_release(optimizer, 0));
}

static void first_values(zero_optimizer *optimizer) {
  float values[COUNT];
  zero_request *request = NULL;
  OK(zero_optimizer_init_param(optimizer, 0, ZERO_INITIALISER_UNIFORM, -1.0, 1.0, 7));
  OK(zero_optimizer_read(optimizer, 0, ZERO_SLOT_PARAM, 0, values, COUNT, NULL));
  for (int i = 0; i < COUNT; ++i) CHECK(values[i] >= -1.0F && values[i] < 1.0F);
  for (int i = 0; i < COUNT; ++i) values[i] = 20.0F + (float)i;
  OK(zero_optimizer_write(optimizer, 0, ZERO_SLOT_PARAM, 0, values, 4, NULL));
  OK(zero_optimizer_write_async(optimizer, 0, ZERO_SLOT_PARAM, 4, values + 4, 4, NULL, &request));
  finish(request);
  OK(zero_optimizer_begin(optimizer, ZERO_SOURCE_SHARDS));
  OK(zero_optimizer_begin_async(optimizer, ZERO_SOURCE_SHARDS, &request));
  finish(request);
  check_param(optimizer, 20.0F);
}

static void steps(zero_optimizer *optimizer) {
  zero_request *request = NULL;
  int64_t count = 0;
  int64_t param = -1;
  int64_t offset = -1;
  void *data = NULL;
  struct {
    zero_step_result value;
    uint64_t guard;
  } result;
  result.guard = GUARD;
  OK(zero_step_result_init(&result.value, sizeof result.value));
  give_gradients(optimizer);
  OK(zero_optimizer_step(optimizer, NULL, &result.value));
  CHECK(result.value.step == 1 && result.value.skipped == 0 && result.value.unfilled_count == 0 && result.value.grad_norm > 5.6);
  check_param(optimizer, 19.0F);
  OK(zero_optimizer_micro_step(optimizer, ZERO_MICRO_STEP_LAST, NULL));
  give_gradients(optimizer);
  OK(zero_optimizer_step_async(optimizer, NULL, &result.value, &request));
  finish(request);
  CHECK(result.value.step == 2 && result.guard == GUARD);
  OK(zero_optimizer_refresh(optimizer, NULL));
  OK(zero_optimizer_loss_scale_address(optimizer, NULL, &data));
  CHECK(*(const double *)data == 1.0);
  result.value.step = 0;
  OK(zero_optimizer_result(optimizer, NULL, &result.value));
  CHECK(result.value.step == 2 && result.guard == GUARD);
  check_param(optimizer, 18.0F);
  OK(zero_optimizer_micro_step_async(optimizer, ZERO_MICRO_STEP_LAST, NULL, &request));
  finish(request);
  give_gradients(optimizer);
  OK(zero_optimizer_reduce(optimizer, NULL, &result.value));
  OK(zero_optimizer_view_count(optimizer, &count));
  CHECK(count == 1);
  OK(zero_optimizer_view(optimizer, 0, ZERO_SLOT_GRAD, &param, &offset, &count, &data));
  CHECK(param == 0 && offset == 0 && count == COUNT && ((float *)data)[COUNT - 1] == 2.0F);
  OK(zero_optimizer_apply(optimizer, NULL));
  OK(zero_optimizer_gather(optimizer, NULL));
  check_param(optimizer, 17.0F);
  give_gradients(optimizer);
  OK(zero_optimizer_reduce_async(optimizer, NULL, &result.value, &request));
  finish(request);
  OK(zero_optimizer_apply_async(optimizer, NULL, &request));
  finish(request);
  OK(zero_optimizer_gather_async(optimizer, NULL, &request));
  finish(request);
  check_param(optimizer, 16.0F);
  CHECK(result.guard == GUARD);
}

static void module_buffers(zero_optimizer *optimizer) {
  zero_request *request = NULL;
  void *data = NULL;
  int64_t count = -1;
  OK(zero_optimizer_module_buffer(optimizer, 0, &data, &count));
  CHECK(count == COUNT && ((float *)data)[0] == 0.0F);
  for (int i = 0; i < COUNT; ++i) ((float *)data)[i] = 7.0F + (float)i;
  OK(zero_optimizer_sync_module_buffers(optimizer, NULL));
  OK(zero_optimizer_sync_module_buffers_async(optimizer, NULL, &request));
  finish(request);
  check_numbers(data, 7.0F);
}

static void slots(zero_optimizer *optimizer) {
  zero_request *request = NULL;
  int64_t count = -1;
  int64_t slot = -1;
  int64_t dtype = -1;
  struct {
    zero_verify_result value;
    uint64_t guard;
  } result;
  result.guard = GUARD;
  OK(zero_optimizer_slot_count(optimizer, 0, &count));
  CHECK(count == 1);
  OK(zero_optimizer_slot(optimizer, 0, 0, &slot, &dtype, &count));
  CHECK(slot == ZERO_SLOT_PARAM && dtype == ZERO_DTYPE_F32 && count == COUNT);
  OK(zero_verify_result_init(&result.value, sizeof result.value));
  OK(zero_optimizer_verify(optimizer, NULL, &result.value));
  OK(zero_optimizer_verify_async(optimizer, NULL, &result.value, &request));
  finish(request);
  CHECK(result.value.found == ZERO_FINDING_NONE && result.guard == GUARD);
}

static void optimizer_facts(zero_optimizer *optimizer) {
  double rate = 0;
  int64_t value = -1;
  char text[4096];
  struct {
    zero_memory_stats value;
    uint64_t guard;
  } memory;
  struct {
    zero_traffic_stats value;
    uint64_t guard;
  } traffic;
  struct {
    zero_step_stats value;
    uint64_t guard;
  } times;
  memory.guard = traffic.guard = times.guard = GUARD;
  OK(zero_optimizer_get_f64(optimizer, 0, ZERO_KEY_LR, &rate));
  CHECK(rate == 0.5);
  OK(zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_LR, 0.25));
  OK(zero_optimizer_get_i64(optimizer, ZERO_KEY_STEP_COUNT, &value));
  CHECK(value == 4);
  OK(zero_optimizer_set_i64(optimizer, ZERO_KEY_STEP_COUNT, 9));
  OK(zero_memory_stats_init(&memory.value, sizeof memory.value));
  OK(zero_stats_optimizer_memory(optimizer, ZERO_MEMORY_PARAM, &memory.value));
  CHECK(memory.value.now_nbytes >= COUNT * 4 && memory.guard == GUARD);
  OK(zero_traffic_stats_init(&traffic.value, sizeof traffic.value));
  OK(zero_stats_optimizer_traffic(optimizer, ZERO_OPERATION_ALL_GATHER, &traffic.value));
  CHECK(traffic.value.sent_elements == 0 && traffic.guard == GUARD);
  OK(zero_step_stats_init(&times.value, sizeof times.value));
  OK(zero_stats_optimizer_step(optimizer, &times.value));
  CHECK(times.value.step_count == 4 && times.guard == GUARD);
  OK(zero_describe_optimizer(optimizer, text, sizeof text, &value));
  CHECK(value > 1);
  FAILS(ZERO_E_STATE, zero_stats_optimizer_trace(optimizer, text, sizeof text, &value));
}

zero_optimizer *use_optimizers(zero_group *group, const zero_config *config) {
  zero_request *request = NULL;
  zero_optimizer *optimizer = built(group, config);
  OK(zero_optimizer_seal(optimizer));
  first_values(optimizer);
  steps(optimizer);
  module_buffers(optimizer);
  slots(optimizer);
  optimizer_facts(optimizer);
  zero_optimizer_release(optimizer);
  optimizer = built(group, NULL);
  OK(zero_optimizer_seal_async(optimizer, &request));
  finish(request);
  return optimizer;
}
