/// @file Commits a save, or removes it.
#include "checkpoint/save_writer.h"

#include <new>
#include <vector>

namespace zero::checkpoint {
namespace {

Status write_manifest(const Folder &folder, std::span<const std::byte> bytes, bool sync) {
  File file;
  ZERO_TRY(folder.create_file(kManifestTemporary, &file));
  ZERO_TRY(file.write_at(bytes, 0));
  if (sync) ZERO_TRY(file.sync());
  return file.close();
}

/// Makes the commit durable. Fails if a sweep has removed the folder meanwhile.
Status settle(const Folder &saves, const Folder &folder, const std::string &name, bool sync) {
  if (sync) {
    ZERO_TRY(folder.sync());
    ZERO_TRY(saves.sync());
  }
  bool there = false;
  ZERO_TRY(saves.is_folder(name, folder, &there));
  ZERO_CHECK(there, ZERO_E_SYSTEM, "%s was renamed or removed while it was written: another job of the same run writes to %s",
             folder.path().c_str(), saves.path().c_str());
  return {};
}

void remove_uncommitted(const Folder &saves, const std::string &name) {
  Folder folder;
  bool committed = true;
  std::vector<FolderEntry> entries;
  if (!saves.open_folder(name, &folder).ok() || !folder.has(kManifestName, &committed).ok() || committed) return;
  if (!folder.list(&entries).ok()) return;
  for (const FolderEntry &entry : entries) static_cast<void>(folder.unlink(entry.name));
  static_cast<void>(saves.remove_folder(name));
}

}  // namespace

Status commit_save(const Folder &saves, const std::string &name, const Manifest &manifest, bool sync, bool *out_maybe) {
  *out_maybe = false;
  std::vector<std::byte> bytes;
  ZERO_TRY(encode_manifest(manifest, &bytes));
  Folder folder;
  ZERO_TRY(saves.open_folder(name, &folder));
  ZERO_TRY(write_manifest(folder, bytes, sync));
  // If a network file system loses the reply, a rename may take effect although it fails.
  *out_maybe = true;
  Status status = folder.rename(kManifestTemporary, kManifestName);
  if (status.ok()) status = settle(saves, folder, name, sync);
  if (!status.ok()) {
    return Status::error(status.code(), "%s; %s may have been committed all the same: the next load or save will tell", status.text(),
                         folder.path().c_str());
  }
  *out_maybe = false;
  return {};
}

void remove_save(const Folder &saves, const std::string &name) noexcept {
  try {
    remove_uncommitted(saves, name);
  } catch (const std::bad_alloc &) {
    // The rest is uncommitted; the next sweep of the run removes it.
  }
}

}  // namespace zero::checkpoint
