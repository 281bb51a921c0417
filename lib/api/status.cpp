/// @file zero/status.h: error texts per thread, and the names of codes.
#include "api/barrier.h"

#include "core/utf8.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

namespace zero::api {
namespace {

/// Plain memory, so that threads that never fail run no constructor, and ending threads no
/// destructor.
struct LastError {
  int32_t code;
  char text[2048];
};
constinit thread_local LastError last_error = {};

[[gnu::format(printf, 2, 3)]] int32_t keep(int32_t code, const char *format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error.text, sizeof last_error.text, format, arguments);
  va_end(arguments);
  last_error.code = code;
  return code;
}

}  // namespace

int32_t remember(const Status &status) noexcept {
  // A text is empty only if there was no memory for it.
  if (*status.text() == '\0') return keep(status.code(), "%s (no memory for a longer text)", status_name(status.code()));
  return keep(status.code(), "%s", status.text());
}

int32_t remember_exception(const char *function) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return keep(ZERO_E_OUT_OF_MEMORY, "%s: out of memory", function);
  } catch (const std::exception &exception) {
    return keep(ZERO_E_INTERNAL, "%s: unexpected exception: %s", function, exception.what());
  } catch (...) {
    return keep(ZERO_E_INTERNAL, "%s: unexpected exception", function);
  }
}

int32_t remember_fork(const char *function) noexcept {
  return keep(ZERO_E_FORKED, "%s: this process was forked after libzero was first used; only the parent may call libzero", function);
}

int32_t last_code() noexcept { return last_error.code; }

const char *last_text() noexcept { return last_error.text; }

}  // namespace zero::api

using namespace zero;

int32_t zero_last_error_copy(char *out, int64_t out_nbytes) {
  if (out_nbytes < 0 || (out == nullptr && out_nbytes != 0)) return ZERO_E_INVALID_ARGUMENT;
  if (out_nbytes > 0) {
    const size_t room = static_cast<size_t>(out_nbytes) - 1;
    const size_t length = whole_nbytes(api::last_text(), ::strnlen(api::last_text(), room));
    std::memcpy(out, api::last_text(), length);
    out[length] = '\0';
  }
  return api::last_code();
}

const char *zero_status_name(int32_t status) { return status_name(status); }
