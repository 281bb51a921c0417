/// @file File texts: reads short files, such as the system's own. Knows nothing of their meaning.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace zero {

/// Reads the beginning of a file, as far as `out` has room. Returns the bytes read, or -1 with
/// errno if it cannot be read.
int64_t read_file(const char *path, std::span<char> out) noexcept;

/// Returns all of a file; empty if it cannot be read.
std::string file_text(const std::string &path);

}  // namespace zero
