/// @file Descriptor room: how many more file descriptors this process may open, and a text that
/// names the limit. Knows nothing of their use; never changes the limit.
#pragma once

#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero {

/// Returns how many more file descriptors this process may open; stops counting at `enough`.
int64_t free_descriptors(int64_t enough);

/// Returns ZERO_OK if this process may open `needed` more, otherwise ZERO_E_SYSTEM with a text that
/// begins with `what`.
Status check_descriptors(int64_t needed, const char *what);

/// "RLIMIT_NOFILE is 1024; raise it with ulimit -n"
std::string descriptor_limit_text();

/// Returns the text of strerror. If a limit on descriptors was reached, it includes the limit.
std::string system_error_text(int error);

}  // namespace zero
