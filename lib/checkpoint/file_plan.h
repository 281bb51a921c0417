/// @file FilePlan: the files of a save and the entries of each, a pure function of the description.
/// Writers follow it; readers compare the headers of files with it.
#pragma once

#include "checkpoint/description.h"
#include "checkpoint/file_names.h"
#include "checkpoint/safetensors.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace zero::checkpoint {

enum class FileKind { model, index, state, extra };

/// The slot or extra that an entry of a file holds.
struct EntrySource {
  int64_t section = -1;  ///< -1: an extra
  int64_t tensor = -1;   ///< index in the section, or the number of the extra
  int64_t slot = -1;     ///< index in the tensor
  int64_t rank = -1;     ///< rank of the section that owns the piece or copy; -1: whole
  int64_t begin = 0;     ///< first entry of the slot
  int64_t count = 0;     ///< entries
};

struct PlannedFile {
  FileKind kind;
  int64_t file = -1;   ///< in the plan
  int64_t number = 0;  ///< among its kind
  std::string name;    ///< "state-00001-of-00004.safetensors"
  std::vector<Entry> entries;        ///< in the order of their data, without offsets
  std::vector<EntrySource> sources;  ///< one for each entry
};

/// Entries are ordered tensor by tensor, slot by slot, so that a tensor is read once; then
/// format_header() puts large elements first. Files are in the order of the manifest: model files,
/// the index (if there are model files), state files, the extra file (if there are extras).
class FilePlan {
 public:
  FilePlan() = default;
  explicit FilePlan(const SaveDescription &description);

  int64_t file_count() const { return model_count_ + index_count_ + state_count_ + extra_count_; }
  FileKind kind(int64_t file) const;
  std::string name(int64_t file) const;
  int64_t model_file(int64_t number) const { return number; }
  int64_t index_file() const { return index_count_ > 0 ? model_count_ : -1; }
  int64_t state_file(int64_t rank) const { return model_count_ + index_count_ + rank; }
  int64_t extra_file() const { return extra_count_ > 0 ? file_count() - 1 : -1; }

  /// Lists the entries of one file, at the cost of that file alone.
  PlannedFile file(const SaveDescription &description, int64_t file) const;

 private:
  int64_t model_count_ = 0;
  int64_t index_count_ = 0;
  int64_t state_count_ = 0;
  int64_t extra_count_ = 0;
};

/// The metadata of a file. A reader refuses a file of another save, or under another name, by it.
std::map<std::string, std::string> file_metadata(const SaveDescription &description, FileKind kind, const std::string &name);

/// The text of model.safetensors.index.json.
std::string index_text(const SaveDescription &description);

/// @name Names in the folder of saves
/// @{
inline constexpr const char *kManifestName = "manifest.safetensors";
inline constexpr const char *kManifestTemporary = "manifest.tmp";
inline constexpr const char *kManifestDeleted = "manifest.deleted";
inline constexpr const char *kExtraName = "extra.safetensors";
/// "save-<step, 20 digits>-<id>"
std::string save_name(uint64_t step, const std::string &id);
/// False for a name of another form.
bool parse_save_name(std::string_view name, uint64_t *out_step, std::string *out_id);
/// @}

}  // namespace zero::checkpoint
