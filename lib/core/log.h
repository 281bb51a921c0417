/// @file Diagnostics: lines appended to the file that ZERO_LOG names; nothing if it is not set.
#pragma once

namespace zero {

/// True if lines are written. Guards diagnostics that are costly to compute.
bool log_is_on() noexcept;

/// Appends one line with time, process and thread. printf-style. Never fails, never prints
/// elsewhere.
[[gnu::format(printf, 1, 2)]] void log_line(const char *format, ...) noexcept;

}  // namespace zero
