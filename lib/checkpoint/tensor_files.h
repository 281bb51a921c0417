/// @file TensorFiles: plain safetensors of any tool, read by range: one file, or several with the usual index. No hashes; the strict checks
/// of the header. And their counterpart, the export. Knows names, types and shapes; never what they mean.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/safetensors.h"
#include "core/file.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

struct PlainTensor {
  Entry entry;
  int64_t file;  ///< in TensorFiles
};

/// Bytes of one tensor.
struct PlainRange {
  int64_t tensor;
  int64_t offset;  ///< bytes within the tensor, whole elements
  int64_t nbytes;
  int64_t user = 0;
};

class PlainSink {
 public:
  virtual ~PlainSink() = default;
  virtual Status take(const PlainRange &range, int64_t offset, std::span<const std::byte> data) = 0;
};

class TensorFiles {
 public:
  /// `path`: a .safetensors file; an index (.json); or a folder that has model.safetensors.index.json, model.safetensors, or one single
  /// .safetensors file. The files named by an index lie in its folder: names with '/' are refused. ZERO_E_NOT_FOUND, ZERO_E_CHECKPOINT.
  static Status open(const std::string &path, TensorFiles *out);

  const std::vector<PlainTensor> &tensors() const { return tensors_; }
  /// -1 when there is none of that name.
  int64_t find(std::string_view name) const;
  /// __metadata__ of the first file.
  const std::map<std::string, std::string> &metadata() const { return metadata_; }

  /// Reads ranges in the order of the files. The sink gets whole elements.
  Status read(std::span<const PlainRange> ranges, const StreamOptions &options, PlainSink &sink, Progress *progress) const;

 private:
  Status add_file(const std::string &name);

  Folder folder_;
  std::vector<std::string> files_;
  std::vector<int64_t> file_nbytes_;
  std::vector<PlainTensor> tensors_;
  std::map<std::string, int64_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

struct ExportTensor {
  std::string name;
  DiskType type;
  std::vector<int64_t> shape;
};

/// Which tensors lie in which file, and who writes it: as the model files of a save. One file where `path` ends with .safetensors.
struct ExportPlan {
  std::string folder;  ///< path
  std::vector<ExportTensor> tensors;
  std::vector<std::string> names;              ///< of the files
  std::vector<std::vector<int64_t>> contents;  ///< per file: tensors
  std::vector<int64_t> writers;                ///< per file: rank
};
ExportPlan plan_export(const std::string &path, std::vector<ExportTensor> tensors, int64_t writers, int64_t most_nbytes);

class ExportSource {
 public:
  virtual ~ExportSource() = default;
  virtual Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) = 0;
};

/// Rank 0: makes the folder where there is none. A folder that holds other safetensors files is ZERO_E_INVALID_ARGUMENT; a single file that
/// exists is replaced, by rename.
Status begin_export(const ExportPlan &plan);
/// Each rank, for its files: writes under a temporary name, syncs, renames.
Status write_export(const ExportPlan &plan, int64_t file, const std::map<std::string, std::string> &metadata, const StreamOptions &options,
                    ExportSource &source, Progress *progress);
/// Rank 0, after all: the index where there are several files, and the sync of the folder.
Status end_export(const ExportPlan &plan);

}  // namespace zero::checkpoint
