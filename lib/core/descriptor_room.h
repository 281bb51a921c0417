/// @file Room for file descriptors: how many more this process may open, and how texts name the limit. Knows nothing of who needs them;
/// never changes the limit.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero {

/// How many more file descriptors this process may open, counted as far as `enough`.
int64_t free_descriptors(int64_t enough);

/// ZERO_OK where this process may open `needed` more of them; otherwise ZERO_E_SYSTEM with a text that begins with `what`.
Status check_descriptors(int64_t needed, const char *what);

/// "RLIMIT_NOFILE is 1024; raise it with ulimit -n"
std::string descriptor_limit_text();

/// What strerror says; of a limit on descriptors also which it is.
std::string system_error_text(int error);

}  // namespace zero
