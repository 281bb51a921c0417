/// @file What short files hold, such as the system's own. Knows nothing of what they say.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace zero {

/// The beginning of a file, as far as there is room. Returns the bytes that were read; -1, with errno, when it cannot be read.
int64_t read_file(const char *path, std::span<char> out) noexcept;

/// All of a file; empty when it cannot be read.
std::string file_text(const std::string &path);

}  // namespace zero
