/// @file Diagnostics: lines appended to the file that ZERO_LOG names; nothing without it.
#pragma once

namespace zero {

/// Lines go somewhere: what costs something to find out is worth finding out.
bool log_is_on() noexcept;

/// Appends one line with time, process and thread. printf-style. Never fails, never prints elsewhere.
[[gnu::format(printf, 1, 2)]] void log_line(const char *format, ...) noexcept;

}  // namespace zero
