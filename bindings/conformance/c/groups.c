/// @file groups: places, splits, collectives and messages.
#include <inttypes.h>
#include <stdio.h>
#include <zero/zero.h>

#include "check.h"
#include "ranks.h"
#include "scenarios.h"
#include "values.h"

enum { kCount = 10, kBlocks = 12, kMessage = 5, kWidest = 8 };

struct reduction {
  int32_t dtype, op;
};

static void add_floats(struct rank *self, const float *values, int64_t count) {
  text_add_hash(&self->text, values, count * (int64_t)sizeof *values);
}

/// This rank's elements of a whole of kCount.
static int64_t own_share(const struct rank *self) {
  int64_t offset, count;
  must(zero_group_share(self->group, kCount, self->id, &offset, &count));
  return count;
}

static void places(struct rank *self) {
  int64_t rank, size, local_rank, local_size, hosts;
  must(zero_group_rank(self->group, &rank));
  must(zero_group_size(self->group, &size));
  must(zero_group_local_rank(self->group, &local_rank));
  must(zero_group_local_size(self->group, &local_size));
  must(zero_group_host_count(self->group, &hosts));
  text_add(&self->text, "%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64 "/%" PRId64, rank, size, local_rank, local_size, hosts);
}

static void shares(struct rank *self) {
  for (int64_t rank = 0; self->id == 0 && rank < self->size; rank++) {
    int64_t offset, count;
    must(zero_group_share(self->group, kCount, rank, &offset, &count));
    text_add(&self->text, "%" PRId64 ":%" PRId64, offset, count);
  }
}

static void share_error(struct rank *self) {
  int64_t offset, count;
  if (self->id == 0) text_add_error(&self->text, zero_group_share(self->group, kCount, 3, &offset, &count));
}

static void split(struct rank *self) {
  const int64_t colors[] = {0, 1, 0}, keys[] = {2, 1, 0};
  zero_group *group;
  int64_t rank, size;
  must(zero_group_split(self->group, colors[self->id], keys[self->id], &group));
  must(zero_group_rank(group, &rank));
  must(zero_group_size(group, &size));
  text_add(&self->text, "%" PRId64 "/%" PRId64, rank, size);
  zero_group_release(group);
}

static void split_none(struct rank *self) {
  const int64_t colors[] = {0, -1, 0};
  zero_group *group;
  int64_t size;
  must(zero_group_split(self->group, colors[self->id], 0, &group));
  if (group == NULL) {
    text_add(&self->text, "-");
    return;
  }
  must(zero_group_size(group, &size));
  text_add(&self->text, "%" PRId64, size);
  zero_group_release(group);
}

static void all_reduce(struct rank *self) {
  const struct reduction *it = self->context;
  _Alignas(kWidest) unsigned char send[kCount * kWidest], recv[kCount * kWidest];
  int64_t nbytes;
  must(zero_dtype_nbytes(it->dtype, &nbytes));
  values_fill(send, it->dtype, kCount, self->id);
  must(zero_group_all_reduce(self->group, send, kCount, recv, kCount, it->dtype, it->op, NULL));
  text_add_hash(&self->text, recv, kCount * nbytes);
}

static void all_reduce_in_place(struct rank *self) {
  float data[kCount];
  values_fill(data, ZERO_DTYPE_F32, kCount, self->id);
  must(zero_group_all_reduce(self->group, data, kCount, data, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL));
  add_floats(self, data, kCount);
}

static void all_reduce_empty(struct rank *self) {
  text_add_status(&self->text, zero_group_all_reduce(self->group, NULL, 0, NULL, 0, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL));
}

static void reduce_scatter(struct rank *self) {
  float send[kCount], recv[kCount];
  const int64_t share = own_share(self);
  values_fill(send, ZERO_DTYPE_F32, kCount, self->id);
  must(zero_group_reduce_scatter(self->group, send, kCount, recv, share, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL));
  add_floats(self, recv, share);
}

static void all_gather(struct rank *self) {
  float send[kCount], recv[kCount];
  const int64_t share = own_share(self);
  values_fill(send, ZERO_DTYPE_F32, share, self->id);
  must(zero_group_all_gather(self->group, send, share, recv, kCount, ZERO_DTYPE_F32, NULL));
  add_floats(self, recv, kCount);
}

static void broadcast(struct rank *self) {
  float data[kCount];
  values_fill(data, ZERO_DTYPE_F32, kCount, self->id);
  must(zero_group_broadcast(self->group, data, kCount, ZERO_DTYPE_F32, 1, NULL));
  add_floats(self, data, kCount);
}

static void reduce(struct rank *self) {
  const int64_t root = 2, recv_count = self->id == root ? kCount : 0;
  float send[kCount], recv[kCount];
  values_fill(send, ZERO_DTYPE_F32, kCount, self->id);
  must(zero_group_reduce(self->group, send, kCount, recv, recv_count, ZERO_DTYPE_F32, ZERO_REDUCE_MAX, root, NULL));
  if (self->id == root) add_floats(self, recv, kCount);
}

static void gather(struct rank *self) {
  const int64_t root = 0, recv_count = self->id == root ? kCount : 0, share = own_share(self);
  float send[kCount], recv[kCount];
  values_fill(send, ZERO_DTYPE_F32, share, self->id);
  must(zero_group_gather(self->group, send, share, recv, recv_count, kCount, ZERO_DTYPE_F32, root, NULL));
  if (self->id == root) add_floats(self, recv, kCount);
}

static void scatter(struct rank *self) {
  const int64_t root = 1, send_count = self->id == root ? kCount : 0, share = own_share(self);
  float send[kCount], recv[kCount];
  values_fill(send, ZERO_DTYPE_F32, kCount, self->id);
  must(zero_group_scatter(self->group, send, send_count, recv, share, kCount, ZERO_DTYPE_F32, root, NULL));
  add_floats(self, recv, share);
}

static void all_to_all(struct rank *self) {
  float send[kBlocks], recv[kBlocks];
  values_fill(send, ZERO_DTYPE_F32, kBlocks, self->id);
  must(zero_group_all_to_all(self->group, send, kBlocks, recv, kBlocks, ZERO_DTYPE_F32, NULL));
  add_floats(self, recv, kBlocks);
}

/// A message passes from rank 0 to the last; each rank between adds 1 before it sends it on.
static void send_recv(struct rank *self) {
  float data[kMessage];
  values_fill(data, ZERO_DTYPE_F32, kMessage, 0);
  if (self->id > 0) must(zero_group_recv(self->group, data, kMessage, ZERO_DTYPE_F32, self->id - 1, NULL));
  if (self->id == self->size - 1) {
    add_floats(self, data, kMessage);
    return;
  }
  for (int i = 0; self->id > 0 && i < kMessage; i++) data[i] += 1;
  must(zero_group_send(self->group, data, kMessage, ZERO_DTYPE_F32, self->id + 1, NULL));
}

static void barrier(struct rank *self) { text_add_status(&self->text, zero_group_barrier(self->group)); }

static void balance(struct rank *self) {
  const double seconds[] = {1, 1.5, 3};
  const int64_t items[] = {192, 240, 208};
  int64_t share;
  must(zero_group_balance(self->group, seconds[self->id], items[self->id], 640, 16, &share));
  text_add(&self->text, "%" PRId64, share);
}

static void balance_error(struct rank *self) {
  int64_t share;
  text_add_error(&self->text, zero_group_balance(self->group, 1, 8, 63, 8, &share));
}

static void world_of_one(void) {
  float send[kCount], recv[kCount];
  struct text text = {0};
  zero_group *group;
  values_fill(send, ZERO_DTYPE_F32, kCount, 0);
  must(zero_group_create_local(NULL, 0, 1, NULL, &group));
  must(zero_group_all_reduce(group, send, kCount, recv, kCount, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL));
  text_add_hash(&text, recv, sizeof recv);
  zero_group_release(group);
  text_print("world-of-one", &text);
}

static void all_reduce_lengths(struct rank *self) {
  float send[kCount], recv[kCount - 1];
  values_fill(send, ZERO_DTYPE_F32, kCount, self->id);
  text_add_error(&self->text, zero_group_all_reduce(self->group, send, kCount, recv, kCount - 1, ZERO_DTYPE_F32, ZERO_REDUCE_SUM, NULL));
}

static void bad_root(struct rank *self) {
  float data[kCount];
  values_fill(data, ZERO_DTYPE_F32, kCount, self->id);
  text_add_error(&self->text, zero_group_broadcast(self->group, data, kCount, ZERO_DTYPE_F32, 5, NULL));
}

static void all_reductions(void) {
  static const char *const op_names[] = {"sum", "avg", "min", "max", "prod"};
  static const int32_t ops[] = {ZERO_REDUCE_SUM, ZERO_REDUCE_AVG, ZERO_REDUCE_MIN, ZERO_REDUCE_MAX, ZERO_REDUCE_PROD};
  static const char *const dtype_names[] = {"f32", "f64", "i32", "i64", "u8"};
  static const int32_t dtypes[] = {ZERO_DTYPE_F32, ZERO_DTYPE_F64, ZERO_DTYPE_I32, ZERO_DTYPE_I64, ZERO_DTYPE_U8};
  for (int op = 0; op < 5; op++) {
    for (int dtype = 0; dtype < 5; dtype++) {
      const struct reduction reduction = {dtypes[dtype], ops[op]};
      char name[64];
      snprintf(name, sizeof name, "all-reduce-%s-%s", op_names[op], dtype_names[dtype]);
      ranks_run(name, 3, all_reduce, &reduction);
    }
  }
}

void group_scenarios(void) {
  ranks_run("places", 3, places, NULL);
  ranks_run("shares", 3, shares, NULL);
  ranks_run("share-error", 3, share_error, NULL);
  ranks_run("split", 3, split, NULL);
  ranks_run("split-none", 3, split_none, NULL);
  all_reductions();
  ranks_run("all-reduce-in-place", 3, all_reduce_in_place, NULL);
  ranks_run("all-reduce-empty", 3, all_reduce_empty, NULL);
  ranks_run("reduce-scatter", 3, reduce_scatter, NULL);
  ranks_run("all-gather", 3, all_gather, NULL);
  ranks_run("broadcast", 3, broadcast, NULL);
  ranks_run("reduce", 3, reduce, NULL);
  ranks_run("gather", 3, gather, NULL);
  ranks_run("scatter", 3, scatter, NULL);
  ranks_run("all-to-all", 3, all_to_all, NULL);
  ranks_run("send-recv", 3, send_recv, NULL);
  ranks_run("barrier", 3, barrier, NULL);
  ranks_run("balance", 3, balance, NULL);
  world_of_one();
  ranks_run("all-reduce-lengths", 1, all_reduce_lengths, NULL);
  ranks_run("bad-root", 1, bad_root, NULL);
  ranks_run("balance-error", 1, balance_error, NULL);
}
