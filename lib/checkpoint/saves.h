/// @file The folder of saves: listing, search for the newest valid save, rotation and sweep. Rank 0
/// or a tool does this work; other ranks open a save by the name that rank 0 sends. A folder
/// without a valid manifest is not a save.
///
/// A save's id begins with the first 16 digits of the id of its run. The sweep recognises the
/// leftovers of its run by name alone, even if a power cut has left none of their files.
#pragma once

#include "checkpoint/manifest.h"
#include "core/file.h"

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace zero::checkpoint {

/// Makes the id of a new save of a run.
Status make_save_id(const std::string &run_id, std::string *out);

/// An entry of the folder with the name of a save.
struct SaveEntry {
  std::string name;
  uint64_t step = 0;
  std::string id;
  bool committed = false;  ///< has a manifest, which read_manifest() checks
};

/// Lists the saves in the order of their names, the largest step first. Ignores other entries of
/// the folder.
Status list_saves(const Folder &saves, std::vector<SaveEntry> *out);

/// Reads all bytes of a save's manifest, which rank 0 sends to the other ranks, and decodes them.
/// Checks the sizes of the other files if `sizes` is true. Returns ZERO_E_CHECKPOINT if the save is
/// damaged, ZERO_E_NOT_FOUND if it is not committed or missing.
Status read_manifest(const Folder &saves, const std::string &name, bool sizes, std::vector<std::byte> *out_bytes, Manifest *out);

/// The order of saves: by step, then by time, then by name. Larger is newer.
struct SaveAge {
  uint64_t step = 0;
  std::string created;
  std::string name;
  auto operator<=>(const SaveAge &) const = default;
};
SaveAge age_of(const std::string &name, const SaveDescription &description);

struct FoundSave {
  std::string name;
  std::vector<std::byte> bytes;
  Manifest manifest;
  int64_t passed_over = 0;  ///< number of newer, damaged saves
};

/// Finds the newest valid save, or with index 1, 2, ... the valid ones before it, in the order of
/// SaveAge.
/// ZERO_E_NOT_FOUND: there is no committed save; only then may a program start anew.
/// ZERO_E_CHECKPOINT: there are some, but none is valid.
Status find_save(const Folder &saves, int64_t index, FoundSave *out);

/// `path` is a save or a folder of saves. Opens the folder of saves; *out_name is empty if `path`
/// is that folder.
Status open_saves(const std::string &path, Folder *out_saves, std::string *out_name);

struct RotateCounts {
  int64_t removed = 0;  ///< committed saves
  int64_t swept = 0;    ///< leftovers
  int64_t freed_nbytes = 0;
};

/// Called after `newest` was acknowledged. Removes committed saves of its run beyond the `keep`
/// newest up to it (0 keeps all), and sweeps the run's leftovers. Never touches other runs, newer
/// saves, or unreadable saves. If one save cannot be removed, the others are removed all the same;
/// returns the first error.
Status rotate_saves(const Folder &saves, const std::string &newest, const Manifest &manifest, int64_t keep, bool sync, RotateCounts *out);

/// Lists committed, valid saves that are older than the `keep` newest of their run, oldest first.
/// Never lists the newest save of the folder or unreadable saves. Returns ZERO_E_INVALID_ARGUMENT
/// for a keep below 1.
Status prunable_saves(const Folder &saves, int64_t keep, std::vector<std::string> *out);

/// Removes one save, committed or not: first the commit, durably, then the files. Returns
/// ZERO_E_NOT_FOUND if there is no folder of that name.
Status delete_save(const Folder &saves, const std::string &name, bool sync, int64_t *out_freed_nbytes);

}  // namespace zero::checkpoint
