/// @file zero/buffer.h.
#include "engine/buffer/buffer.h"

#include "api/request.h"
#include "core/number_text.h"

namespace zero::api {
namespace {

Status describe_create(Work &work, zero_group *handle, const zero_config *config, int32_t dtype, int64_t count) {
  std::shared_ptr<Group> group;
  std::shared_ptr<Config> options;
  ZERO_TRY(find(handle, "group", &group));
  ZERO_TRY(find_config(config, &options));
  ZERO_TRY(check_dtype(dtype));
  ZERO_TRY(check_count(count, dtype, "count"));
  work.queue = group->queue();
  work.task.emplace(Buffer::create(group, *options, static_cast<DType>(dtype), count, &work.buffer));
  work.owner = std::move(group);
  work.makes = Work::Makes::buffer;
  return {};
}

/// Begins each call on a buffer that may wait.
Status find_buffer(Work &work, const zero_buffer *handle, const void *stream, std::shared_ptr<Buffer> *out) {
  ZERO_TRY(find(handle, "buffer", out));
  ZERO_TRY(check_stream(stream));
  work.queue = (*out)->queue();
  work.owner = *out;
  return {};
}

Status describe_whole_acquire(Work &work, zero_buffer *handle, const void *stream, void **out_data) {
  std::shared_ptr<Buffer> buffer;
  ZERO_TRY(find_buffer(work, handle, stream, &buffer));
  ZERO_TRY(check_pointer(out_data, "out_data"));
  work.task.emplace(buffer->whole_acquire(out_data));
  return {};
}

Status describe_reduce_scatter(Work &work, zero_buffer *handle, const void *data, int64_t count, int32_t op, const void *stream) {
  std::shared_ptr<Buffer> buffer;
  ZERO_TRY(find_buffer(work, handle, stream, &buffer));
  ZERO_CHECK(count == buffer->count(), ZERO_E_INVALID_ARGUMENT, "count is %lld, but the buffer has %s", lld(count),
             count_text(buffer->count(), "element").c_str());
  ZERO_TRY(check_elements(data, count, static_cast<int32_t>(buffer->dtype()), "data", "count"));
  ZERO_TRY(check_reduce(op));
  work.task.emplace(buffer->reduce_scatter(data, count, static_cast<ReduceOp>(op)));
  return {};
}

/// Checks the range of a read or write.
Status find_range(Work &work, zero_buffer *handle, int64_t offset, const void *data, int64_t count, const void *stream,
                  std::shared_ptr<Buffer> *out) {
  ZERO_TRY(find_buffer(work, handle, stream, out));
  ZERO_TRY(check_range(offset, count, (*out)->count(), "the buffer"));
  return check_elements(data, count, static_cast<int32_t>((*out)->dtype()), "data", "count");
}

Status describe_read(Work &work, zero_buffer *handle, int64_t offset, void *data, int64_t count, const void *stream) {
  std::shared_ptr<Buffer> buffer;
  ZERO_TRY(find_range(work, handle, offset, data, count, stream, &buffer));
  work.task.emplace(buffer->read(offset, data, count));
  return {};
}

Status describe_write(Work &work, zero_buffer *handle, int64_t offset, const void *data, int64_t count, const void *stream) {
  std::shared_ptr<Buffer> buffer;
  ZERO_TRY(find_range(work, handle, offset, data, count, stream, &buffer));
  work.task.emplace(buffer->write(offset, data, count));
  return {};
}

}  // namespace
}  // namespace zero::api

using namespace zero;
using api::Work;

int32_t zero_buffer_create(zero_group *group, const zero_config *config, int32_t dtype, int64_t count, zero_buffer **out) {
  return api::run_work(
      [&](Work &work) -> Status {
        ZERO_TRY(api::describe_create(work, group, config, dtype, count));
        return api::check_pointer(out, "out");
      },
      [&](Work &work) -> Status {
        *out = api::make_handle<zero_buffer>(std::move(work.buffer));
        return {};
      });
}

int32_t zero_buffer_create_async(zero_group *group, const zero_config *config, int32_t dtype, int64_t count, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_create(work, group, config, dtype, count); });
}

int32_t zero_buffer_shard(const zero_buffer *buffer, void **out_data, int64_t *out_offset, int64_t *out_count) {
  return api::call(buffer, "buffer", [&](Buffer &object) -> Status {
    ZERO_TRY(api::check_pointer(out_data, "out_data"));
    ZERO_TRY(api::check_pointer(out_offset, "out_offset"));
    ZERO_TRY(api::check_pointer(out_count, "out_count"));
    const Buffer::Shard shard = object.shard();
    *out_data = shard.data;
    *out_offset = shard.offset;
    *out_count = shard.count;
    return {};
  });
}

int32_t zero_buffer_whole_acquire(zero_buffer *buffer, void *stream, void **out_data) {
  return api::run_work([&](Work &work) { return api::describe_whole_acquire(work, buffer, stream, out_data); });
}

int32_t zero_buffer_whole_acquire_async(zero_buffer *buffer, void *stream, void **out_data, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_whole_acquire(work, buffer, stream, out_data); });
}

int32_t zero_buffer_whole_release(zero_buffer *buffer) {
  return api::call(buffer, "buffer", [&](Buffer &object) -> Status { return object.whole_release(); });
}

int32_t zero_buffer_reduce_scatter(zero_buffer *buffer, const void *data, int64_t count, int32_t op, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_reduce_scatter(work, buffer, data, count, op, stream); });
}

int32_t zero_buffer_reduce_scatter_async(zero_buffer *buffer, const void *data, int64_t count, int32_t op, void *stream,
                                         zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_reduce_scatter(work, buffer, data, count, op, stream); });
}

int32_t zero_buffer_read(zero_buffer *buffer, int64_t offset, void *data, int64_t count, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_read(work, buffer, offset, data, count, stream); });
}

int32_t zero_buffer_read_async(zero_buffer *buffer, int64_t offset, void *data, int64_t count, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_read(work, buffer, offset, data, count, stream); });
}

int32_t zero_buffer_write(zero_buffer *buffer, int64_t offset, const void *data, int64_t count, void *stream) {
  return api::run_work([&](Work &work) { return api::describe_write(work, buffer, offset, data, count, stream); });
}

int32_t zero_buffer_write_async(zero_buffer *buffer, int64_t offset, const void *data, int64_t count, void *stream, zero_request **out) {
  return api::begin_work(out, [&](Work &work) { return api::describe_write(work, buffer, offset, data, count, stream); });
}

void zero_buffer_release(zero_buffer *buffer) { api::release(buffer, "buffer"); }
