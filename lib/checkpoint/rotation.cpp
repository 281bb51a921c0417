/// @file Removing saves: rotation, sweep, and single ones.
#include "checkpoint/file_plan.h"
#include "checkpoint/saves.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <dirent.h>

namespace zero::checkpoint {
namespace {

constexpr std::string_view kDead = "dead-";
constexpr size_t kRunDigits = 16;

/// Makes the removal of the commit durable. Before that, a power cut may restore the save, which
/// then must be whole.
Status settle_deletion(const Folder &folder, bool sync) {
  bool deleted = false;
  ZERO_TRY(folder.has(kManifestDeleted, &deleted));
  return deleted && sync ? folder.sync() : Status();
}

/// Removes the leftovers of a save without a commit.
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

/// Renames the folder first, then checks whether a writer that was assumed dead has committed it
/// meanwhile, and only then removes it.
Status sweep_one(const Folder &saves, const std::string &name, bool sync, int64_t *freed_nbytes, bool *swept) {
  *swept = false;
  const std::string save(name.starts_with(kDead) ? name.substr(kDead.size()) : name);
  const std::string dead = std::string(kDead) + save;
  Folder folder;
  ZERO_TRY(saves.open_folder(name, &folder));
  if (name != dead) ZERO_TRY(saves.rename(name, dead));
  bool committed = true;
  ZERO_TRY(folder.has(kManifestName, &committed));
  if (committed) return saves.rename(dead, save);
  ZERO_TRY(settle_deletion(folder, sync));
  ZERO_TRY(remove_files(saves, dead, folder, freed_nbytes));
  *swept = true;
  return {};
}

/// Keeps the first error of several independent operations.
class FirstError {
 public:
  void add(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status &status() const { return status_; }

 private:
  Status status_;
};

/// The rotation and the sweep of one run.
class Rotation {
 public:
  Rotation(const Folder &saves, const std::string &newest, const SaveDescription &description, bool sync, RotateCounts *out)
      : saves_(saves), newest_(age_of(newest, description)), run_id_(description.run_id), sync_(sync), out_(*out) {}

  /// Removes all but the `keep` newest, of which `newest` is the first.
  void remove_beyond(int64_t keep) {
    std::vector<SaveAge> older;
    errors_.add(find_older(&older));
    std::sort(older.begin(), older.end(), std::greater<>());
    for (size_t i = static_cast<size_t>(keep - 1); i < older.size(); ++i) {
      Status status = delete_save(saves_, older[i].name, sync_, &out_.freed_nbytes);
      if (status.ok()) ++out_.removed;
      if (!status.ok()) left_.insert(older[i].name);
      // ZERO_E_NOT_FOUND: another job has removed it.
      if (status.code() != ZERO_E_NOT_FOUND) errors_.add(std::move(status));
    }
  }

  /// Removes folders of the run without a manifest, and folders that an earlier sweep has renamed.
  void sweep() {
    std::vector<FolderEntry> entries;
    errors_.add(saves_.list(&entries));
    for (const FolderEntry &entry : entries) {
      bool leftover = false;
      errors_.add(is_leftover(entry, &leftover));
      if (!leftover) continue;
      bool swept = false;
      errors_.add(sweep_one(saves_, entry.name, sync_, &out_.freed_nbytes, &swept));
      if (swept) ++out_.swept;
    }
  }

  const Status &status() const { return errors_.status(); }

 private:
  bool of_run(const std::string &id) const { return id.substr(0, kRunDigits) == run_id_.substr(0, kRunDigits); }

  /// Finds the readable committed saves of the run that are older than the newest. They are in no
  /// order.
  Status find_older(std::vector<SaveAge> *out) const {
    std::vector<SaveEntry> entries;
    ZERO_TRY(list_saves(saves_, &entries));
    for (const SaveEntry &entry : entries) {
      if (!entry.committed || !of_run(entry.id) || entry.step > newest_.step || entry.name == newest_.name) continue;
      std::vector<std::byte> bytes;
      Manifest manifest;
      if (!read_manifest(saves_, entry.name, true, &bytes, &manifest).ok() || manifest.description.run_id != run_id_) continue;
      SaveAge age = age_of(entry.name, manifest.description);
      if (age < newest_) out->push_back(std::move(age));
    }
    return {};
  }

  /// A save that this rotation failed to remove is no leftover: it stays for the next rotation.
  Status is_leftover(const FolderEntry &entry, bool *out) const {
    *out = false;
    const bool dead = entry.name.starts_with(kDead);
    uint64_t step = 0;
    std::string id;
    if (!parse_save_name(std::string_view(entry.name).substr(dead ? kDead.size() : 0), &step, &id)) return {};
    if (entry.name == newest_.name || left_.contains(entry.name) || !of_run(id)) return {};
    if (entry.type != DT_DIR && entry.type != DT_UNKNOWN) return {};
    bool committed = true;
    ZERO_TRY(saves_.has(entry.name + "/" + kManifestName, &committed));
    *out = dead || !committed;
    return {};
  }

  const Folder &saves_;
  const SaveAge newest_;
  const std::string &run_id_;
  const bool sync_;
  RotateCounts &out_;
  std::set<std::string> left_;
  FirstError errors_;
};

}  // namespace

Status prunable_saves(const Folder &saves, int64_t keep, std::vector<std::string> *out) {
  ZERO_CHECK(keep >= 1, ZERO_E_INVALID_ARGUMENT, "keep is %lld, but at least the newest save stays", lld(keep));
  std::vector<SaveEntry> entries;
  ZERO_TRY(list_saves(saves, &entries));
  std::map<std::string, std::vector<SaveAge>> runs;
  for (const SaveEntry &entry : entries) {
    std::vector<std::byte> bytes;
    Manifest manifest;
    if (!entry.committed || !read_manifest(saves, entry.name, true, &bytes, &manifest).ok()) continue;
    runs[manifest.description.run_id].push_back(age_of(entry.name, manifest.description));
  }
  std::vector<SaveAge> old;
  for (auto &[run, ages] : runs) {
    std::sort(ages.begin(), ages.end(), std::greater<>());
    if (std::ssize(ages) > keep) old.insert(old.end(), ages.begin() + keep, ages.end());
  }
  std::sort(old.begin(), old.end());
  out->clear();
  for (const SaveAge &age : old) out->push_back(age.name);
  return {};
}

Status delete_save(const Folder &saves, const std::string &name, bool sync, int64_t *out_freed_nbytes) {
  Folder folder;
  int reason = 0;
  const Status opened = saves.open_folder(name, &folder, &reason);
  ZERO_CHECK(reason != ENOENT, ZERO_E_NOT_FOUND, "%s; there is no such save", opened.text());
  ZERO_TRY(opened);
  bool committed = false;
  ZERO_TRY(folder.has(kManifestName, &committed));
  if (committed) ZERO_TRY(folder.rename(kManifestName, kManifestDeleted));
  ZERO_TRY(settle_deletion(folder, sync));
  return remove_files(saves, name, folder, out_freed_nbytes);
}

Status rotate_saves(const Folder &saves, const std::string &newest, const Manifest &manifest, int64_t keep, bool sync, RotateCounts *out) {
  *out = {};
  std::vector<std::byte> bytes;
  Manifest found;
  // If the newest save is missing, nothing is removed.
  ZERO_TRY(read_manifest(saves, newest, true, &bytes, &found));
  Rotation rotation(saves, newest, manifest.description, sync, out);
  if (keep > 0) rotation.remove_beyond(keep);
  rotation.sweep();
  return rotation.status();
}

}  // namespace zero::checkpoint
