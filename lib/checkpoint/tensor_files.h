/// @file TensorFiles: plain safetensors of any tool, read by range: one file, or several with the usual index. No hashes; the strict checks
/// of the header. Knows names, types and shapes; never what they mean.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/safetensors.h"
#include "core/file.h"

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

class Transfers;

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
  Status read_file(int64_t file, std::span<const PlainRange *const> ranges, const StreamOptions &options, Transfers *transfers, PlainSink &sink,
                   Progress *progress) const;

  Folder folder_;
  std::vector<std::string> files_;
  std::vector<int64_t> file_nbytes_;
  std::vector<PlainTensor> tensors_;
  std::map<std::string, int64_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace zero::checkpoint
