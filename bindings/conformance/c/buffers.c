/// @file buffers: sharded buffers of 1000 f32.
#include <inttypes.h>
#include <zero/zero.h>

#include "check.h"
#include "ranks.h"
#include "scenarios.h"
#include "values.h"

enum { kCount = 1000, kWritten = 400, kRead = 500 };

static zero_buffer *create(const struct rank *self) {
  zero_buffer *buffer;
  must(zero_buffer_create(self->group, NULL, ZERO_DTYPE_F32, kCount, &buffer));
  return buffer;
}

/// Rank r writes v(i, r) to kWritten elements from 300 r on.
static void write_parts(const struct rank *self, zero_buffer *buffer) {
  float data[kWritten];
  values_fill(data, ZERO_DTYPE_F32, kWritten, self->id);
  must(zero_buffer_write(buffer, 300 * self->id, data, kWritten, NULL));
}

static void shards(struct rank *self) {
  zero_buffer *buffer = create(self);
  void *data;
  int64_t offset, count;
  must(zero_buffer_shard(buffer, &data, &offset, &count));
  text_add(&self->text, "%" PRId64 ":%" PRId64, offset, count);
  zero_buffer_release(buffer);
}

static void write_read(struct rank *self) {
  zero_buffer *buffer = create(self);
  float data[kRead];
  write_parts(self, buffer);
  must(zero_buffer_read(buffer, 100 * self->id, data, kRead, NULL));
  text_add_hash(&self->text, data, sizeof data);
  zero_buffer_release(buffer);
}

static void whole(struct rank *self) {
  zero_buffer *buffer = create(self);
  void *data;
  write_parts(self, buffer);
  must(zero_buffer_whole_acquire(buffer, NULL, &data));
  text_add_hash(&self->text, data, kCount * (int64_t)sizeof(float));
  must(zero_buffer_whole_release(buffer));
  zero_buffer_release(buffer);
}

static void whole_twice(struct rank *self) {
  zero_buffer *buffer = create(self);
  void *data;
  must(zero_buffer_whole_acquire(buffer, NULL, &data));
  text_add_error(&self->text, zero_buffer_whole_acquire(buffer, NULL, &data));
  must(zero_buffer_whole_release(buffer));
  zero_buffer_release(buffer);
}

static void reduce_scatter(struct rank *self) {
  zero_buffer *buffer = create(self);
  float contribution[kCount];
  void *data;
  int64_t offset, count;
  values_fill(contribution, ZERO_DTYPE_F32, kCount, self->id);
  must(zero_buffer_reduce_scatter(buffer, contribution, kCount, ZERO_REDUCE_AVG, NULL));
  must(zero_buffer_shard(buffer, &data, &offset, &count));
  text_add_hash(&self->text, data, count * (int64_t)sizeof(float));
  zero_buffer_release(buffer);
}

void buffer_scenarios(void) {
  ranks_run("shards", 3, shards, NULL);
  ranks_run("buffer-write-read", 3, write_read, NULL);
  ranks_run("buffer-whole", 3, whole, NULL);
  ranks_run("buffer-whole-twice", 1, whole_twice, NULL);
  ranks_run("buffer-reduce-scatter", 3, reduce_scatter, NULL);
}
