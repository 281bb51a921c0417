/// @file The header of a safetensors file: 8 bytes of length, JSON, data without holes. It is
/// written with padding, so that data starts at a multiple of 4096, and read strictly. Knows bytes
/// only, no files on disk.
#pragma once

#include "checkpoint/disk_type.h"
#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace zero::checkpoint {

inline constexpr int64_t kDataAlignment = 4096;
inline constexpr int64_t kMostHeaderNbytes = 100'000'000;
inline constexpr int kMostJsonDepth = 8;
/// Name in a file: prefix, name of at most 255, slot.
inline constexpr size_t kMostNameNbytes = 1024;
inline constexpr int64_t kMostDims = 64;

/// Elements of a shape. Returns -1 if a dimension is negative, or if there are too many dimensions
/// or more than 2^62 elements.
int64_t shape_count(std::span<const int64_t> shape);

struct Entry {
  std::string name;
  DiskType type;
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< in the file

  int64_t count() const { return shape_count(shape); }
  int64_t nbytes() const { return count() * disk_type_nbytes(type); }
  friend bool operator==(const Entry &, const Entry &) = default;
};

struct Header {
  std::vector<Entry> entries;                   ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< __metadata__
  int64_t data_offset = 0;                      ///< in the file
  int64_t file_nbytes = 0;

  const Entry *find(std::string_view name) const;
};

enum class Order {
  /// Largest elements first, otherwise as given, so that each entry is aligned to its elements.
  by_size,
  given,
};

/// Lays out entries. Sets all offsets and sizes of `header`; returns the bytes of the file before
/// the data. Returns ZERO_E_INVALID_ARGUMENT for a name or size that no reader accepts.
Status format_header(Header *header, Order order, std::string *out);

/// Reads the length of the JSON from the first 8 bytes. `file` names the file in texts.
/// ZERO_E_CHECKPOINT.
Status parse_header_length(std::span<const std::byte> first_8, int64_t file_nbytes, const std::string &file, int64_t *out_json_nbytes);

/// Reads the JSON (without the 8 bytes). Refuses duplicate keys, deep nesting, unknown types,
/// holes, overlaps, data that does not end with the file, malformed UTF-8. Returns
/// ZERO_E_CHECKPOINT with file, tensor, expected and found.
Status parse_header(std::span<const std::byte> json, int64_t file_nbytes, const std::string &file, Header *out);

}  // namespace zero::checkpoint
