/// @file TensorFiles: plain safetensors of any tool, read by range, from one file or from several
/// with the usual index. There are no hashes; headers are checked strictly. Knows names, types and
/// shapes; never their meaning.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/safetensors.h"
#include "core/file.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero::checkpoint {

class Transfers;
struct StreamedFile;

struct PlainTensor {
  Entry entry;
  int64_t file;  ///< index in TensorFiles
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
  /// `path` is a .safetensors file, an index (.json), or a folder that has
  /// model.safetensors.index.json, model.safetensors, or a single .safetensors file. The files of
  /// an index must be in its folder: names with '/' are refused. ZERO_E_NOT_FOUND,
  /// ZERO_E_CHECKPOINT.
  static Status open(const std::string &path, TensorFiles *out);

  const std::vector<PlainTensor> &tensors() const { return tensors_; }
  /// Returns -1 if there is no such name.
  int64_t find(std::string_view name) const;
  /// __metadata__ of the first file.
  const std::map<std::string, std::string> &metadata() const { return metadata_; }

  int64_t file_count() const { return static_cast<int64_t>(files_.size()); }
  /// For texts.
  std::string path_of(int64_t file) const { return folder_.path_of(files_[static_cast<size_t>(file)]); }

  /// Like TensorReader::read(), with staging for one call.
  Status read(std::span<const PlainRange> ranges, const StreamOptions &options, PlainSink &sink, Progress *progress) const;

 private:
  friend class TensorReader;

  Status add_file(const std::string &name);
  Status check_ranges(std::span<const PlainRange> ranges) const;

  Folder folder_;
  std::vector<std::string> files_;
  std::vector<int64_t> file_nbytes_;
  std::vector<PlainTensor> tensors_;
  std::map<std::string, int64_t, std::less<>> by_name_;
  std::map<std::string, std::string> metadata_;
};

/// Reads ranges of opened files; all calls use the same staging buffers.
class TensorReader {
 public:
  /// The files must outlive the reader.
  TensorReader(const TensorFiles &files, const StreamOptions &options);
  TensorReader(const TensorReader &) = delete;
  ~TensorReader();

  /// Reads ranges in the order of the files. The sink receives whole elements.
  Status read(std::span<const PlainRange> ranges, PlainSink &sink, Progress *progress);

  const StreamCounts &counts() const { return counts_; }

 private:
  Status open(int64_t file);
  Status read_file(int64_t file, std::span<const PlainRange *const> ranges, PlainSink &sink, Progress *progress);

  const TensorFiles &files_;
  const StreamOptions options_;
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<StreamedFile> input_;  ///< the file of the last read
  int64_t input_file_ = -1;
  StreamCounts counts_;
};

/// True for the name of a save, or of a file that only saves have.
bool is_of_saves(const std::string &name);
/// True for a path of plain safetensors: a .safetensors file, an index (.json), or a folder with
/// such files. False for a save, a folder of saves, and the remains of an uncommitted save.
Status is_plain(const std::string &path, bool *out);

}  // namespace zero::checkpoint
