/// @file Checks of arguments that several nouns share. Each text names the parameter, what it was given and what was expected.
#pragma once

#include "core/dtype.h"
#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero::api {

/// A pointer that must not be NULL.
Status check_pointer(const void *pointer, const char *argument);
/// low <= value <= high.
Status check_bounds(int64_t value, int64_t low, int64_t high, const char *argument);
/// Streams are reserved for device memory; everything here lies in host memory.
Status check_stream(const void *stream);
Status check_dtype(int32_t dtype);
Status check_reduce(int32_t op);
/// count >= 0 whose bytes fit into an int64. The dtype is a valid one.
Status check_count(int64_t count, int32_t dtype, const char *argument);
/// `count` elements at `data`, which may be NULL only when count is 0. The dtype is a valid one.
Status check_elements(const void *data, int64_t count, int32_t dtype, const char *argument, const char *count_argument);
/// [offset, offset + count) within a whole of `total`.
Status check_range(int64_t offset, int64_t count, int64_t total, const char *whole);
/// Memory that is read and memory that is written must not overlap, except that `inner` may lie at `in_place` (NULL: nowhere), which is a
/// part of `outer` of the same size. `rule` says so in the text.
struct Span {
  const void *data;
  int64_t nbytes;
};
Status check_overlap(Span inner, Span outer, const void *in_place, const char *rule);

/// Copies a text as zero_describe_... promise: cut to fit, always terminated. The outputs were checked with check_text_outputs.
void copy_text(const std::string &text, char *out, int64_t out_nbytes, int64_t *out_needed);
Status check_text_outputs(const char *out, int64_t out_nbytes);

}  // namespace zero::api
