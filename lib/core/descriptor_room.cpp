/// @file Counts free descriptors by asking for the flags of each number, which needs no descriptor.
#include "core/descriptor_room.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace zero {
namespace {

/// Returns the number that all descriptors are below.
int64_t limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > static_cast<rlim_t>(INT32_MAX)) return INT32_MAX;
  return static_cast<int64_t>(limit.rlim_cur);
}

/// If the system refuses to answer, the descriptor counts as free: a later open reports the
/// failure.
bool is_free(int64_t fd) { return ::fcntl(static_cast<int>(fd), F_GETFD) < 0; }

}  // namespace

/// Counts from the highest number down, because programs use the lowest.
int64_t free_descriptors(int64_t enough) {
  int64_t count = 0;
  for (int64_t fd = limit() - 1; fd >= 0 && count < enough; --fd) count += is_free(fd) ? 1 : 0;
  return count;
}

Status check_descriptors(int64_t needed, const char *what) {
  const int64_t free = free_descriptors(needed);
  ZERO_CHECK(free >= needed, ZERO_E_SYSTEM, "%s: %lld more are needed, but this process may open only %lld (%s)", what, lld(needed),
             lld(free), descriptor_limit_text().c_str());
  return {};
}

std::string descriptor_limit_text() { return "RLIMIT_NOFILE is " + std::to_string(limit()) + "; raise it with ulimit -n"; }

std::string system_error_text(int error) {
  std::string text = std::strerror(error);
  if (error == EMFILE) text += " (" + descriptor_limit_text() + ")";
  return text;
}

}  // namespace zero
