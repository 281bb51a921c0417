/// @file Checks: arguments that several nouns share. Each text names the parameter, the value given
/// and the values expected.
#pragma once

#include "core/dtype.h"
#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero::api {

/// Checks that a pointer is not NULL.
Status check_pointer(const void *pointer, const char *argument);
/// Checks low <= value <= high.
Status check_bounds(int64_t value, int64_t low, int64_t high, const char *argument);
/// Checks that no stream is given: streams are for device memory, and this memory is the host's.
Status check_stream(const void *stream);
Status check_dtype(int32_t dtype);
Status check_reduce(int32_t op);
/// Checks that count >= 0 and its bytes fit into an int64. The dtype is valid.
Status check_count(int64_t count, int32_t dtype, const char *argument);
/// Checks `count` elements at `data`, which may be NULL only if count is 0. The dtype is valid.
Status check_elements(const void *data, int64_t count, int32_t dtype, const char *argument, const char *count_argument);
/// Checks that [offset, offset + count) is within a whole of `total`.
Status check_range(int64_t offset, int64_t count, int64_t total, const char *whole);
/// A range of memory that is read or written.
struct Span {
  const void *data;
  int64_t nbytes;
};
/// Checks that memory that is read does not overlap memory that is written. The exception is
/// `inner` at `in_place` (NULL: nowhere), a part of `outer` of the same size. `rule` states this in
/// the text.
Status check_overlap(Span inner, Span outer, const void *in_place, const char *rule);

/// Copies a text as the zero_describe_... functions promise: cut to fit, always terminated.
/// check_text_outputs has checked the outputs.
void copy_text(const std::string &text, char *out, int64_t out_nbytes, int64_t *out_needed);
Status check_text_outputs(const char *out, int64_t out_nbytes);

}  // namespace zero::api
