/// @file The export: plain safetensors for any reader, in one file or in several with the usual
/// index, without manifest and hashes. Knows names, types and shapes; never their meaning.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/disk_type.h"
#include "core/status.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

struct ExportTensor {
  std::string name;
  DiskType type;
  std::vector<int64_t> shape;
};

/// The tensors of each file and the rank that writes it, assigned as for model files of a save.
/// There is one file if `path` ends with .safetensors.
struct ExportPlan {
  struct OutputFile {
    std::string name;
    std::vector<int64_t> tensors;
    int64_t writer = 0;  ///< rank
  };
  std::string folder;      ///< path
  bool is_folder = false;  ///< the export is a folder
  std::vector<ExportTensor> tensors;
  std::vector<OutputFile> files;
};
ExportPlan plan_export(const std::string &path, std::vector<ExportTensor> tensors, int64_t writers, int64_t most_nbytes);

class ExportSource {
 public:
  virtual ~ExportSource() = default;
  virtual Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) = 0;
};

/// Metadata: "format", which some readers require, and for each tied name the name that owns its
/// values.
std::map<std::string, std::string> export_metadata(const std::map<std::string, std::string> &ties);

/// Called on rank 0. Makes the folder if there is none; *out_made is true if it did. Returns
/// ZERO_E_INVALID_ARGUMENT for a folder that is a save, holds saves, safetensors or an index, and
/// for duplicate names. An existing single file will be replaced.
Status begin_export(const ExportPlan &plan, bool *out_made = nullptr);
/// Called on each rank for its files. Writes and syncs them under temporary names.
Status write_export(const ExportPlan &plan, int64_t file, const std::map<std::string, std::string> &metadata, const StreamOptions &options,
                    ExportSource &source, Progress *progress, StreamCounts *counts = nullptr);
/// Called on rank 0 after all ranks have written. Renames the files, writes the index if there are
/// several files, and syncs the folder.
Status end_export(const ExportPlan &plan, const StreamOptions &options = {}, StreamCounts *counts = nullptr);
/// Called on rank 0 after an error. Removes the written files, and the folder if begin_export() has
/// made it. Files that cannot be removed stay.
void discard_export(const ExportPlan &plan, bool made);

}  // namespace zero::checkpoint
