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

/// Which tensors lie in which file, and the rank that writes it, dealt as the model files of a save are. One file where `path` ends with
/// .safetensors.
struct ExportPlan {
  struct OutputFile {
    std::string name;
    std::vector<int64_t> tensors;
    int64_t writer = 0;  ///< rank
  };
  std::string folder;      ///< path
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

/// "format", which some readers ask for, and for each tied name the name under which its values lie.
std::map<std::string, std::string> export_metadata(const std::map<std::string, std::string> &ties);

/// Rank 0: makes the folder where there is none; *out_made tells. A folder that is a save, holds saves, safetensors or an index is
/// ZERO_E_INVALID_ARGUMENT, and so are two tensors of one name. A single file that exists will be replaced.
Status begin_export(const ExportPlan &plan, bool *out_made = nullptr);
/// Each rank, for its files: writes and syncs them under temporary names.
Status write_export(const ExportPlan &plan, int64_t file, const std::map<std::string, std::string> &metadata, const StreamOptions &options,
                    ExportSource &source, Progress *progress, StreamCounts *counts = nullptr);
/// Rank 0, after all: gives the files their names, writes the index where there are several, and syncs the folder.
Status end_export(const ExportPlan &plan, const StreamOptions &options = {}, StreamCounts *counts = nullptr);
/// Rank 0, after an error: removes what was written and, where begin_export() has made it, the folder. An error leaves the rest there.
void discard_export(const ExportPlan &plan, bool made);

}  // namespace zero::checkpoint
