/// @file Status texts and the names of codes.
#include "core/status.h"

#include "core/utf8.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

namespace zero {

Status Status::error(int32_t code, const char *format, ...) noexcept {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  const size_t nbytes = whole_nbytes(text, std::strlen(text));
  text[nbytes] = '\0';
  // Texts from a caller or the system may hold any bytes, but error texts must be UTF-8.
  for (size_t at = valid_nbytes(text, nbytes); at < nbytes; at += valid_nbytes(text + at, nbytes - at)) text[at] = '?';
  Status status;
  status.code_ = code;
  try {
    status.text_ = std::make_shared<const std::string>(text);
  } catch (const std::bad_alloc &) {
    // The code alone is enough.
  }
  return status;
}

const char *status_name(int32_t code) noexcept {
  switch (code) {
#define ZERO_NAME(name) \
  case name:            \
    return #name
    ZERO_NAME(ZERO_OK);
    ZERO_NAME(ZERO_E_INVALID_ARGUMENT);
    ZERO_NAME(ZERO_E_BAD_HANDLE);
    ZERO_NAME(ZERO_E_UNSUPPORTED);
    ZERO_NAME(ZERO_E_STATE);
    ZERO_NAME(ZERO_E_OUT_OF_MEMORY);
    ZERO_NAME(ZERO_E_BUSY);
    ZERO_NAME(ZERO_E_MODULE);
    ZERO_NAME(ZERO_E_RENDEZVOUS);
    ZERO_NAME(ZERO_E_SYSTEM);
    ZERO_NAME(ZERO_E_LAUNCHER);
    ZERO_NAME(ZERO_E_DEVICE);
    ZERO_NAME(ZERO_E_CHECKPOINT);
    ZERO_NAME(ZERO_E_NOT_FOUND);
    ZERO_NAME(ZERO_E_REPLICAS_DIFFER);
    ZERO_NAME(ZERO_E_POOL_LIMIT);
    ZERO_NAME(ZERO_E_CORRUPT);
    ZERO_NAME(ZERO_E_DEVICE_FAILED);
    ZERO_NAME(ZERO_E_TIMEOUT);
    ZERO_NAME(ZERO_E_PEER_LOST);
    ZERO_NAME(ZERO_E_PEER_LEFT);
    ZERO_NAME(ZERO_E_PEER_FAILED);
    ZERO_NAME(ZERO_E_MISMATCH);
    ZERO_NAME(ZERO_E_ABORTED);
    ZERO_NAME(ZERO_E_TRANSPORT);
    ZERO_NAME(ZERO_E_FORKED);
    ZERO_NAME(ZERO_E_INTERNAL);
#undef ZERO_NAME
    default:
      return "ZERO_E_UNKNOWN";
  }
}

}  // namespace zero
