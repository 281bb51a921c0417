/*
 * A client of ZERO_0.1: compiled against the headers frozen beside it, linked to the library of today. It calls every function of that
 * version and checks what comes back. A guard word follows every result struct, so that a library which writes a newer, longer struct is
 * caught.
 */
#define _POSIX_C_SOURCE 200809L

#include "client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *file, int line, const char *what, int32_t status) {
  char text[1024];
  (void)zero_last_error_copy(text, sizeof text);
  fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, what, zero_status_name(status), text);
  exit(1);
}

void finish(zero_request *request) {
  OK(zero_request_wait(request));
  zero_request_release(request);
}

void check_numbers(const float *values, float first) {
  for (int i = 0; i < COUNT; ++i) CHECK(values[i] == first + (float)i);
}

static void library(void) {
  int64_t needed = 0;
  int64_t nbytes = 0;
  char text[4096];
  CHECK(zero_abi_version() >= ZERO_ABI_MAJOR * 65536 + ZERO_ABI_MINOR);
  CHECK(strlen(zero_version()) >= 5);
  CHECK(zero_has_feature(ZERO_FEATURE_LOCAL) == 1);
  CHECK(strcmp(zero_status_name(ZERO_E_TIMEOUT), "ZERO_E_TIMEOUT") == 0);
  OK(zero_dtype_nbytes(ZERO_DTYPE_BF16, &nbytes));
  CHECK(nbytes == 2);
  OK(zero_describe_library(text, sizeof text, &needed));
  CHECK(needed > 1);
  FAILS(ZERO_E_INVALID_ARGUMENT, zero_dtype_nbytes(0, &nbytes));
  CHECK(zero_last_error_copy(text, sizeof text) == ZERO_E_INVALID_ARGUMENT);
  CHECK(strstr(text, "dtype is 0") != NULL);
}

static void *take(uint64_t nbytes, uint64_t alignment, void *user) {
  *(int64_t *)user += (int64_t)nbytes;
  void *data = NULL;
  return posix_memalign(&data, alignment < sizeof(void *) ? sizeof(void *) : (size_t)alignment, (size_t)nbytes) == 0 ? data : NULL;
}

static void give(void *data, uint64_t nbytes, void *user) {
  *(int64_t *)user -= (int64_t)nbytes;
  free(data);
}

static int64_t hook_nbytes;

