/// @file Checks: arguments that several nouns share.
#include "api/checks.h"

#include "core/choice.h"
#include "core/number_text.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace zero::api {
namespace {

constexpr Choice kReduces[] = {{ZERO_REDUCE_SUM, "ZERO_REDUCE_SUM"},
                               {ZERO_REDUCE_AVG, "ZERO_REDUCE_AVG"},
                               {ZERO_REDUCE_MIN, "ZERO_REDUCE_MIN"},
                               {ZERO_REDUCE_MAX, "ZERO_REDUCE_MAX"},
                               {ZERO_REDUCE_PROD, "ZERO_REDUCE_PROD"}};

}  // namespace

Status check_pointer(const void *pointer, const char *argument) {
  ZERO_CHECK(pointer != nullptr, ZERO_E_INVALID_ARGUMENT, "%s is NULL, but must be an address", argument);
  return {};
}

Status check_bounds(int64_t value, int64_t low, int64_t high, const char *argument) {
  ZERO_CHECK(value >= low && value <= high, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must be in %s .. %s", argument, lld(value),
             bound_text(low).c_str(), bound_text(high).c_str());
  return {};
}

Status check_stream(const void *stream) {
  ZERO_CHECK(stream == nullptr, ZERO_E_UNSUPPORTED,
             "stream is %p, but must be NULL: buffers, and groups without ZERO_KEY_NCCL, work on host memory", stream);
  return {};
}

Status check_dtype(int32_t dtype) { return check_choice(kArrayDtypes, dtype, "dtype"); }

Status check_reduce(int32_t op) { return check_choice(kReduces, op, "op"); }

Status check_count(int64_t count, int32_t dtype, const char *argument) {
  ZERO_CHECK(count >= 0, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but must not be negative", argument, lld(count));
  const int64_t largest = std::numeric_limits<int64_t>::max() / dtype_nbytes(static_cast<DType>(dtype));
  ZERO_CHECK(count <= largest, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but at most %s elements of %s have a size in bytes that fits 64 bits",
             argument, lld(count), bound_text(largest).c_str(), dtype_name(static_cast<DType>(dtype)));
  return {};
}

Status check_elements(const void *data, int64_t count, int32_t dtype, const char *argument, const char *count_argument) {
  ZERO_TRY(check_count(count, dtype, count_argument));
  ZERO_CHECK(data != nullptr || count == 0, ZERO_E_INVALID_ARGUMENT, "%s is NULL, but %s is %lld; NULL is allowed only with 0", argument,
             count_argument, lld(count));
  const auto room = std::numeric_limits<uintptr_t>::max() - reinterpret_cast<uintptr_t>(data);
  const auto nbytes = static_cast<uintptr_t>(count * dtype_nbytes(static_cast<DType>(dtype)));
  ZERO_CHECK(nbytes <= room, ZERO_E_INVALID_ARGUMENT, "%s is %lld, but %s would then reach past the end of all addresses", count_argument,
             lld(count), argument);
  return {};
}

Status check_range(int64_t offset, int64_t count, int64_t total, const char *whole) {
  ZERO_CHECK(offset >= 0 && offset <= total, ZERO_E_INVALID_ARGUMENT, "offset is %lld, but must be in 0 .. %lld, the elements of %s",
             lld(offset), lld(total), whole);
  ZERO_CHECK(count >= 0 && count <= total - offset, ZERO_E_INVALID_ARGUMENT,
             "count is %lld, but must be in 0 .. %lld: %s has %s and offset is %lld", lld(count), lld(total - offset), whole,
             count_text(total, "element").c_str(), lld(offset));
  return {};
}

Status check_overlap(Span inner, Span outer, const void *in_place, const char *rule) {
  if (inner.nbytes == 0 || outer.nbytes == 0 || (in_place != nullptr && inner.data == in_place)) return {};
  const auto inner_begin = reinterpret_cast<uintptr_t>(inner.data);
  const auto outer_begin = reinterpret_cast<uintptr_t>(outer.data);
  const bool apart = inner_begin + static_cast<uintptr_t>(inner.nbytes) <= outer_begin ||
                     outer_begin + static_cast<uintptr_t>(outer.nbytes) <= inner_begin;
  ZERO_CHECK(apart, ZERO_E_INVALID_ARGUMENT, "send and recv overlap (%lld bytes at %p, %lld bytes at %p); %s", lld(inner.nbytes),
             inner.data, lld(outer.nbytes), outer.data, rule);
  return {};
}

Status check_text_outputs(const char *out, int64_t out_nbytes) {
  ZERO_CHECK(out_nbytes >= 0, ZERO_E_INVALID_ARGUMENT, "out_nbytes is %lld, but must not be negative", lld(out_nbytes));
  ZERO_CHECK(out != nullptr || out_nbytes == 0, ZERO_E_INVALID_ARGUMENT, "out is NULL, but out_nbytes is %lld; NULL is allowed only with 0",
             lld(out_nbytes));
  return {};
}

void copy_text(const std::string &text, char *out, int64_t out_nbytes, int64_t *out_needed) {
  if (out_nbytes > 0) {
    const size_t length = std::min(text.size(), static_cast<size_t>(out_nbytes) - 1);
    std::memcpy(out, text.data(), length);
    out[length] = '\0';
  }
  if (out_needed != nullptr) *out_needed = static_cast<int64_t>(text.size()) + 1;
}

}  // namespace zero::api
