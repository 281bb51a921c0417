/// @file Manifest: the commit of a save: its description, the sizes and block hashes of all files,
/// and a checksum of itself. Knows bytes; its caller knows the file.
#pragma once

#include "checkpoint/description.h"
#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

inline constexpr int64_t kBlockNbytes = 1 << 20;
inline constexpr int64_t kMostManifestNbytes = int64_t{1} << 30;
inline constexpr int kFormatVersion = 1;

/// A written file.
struct FileReport {
  int64_t file = -1;  ///< number in the FilePlan
  int64_t nbytes = 0;
  /// XXH3-64 of each block of 1 MiB, seeded with the block's number in the file.
  std::vector<uint64_t> block_hashes;
};

struct Manifest {
  SaveDescription description;
  std::vector<FileReport> files;  ///< all files, in the order of the FilePlan

  int64_t nbytes() const;  ///< total size of all files but the manifest
};

/// The number of blocks of a file of this size.
constexpr int64_t block_count(int64_t nbytes) { return (nbytes + kBlockNbytes - 1) / kBlockNbytes; }

/// The hash of block `number` of a file. The number is the seed, so that swapped blocks are
/// detected.
uint64_t block_hash(std::span<const std::byte> block, int64_t number);

/// Returns ZERO_E_INVALID_ARGUMENT if files are missing or duplicate, or a limit is passed.
Status encode_manifest(const Manifest &manifest, std::vector<std::byte> *out);

/// Checks the checksum before it parses anything, then each rule of the format. `path` names the
/// file in texts. ZERO_E_CHECKPOINT.
Status decode_manifest(std::span<const std::byte> bytes, const std::string &path, Manifest *out);

}  // namespace zero::checkpoint
