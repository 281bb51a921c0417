/// @file Removing saves: rotation, sweep, and single ones.
#include "checkpoint/file_plan.h"
#include "checkpoint/saves.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <string_view>
#include <utility>

#include <dirent.h>

namespace zero::checkpoint {
namespace {

constexpr std::string_view kDead = "dead-";
constexpr size_t kRunDigits = 16;

/// Leftovers of a save without a commit.
Status remove_files(const Folder &saves, const std::string &name, const Folder &folder, int64_t *freed_nbytes) {
  std::vector<FolderEntry> entries;
  ZERO_TRY(folder.list(&entries));
  for (const FolderEntry &entry : entries) {
    int64_t nbytes = 0;
    const bool counted = folder.file_size(entry.name, &nbytes).ok();
    int reason = 0;
    const Status status = folder.unlink(entry.name, &reason);
    if (!status.ok() && reason != ENOENT) return status;
    if (counted) *freed_nbytes += nbytes;
  }
  return saves.remove_folder(name);
}

/// Renames the folder out of the way, looks whether it was committed meanwhile, by a writer that was thought dead, and only then removes.
Status sweep_one(const Folder &saves, std::string name, int64_t *freed_nbytes, bool *swept) {
  *swept = false;
  const std::string save(name.starts_with(kDead) ? name.substr(kDead.size()) : name);
  const std::string dead = std::string(kDead) + save;
  Folder folder;
  ZERO_TRY(saves.open_folder(name, &folder));
  if (name != dead) ZERO_TRY(saves.rename(name, dead));
  bool committed = true;
  ZERO_TRY(folder.has(kManifestName, &committed));
  if (committed) return saves.rename(dead, save);
  ZERO_TRY(remove_files(saves, dead, folder, freed_nbytes));
  *swept = true;
  return {};
}

/// Folders of the run without a manifest, and those that an earlier sweep has renamed.
Status sweep(const Folder &saves, const std::string &newest, const std::string &run, RotateCounts *out) {
  std::vector<FolderEntry> entries;
  ZERO_TRY(saves.list(&entries));
  for (const FolderEntry &entry : entries) {
    const bool dead = entry.name.starts_with(kDead);
    uint64_t step = 0;
    std::string id;
    if (!parse_save_name(std::string_view(entry.name).substr(dead ? kDead.size() : 0), &step, &id)) continue;
    if (entry.name == newest || id.substr(0, kRunDigits) != run || (entry.type != DT_DIR && entry.type != DT_UNKNOWN)) continue;
    bool committed = true;
    ZERO_TRY(saves.has(entry.name + "/" + kManifestName, &committed));
    if (committed && !dead) continue;
    bool swept = false;
    ZERO_TRY(sweep_one(saves, entry.name, &out->freed_nbytes, &swept));
    if (swept) ++out->swept;
  }
  return {};
}

/// Committed saves of the run with smaller steps, newest first, that can be read.
Status older_saves(const Folder &saves, const std::string &newest, const SaveDescription &description, std::vector<std::string> *out) {
  std::vector<SaveEntry> entries;
  ZERO_TRY(list_saves(saves, &entries));
  for (const SaveEntry &entry : entries) {
    const bool of_run = entry.id.substr(0, kRunDigits) == description.run_id.substr(0, kRunDigits);
    if (!entry.committed || !of_run || entry.step >= description.step || entry.name == newest) continue;
    std::vector<std::byte> bytes;
    Manifest manifest;
    if (!read_manifest(saves, entry.name, true, &bytes, &manifest).ok() || manifest.description.run_id != description.run_id) continue;
    out->push_back(entry.name);
  }
  return {};
}

}  // namespace

Status prunable_saves(const Folder &saves, int64_t keep, std::vector<std::string> *out) {
  ZERO_CHECK(keep >= 1, ZERO_E_INVALID_ARGUMENT, "keep is %lld, but at least the newest save stays", lld(keep));
  std::vector<SaveEntry> entries;
  ZERO_TRY(list_saves(saves, &entries));
  std::map<std::string, int64_t> kept;
  out->clear();
  for (const SaveEntry &entry : entries) {
    std::vector<std::byte> bytes;
    Manifest manifest;
    if (!entry.committed || !read_manifest(saves, entry.name, true, &bytes, &manifest).ok()) continue;
    if (++kept[manifest.description.run_id] > keep) out->push_back(entry.name);
  }
  std::reverse(out->begin(), out->end());
  return {};
}

Status delete_save(const Folder &saves, const std::string &name, bool sync, int64_t *out_freed_nbytes) {
  Folder folder;
  ZERO_TRY(saves.open_folder(name, &folder));
  bool committed = false;
  ZERO_TRY(folder.has(kManifestName, &committed));
  if (committed) ZERO_TRY(folder.rename(kManifestName, kManifestDeleted));
  // Also where an earlier call has renamed it: before this the save may come back after a power cut, and then must be whole.
  if (sync) ZERO_TRY(folder.sync());
  return remove_files(saves, name, folder, out_freed_nbytes);
}

Status rotate_saves(const Folder &saves, const std::string &newest, const Manifest &manifest, int64_t keep, bool sync, RotateCounts *out) {
  *out = {};
  std::vector<std::byte> bytes;
  Manifest found;
  ZERO_TRY(read_manifest(saves, newest, true, &bytes, &found));  // nothing is removed for the sake of a save that is not there
  std::vector<std::string> older;
  if (keep > 0) ZERO_TRY(older_saves(saves, newest, manifest.description, &older));
  for (size_t i = static_cast<size_t>(std::max<int64_t>(keep - 1, 0)); i < older.size(); ++i) {
    ZERO_TRY(delete_save(saves, older[i], sync, &out->freed_nbytes));
    ++out->removed;
  }
  return sweep(saves, newest, manifest.description.run_id.substr(0, kRunDigits), out);
}

}  // namespace zero::checkpoint
