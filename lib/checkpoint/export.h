/// @file The export: plain safetensors for any reader, one file or several with the usual index, without manifest and hashes. Knows names,
/// types and shapes; never what they mean.
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

/// Which tensors lie in which file, and who writes it: as the model files of a save. One file where `path` ends with .safetensors.
struct ExportPlan {
  struct OutputFile {
    std::string name;
    std::vector<int64_t> tensors;
    int64_t writer = 0;  ///< rank
  };
  std::string folder;  ///< path
  bool is_folder = false;  ///< the export is a folder of its own
  std::vector<ExportTensor> tensors;
  std::vector<OutputFile> files;
};
ExportPlan plan_export(const std::string &path, std::vector<ExportTensor> tensors, int64_t writers, int64_t most_nbytes);

class ExportSource {
 public:
  virtual ~ExportSource() = default;
  virtual Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) = 0;
};

/// Rank 0: makes the folder where there is none. A folder that holds other safetensors files or an index is ZERO_E_INVALID_ARGUMENT; a
/// single file that exists is replaced, by rename.
Status begin_export(const ExportPlan &plan);
/// Each rank, for its files: writes under a temporary name, syncs, renames.
Status write_export(const ExportPlan &plan, int64_t file, const std::map<std::string, std::string> &metadata, const StreamOptions &options,
                    ExportSource &source, Progress *progress);
/// Rank 0, after all: the index where there are several files, and the sync of the folder.
Status end_export(const ExportPlan &plan);

}  // namespace zero::checkpoint