static zero_config *configured(void) {
  zero_config *config = NULL;
  struct {
    zero_key_bounds value;
    uint64_t guard;
  } bounds;
  bounds.guard = GUARD;
  OK(zero_config_create(&config));
  OK(zero_key_bounds_init(&bounds.value, sizeof bounds.value));
  OK(zero_config_bounds(ZERO_KEY_STAGE, &bounds.value));
  CHECK(bounds.value.type == 1 && bounds.value.min_i64 == 0 && bounds.value.max_i64 == 3 && bounds.value.default_i64 == 1);
  CHECK(bounds.guard == GUARD);
  OK(zero_config_set_i64(config, ZERO_KEY_GRAD_NORM, 1));
  OK(zero_config_set_i64(config, ZERO_KEY_DIVISOR, ZERO_DIVISOR_WEIGHTS));
  OK(zero_config_set_f64(config, ZERO_KEY_LR, 0.5));
  OK(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
  OK(zero_config_set_allocator(config, take, give, NULL, &hook_nbytes));
  return config;
}

static zero_group *made_group(zero_request *request) {
  zero_group *group = NULL;
  OK(zero_request_wait(request));
  OK(zero_request_group(request, &group));
  zero_request_release(request);
  return group;
}

/* Groups of every maker; MPI may be missing, which is one of two right answers. */
static zero_group *groups(void) {
  char id[256];
  int64_t nbytes = 0;
  zero_group *group = NULL;
  zero_group *other = NULL;
  zero_request *request = NULL;
  OK(zero_group_create_local("libzero-client-v0-1", 0, 1, NULL, &group));
  OK(zero_group_create_local_async(NULL, 0, 1, NULL, &request));
  zero_group_release(made_group(request));
  OK(zero_group_create_env(NULL, &other));
  zero_group_release(other);
  OK(zero_group_create_env_async(NULL, &request));
  zero_group_release(made_group(request));
  FAILS(ZERO_E_INVALID_ARGUMENT, zero_group_create_mpi(-2, NULL, &other));
  FAILS(ZERO_E_INVALID_ARGUMENT, zero_group_create_mpi_async(-2, NULL, &request));
  FAILS(ZERO_E_INVALID_ARGUMENT, zero_group_create_nccl("no id", 0, 1, NULL, &other));
  FAILS(ZERO_E_INVALID_ARGUMENT, zero_group_create_nccl_async("no id", 0, 1, NULL, &request));
  OK(zero_group_unique_id(NULL, id, sizeof id, &nbytes));
  CHECK(nbytes == (int64_t)strlen(id) + 1);
  OK(zero_group_launcher(id, sizeof id, &nbytes));
  CHECK(nbytes == 1 && *id == '\0');
  OK(zero_group_split(group, 0, 0, &other));
  zero_group_release(other);
  OK(zero_group_split_async(group, 0, 0, &request));
  other = made_group(request);
  OK(zero_group_abort(other, "the end of this group"));
  FAILS(ZERO_E_ABORTED, zero_group_status(other));
  zero_group_release(other);
  return group;
}

static void group_facts(zero_group *group) {
  int64_t value = -1;
  int64_t offset = -1;
  char text[2048];
  struct {
    zero_traffic_stats value;
    uint64_t guard;
  } traffic;
  traffic.guard = GUARD;
  OK(zero_group_rank(group, &value));
  CHECK(value == 0);
  OK(zero_group_size(group, &value));
  CHECK(value == 1);
  OK(zero_group_local_rank(group, &value));
  CHECK(value == 0);
  OK(zero_group_local_size(group, &value));
  CHECK(value == 1);
  OK(zero_group_host_count(group, &value));
  CHECK(value == 1);
  OK(zero_group_share(group, 5, 0, &offset, &value));
  CHECK(offset == 0 && value == 5);
  OK(zero_group_set_deadline(group, 10000));
  OK(zero_group_quiet(group, &value));
  CHECK(value == 1);
  OK(zero_group_status(group));
  OK(zero_describe_group(group, text, sizeof text, &value));
  CHECK(value == (int64_t)strlen(text) + 1);
  OK(zero_traffic_stats_init(&traffic.value, sizeof traffic.value));
  OK(zero_stats_group_traffic(group, ZERO_OPERATION_BARRIER, &traffic.value));
  CHECK(traffic.value.call_count >= 0 && traffic.guard == GUARD);
}

static void collectives(zero_group *group) {
  float send[COUNT];
  float recv[COUNT];
  zero_request *request = NULL;
  int64_t done = 0;
  for (int i = 0; i < COUNT; ++i) send[i] = 3.0F + (float)i;
#define BOTH(name, ...)                                         \
  do {                                                          \
    memset(recv, 0, sizeof recv);                               \
    OK(zero_group_##name(__VA_ARGS__));                         \
    check_numbers(recv, 3.0F);                                  \
    memset(recv, 0, sizeof recv);                               \
    OK(zero_group_##name##_async(__VA_ARGS__, &request));       \
    finish(request);                                            \
    check_numbers(recv, 3.0F);                                  \
  } while (0)
  BOTH(all_reduce, group, send, COUNT, recv, COUNT, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL);
  BOTH(reduce_scatter, group, send, COUNT, recv, COUNT, ZERO_DTYPE_F32, ZERO_REDUCE_AVG, NULL);
  BOTH(all_gather, group, send, COUNT, recv, COUNT, ZERO_DTYPE_F32, NULL);
  BOTH(reduce, group, send, COUNT, recv, COUNT, ZERO_DTYPE_F32, ZERO_REDUCE_MAX, 0, NULL);
  BOTH(gather, group, send, COUNT, recv, COUNT, COUNT, ZERO_DTYPE_F32, 0, NULL);
  BOTH(scatter, group, send, COUNT, recv, COUNT, COUNT, ZERO_DTYPE_F32, 0, NULL);
  BOTH(all_to_all, group, send, COUNT, recv, COUNT, ZERO_DTYPE_F32, NULL);
#undef BOTH
  OK(zero_group_broadcast(group, send, COUNT, ZERO_DTYPE_F32, 0, NULL));
  OK(zero_group_broadcast_async(group, send, COUNT, ZERO_DTYPE_F32, 0, NULL, &request));
  finish(request);
  check_numbers(send, 3.0F);
  OK(zero_group_barrier(group));
  OK(zero_group_barrier_async(group, &request));
  while (done == 0) OK(zero_request_test(request, &done));
  zero_request_release(request);
}

/* Rank 0 of a pair, on a thread of its own. */
static void *receive(void *group) {
  float received[COUNT];
  memset(received, 0, sizeof received);
  OK(zero_group_recv(group, received, COUNT, ZERO_DTYPE_F32, 1, NULL));
  check_numbers(received, 11.0F);
  return NULL;
}

/* Two ranks made by this one thread. */
static void messages(void) {
  pthread_t receiver;
  zero_group *ranks[2];
  zero_request *requests[2];
  float sent[COUNT];
  float received[COUNT];
  int64_t done = 0;
  for (int i = 0; i < 2; ++i) OK(zero_group_create_local_async("libzero-client-v0-1-pair", i, 2, NULL, &requests[i]));
  while (done != 2) {
    done = 0;
    for (int i = 0; i < 2; ++i) {
      int64_t one = 0;
      OK(zero_request_test(requests[i], &one));
      done += one;
    }
  }
  for (int i = 0; i < 2; ++i) ranks[i] = made_group(requests[i]);
  for (int i = 0; i < COUNT; ++i) sent[i] = 11.0F + (float)i;
  memset(received, 0, sizeof received);
  OK(zero_group_send_async(ranks[0], sent, COUNT, ZERO_DTYPE_F32, 1, NULL, &requests[0]));
  OK(zero_group_recv_async(ranks[1], received, COUNT, ZERO_DTYPE_F32, 0, NULL, &requests[1]));
  for (done = 0; done == 0;) {
    OK(zero_group_status(ranks[0]));
    OK(zero_request_test(requests[1], &done));
  }
  check_numbers(received, 11.0F);
  for (int i = 0; i < 2; ++i) finish(requests[i]);
  CHECK(pthread_create(&receiver, NULL, receive, ranks[0]) == 0);
  OK(zero_group_send(ranks[1], sent, COUNT, ZERO_DTYPE_F32, 0, NULL));
  CHECK(pthread_join(receiver, NULL) == 0);
  for (int i = 0; i < 2; ++i) zero_group_release(ranks[i]);
}

static void buffers(zero_group *group, const zero_config *config) {
  zero_buffer *buffer = NULL;
  zero_request *request = NULL;
  void *data = NULL;
  int64_t offset = -1;
  int64_t count = -1;
  float values[COUNT];
  struct {
    zero_memory_stats value;
    uint64_t guard;
  } memory;
  memory.guard = GUARD;
  OK(zero_buffer_create(group, NULL, ZERO_DTYPE_F32, COUNT, &buffer));
  zero_buffer_release(buffer);
  OK(zero_buffer_create_async(group, config, ZERO_DTYPE_F32, COUNT, &request));
  OK(zero_request_wait(request));
  OK(zero_request_buffer(request, &buffer));
  zero_request_release(request);
  OK(zero_buffer_shard(buffer, &data, &offset, &count));
  CHECK(data != NULL && offset == 0 && count == COUNT);
  for (int i = 0; i < COUNT; ++i) values[i] = 1.0F + (float)i;
  OK(zero_buffer_write(buffer, 0, values, 4, NULL));
  OK(zero_buffer_write_async(buffer, 4, values + 4, 4, NULL, &request));
  finish(request);
  memset(values, 0, sizeof values);
  OK(zero_buffer_read(buffer, 0, values, 4, NULL));
  OK(zero_buffer_read_async(buffer, 4, values + 4, 4, NULL, &request));
  finish(request);
  check_numbers(values, 1.0F);
  OK(zero_buffer_whole_acquire(buffer, NULL, &data));
  check_numbers(data, 1.0F);
  OK(zero_buffer_whole_release(buffer));
  OK(zero_buffer_whole_acquire_async(buffer, NULL, &data, &request));
  finish(request);
  check_numbers(data, 1.0F);
  OK(zero_buffer_whole_release(buffer));
  for (int i = 0; i < COUNT; ++i) values[i] = 5.0F + (float)i;
  OK(zero_buffer_reduce_scatter(buffer, values, COUNT, ZERO_REDUCE_SUM, NULL));
  OK(zero_buffer_reduce_scatter_async(buffer, values, COUNT, ZERO_REDUCE_SUM, NULL, &request));
  finish(request);
  OK(zero_buffer_shard(buffer, &data, &offset, &count));
  check_numbers(data, 5.0F);
  OK(zero_memory_stats_init(&memory.value, sizeof memory.value));
  OK(zero_stats_buffer_memory(buffer, ZERO_MEMORY_TOTAL, &memory.value));
  CHECK(memory.value.now_nbytes >= COUNT * 4 && memory.guard == GUARD);
  zero_buffer_release(buffer);
}

int main(void) {
  library();
  zero_config *config = configured();
  zero_group *group = groups();
  group_facts(group);
  collectives(group);
  messages();
  buffers(group, config);
  zero_optimizer *optimizer = use_optimizers(group, config);
  /* Any order of release is right. */
  zero_group_release(group);
  zero_config_release(config);
  zero_optimizer_release(optimizer);
  CHECK(hook_nbytes == 0);
  puts("client v0.1: ok");
  return 0;
}
