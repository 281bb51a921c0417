/// @file FileNames: names of safetensors files that readers expect, and the two parts of a path.
#pragma once

#include <string>

namespace zero::checkpoint {

inline constexpr const char *kSuffix = ".safetensors";
inline constexpr const char *kModelName = "model.safetensors";
inline constexpr const char *kIndexName = "model.safetensors.index.json";

/// Removes trailing slashes; "/" stays.
inline std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// "." for a path without '/'.
inline std::string folder_of(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

inline std::string name_in(const std::string &path) { return path.substr(path.rfind('/') + 1); }

}  // namespace zero::checkpoint
