/// @file Finding saves.
#include "checkpoint/saves.h"

#include "checkpoint/file_plan.h"
#include "core/system_random.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <span>
#include <utility>

#include <dirent.h>

namespace zero::checkpoint {
namespace {

/// The name of the open folder within itself, if that folder is a save.
constexpr const char *kItself = ".";

Status check_identity(const std::string &name, const std::string &path, const SaveDescription &description) {
  uint64_t step = 0;
  std::string id;
  if (!parse_save_name(name, &step, &id)) return {};
  ZERO_CHECK(id == description.id && step == description.step, ZERO_E_CHECKPOINT,
             "%s has the manifest of another save: of step %llu and id %s", path.c_str(), static_cast<unsigned long long>(description.step),
             description.id.c_str());
  return {};
}

Status check_sizes(const Folder &folder, const Manifest &manifest) {
  const FilePlan plan(manifest.description);
  for (const FileReport &file : manifest.files) {
    const std::string name = plan.name(file.file);
    int64_t nbytes = 0;
    ZERO_TRY(folder.file_size(name, &nbytes));
    ZERO_CHECK(nbytes == file.nbytes, ZERO_E_CHECKPOINT, "%s has %lld bytes, expected %lld: it was cut off, or is of another save",
               folder.path_of(name).c_str(), lld(nbytes), lld(file.nbytes));
  }
  return {};
}

Status read_all(const File &file, std::vector<std::byte> *out) {
  int64_t nbytes = 0;
  ZERO_TRY(file.size(&nbytes));
  ZERO_CHECK(nbytes <= kMostManifestNbytes, ZERO_E_CHECKPOINT, "%s has %lld bytes, but a manifest has at most %lld", file.path().c_str(),
             lld(nbytes), lld(kMostManifestNbytes));
  out->resize(static_cast<size_t>(nbytes));
  return file.read_at(*out, out->size(), 0);
}

/// Walks from the newest save to the oldest.
class Search {
 public:
  Search(const Folder &saves, int64_t index) : saves_(saves), left_(index) {}

  Status run(FoundSave *out) {
    std::vector<SaveEntry> entries;
    ZERO_TRY(list_saves(saves_, &entries));
    std::erase_if(entries, [](const SaveEntry &entry) { return !entry.committed; });
    for (size_t first = 0; first < entries.size();) {
      size_t end = first;
      while (end < entries.size() && entries[end].step == entries[first].step) ++end;
      bool found = false;
      ZERO_TRY(look_at({entries.data() + first, end - first}, &found, out));
      if (found) return {};
      first = end;
    }
    ZERO_CHECK(passed_over_ == 0, ZERO_E_CHECKPOINT, "%s holds no valid save; damaged saves: %lld; restore a copy of one:\n%s",
               saves_.path().c_str(), lld(passed_over_), why_.c_str());
    return Status::error(ZERO_E_NOT_FOUND, "%s holds %s", saves_.path().c_str(),
                         entries.empty() ? "no committed save" : "fewer committed saves than the index asks for");
  }

 private:
  /// Examines the saves of one step.
  Status look_at(std::span<const SaveEntry> entries, bool *found, FoundSave *out) {
    std::vector<FoundSave> valid;
    for (const SaveEntry &entry : entries) {
      FoundSave save;
      const Status status = read_manifest(saves_, entry.name, true, &save.bytes, &save.manifest);
      if (status.code() == ZERO_E_NOT_FOUND) continue;  // removed meanwhile
      if (!status.ok() && status.code() != ZERO_E_CHECKPOINT) return status;
      if (!status.ok()) {
        ++passed_over_;
        why_ += std::string(status.text()) + "\n";
        continue;
      }
      save.name = entry.name;
      valid.push_back(std::move(save));
    }
    const auto count = static_cast<int64_t>(valid.size());
    *found = left_ < count;
    if (!*found) {
      left_ -= count;
      return {};
    }
    std::sort(valid.begin(), valid.end(), [](const FoundSave &a, const FoundSave &b) {
      return age_of(a.name, a.manifest.description) > age_of(b.name, b.manifest.description);
    });
    *out = std::move(valid[static_cast<size_t>(left_)]);
    out->passed_over = passed_over_;
    return {};
  }

  const Folder &saves_;
  int64_t left_;
  int64_t passed_over_ = 0;
  std::string why_;
};

}  // namespace

Status make_save_id(const std::string &run_id, std::string *out) {
  uint64_t bits = 0;
  ZERO_TRY(random_u64(&bits));
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(bits));
  *out = run_id.substr(0, 16) + text;
  return {};
}

SaveAge age_of(const std::string &name, const SaveDescription &description) { return {description.step, description.created, name}; }

Status list_saves(const Folder &saves, std::vector<SaveEntry> *out) {
  std::vector<FolderEntry> entries;
  ZERO_TRY(saves.list(&entries));
  out->clear();
  for (const FolderEntry &entry : entries) {
    SaveEntry save{entry.name};
    if (!parse_save_name(entry.name, &save.step, &save.id) || (entry.type != DT_DIR && entry.type != DT_UNKNOWN)) continue;
    Status status = saves.has(entry.name + "/" + kManifestName, &save.committed);
    save.committed = save.committed || !status.ok();  // read_manifest() reports the error
    out->push_back(std::move(save));
  }
  std::sort(out->begin(), out->end(), [](const SaveEntry &a, const SaveEntry &b) { return a.name > b.name; });
  return {};
}

Status read_manifest(const Folder &saves, const std::string &name, bool sizes, std::vector<std::byte> *out_bytes, Manifest *out) {
  Folder folder;
  int reason = 0;
  Status status = saves.open_folder(name, &folder, &reason);
  File file;
  if (status.ok()) status = folder.open_file(kManifestName, &file, &reason);
  if (!status.ok() && reason == ENOENT) return Status::error(ZERO_E_NOT_FOUND, "%s; it is no committed save", status.text());
  ZERO_TRY(status);
  std::vector<std::byte> bytes;
  ZERO_TRY(read_all(file, &bytes));
  Manifest manifest;
  ZERO_TRY(decode_manifest(bytes, file.path(), &manifest));
  ZERO_TRY(check_identity(name, file.path(), manifest.description));
  if (sizes) ZERO_TRY(check_sizes(folder, manifest));
  *out_bytes = std::move(bytes);
  *out = std::move(manifest);
  return {};
}

Status find_save(const Folder &saves, int64_t index, FoundSave *out) {
  ZERO_CHECK(index >= 0, ZERO_E_INVALID_ARGUMENT, "index is %lld, but 0 is the newest save, 1 the one before it", lld(index));
  return Search(saves, index).run(out);
}

Status open_saves(const std::string &path, Folder *out_saves, std::string *out_name) {
  ZERO_TRY(Folder::open(path, out_saves));
  bool is_save = false;
  ZERO_TRY(out_saves->has(kManifestName, &is_save));
  *out_name = is_save ? kItself : "";
  return {};
}

}  // namespace zero::checkpoint
