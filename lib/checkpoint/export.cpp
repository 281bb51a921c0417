/// @file Writing plain safetensors.
#include "checkpoint/export.h"

#include "checkpoint/file_plan.h"
#include "checkpoint/file_writer.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_files.h"
#include "core/partition.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <dirent.h>

namespace zero::checkpoint {
namespace {

constexpr const char *kPartial = ".partial";

int64_t nbytes_of(const ExportTensor &tensor) { return std::max<int64_t>(shape_count(tensor.shape), 0) * disk_type_nbytes(tensor.type); }

/// Assigns contiguous runs of tensors to files, balanced over the writers and cut at the limit.
void deal(ExportPlan *plan, int64_t writers, int64_t most_nbytes) {
  int64_t total = 0;
  for (const ExportTensor &tensor : plan->tensors) total += nbytes_of(tensor);
  int64_t before = 0;
  int64_t used = 0;
  for (size_t t = 0; t < plan->tensors.size(); ++t) {
    const int64_t nbytes = nbytes_of(plan->tensors[t]);
    const int64_t writer = total > 0 ? std::min(scale_floor(before + nbytes / 2, writers, total), writers - 1) : 0;
    if (plan->files.empty() || plan->files.back().writer != writer || (used > 0 && nbytes > most_nbytes - used)) {
      plan->files.push_back({{}, {}, writer});
      used = 0;
    }
    plan->files.back().tensors.push_back(static_cast<int64_t>(t));
    used += nbytes;
    before += nbytes;
  }
  if (plan->files.empty()) plan->files.push_back({{}, {}, 0});
}

/// The tensors of a file, by their numbers in the export.
class ExportedBytes final : public EntryBytes {
 public:
  ExportedBytes(const std::vector<int64_t> &tensors, ExportSource &source) : tensors_(tensors), source_(source) {}
  Status copy(size_t entry, int64_t offset, std::span<std::byte> out) override { return source_.copy(tensors_[entry], offset, out); }

 private:
  const std::vector<int64_t> &tensors_;
  ExportSource &source_;
};

class NoBytes final : public EntryBytes {
 public:
  Status copy(size_t, int64_t, std::span<std::byte>) override {
    return Status::error(ZERO_E_INTERNAL, "text metadata of a save has no elements to copy");
  }
};

/// Writes under a temporary name, so that no file in use is written to, and no partial file keeps
/// the final name.
Status write_partial(const Folder &folder, const std::string &name, NewFile *file, EntryBytes &bytes, const StreamOptions &options,
                     Progress *progress, StreamCounts *counts) {
  const std::string partial = name + kPartial;
  int reason = 0;
  const Status cleared = folder.unlink(partial, &reason);  // left over from an interrupted export
  if (!cleared.ok() && reason != ENOENT) return cleared;
  std::unique_ptr<Transfers> transfers;
  ZERO_TRY(Transfers::make(options, &transfers));
  Status status = create_file(folder, partial, options, file);
  if (status.ok()) status = write_file(file, bytes, options, transfers.get(), progress, nullptr, counts);
  transfers.reset();  // before the file is closed
  file->file.file = File();
  if (!status.ok()) static_cast<void>(folder.unlink(partial));
  return status;
}

/// Refuses duplicate names, because no reader can distinguish them.
Status check_names(const ExportPlan &plan) {
  std::set<std::string_view> names;
  for (const ExportTensor &tensor : plan.tensors) {
    ZERO_CHECK(names.insert(tensor.name).second, ZERO_E_INVALID_ARGUMENT, "two tensors of the export are named %s; give the optimizers prefixes",
               tensor.name.c_str());
  }
  return {};
}

/// Refuses a folder that holds files of saves or of another model. A single file may be in a folder
/// beside saves.
Status check_receiver(const Folder &folder, bool whole) {
  std::vector<FolderEntry> entries;
  ZERO_TRY(folder.list(&entries));
  for (const FolderEntry &entry : entries) {
    const bool of_save = is_of_saves(entry.name) && (whole || entry.type != DT_DIR);
    ZERO_CHECK(!of_save, ZERO_E_INVALID_ARGUMENT, "%s holds %s of a save, which an export must not mix with; name another folder",
               folder.path().c_str(), entry.name.c_str());
  }
  for (const FolderEntry &entry : entries) {
    const bool in_the_way = whole && (entry.name.ends_with(kSuffix) || entry.name == kIndexName);
    ZERO_CHECK(!in_the_way, ZERO_E_INVALID_ARGUMENT, "%s already holds %s, which readers would take for part of the export; name an empty folder",
               folder.path().c_str(), entry.name.c_str());
  }
  return {};
}

Status make_receiver(const ExportPlan &plan, bool *out_made) {
  Folder parent;
  const std::string name = name_in(plan.folder);
  ZERO_CHECK(!is_of_saves(name), ZERO_E_INVALID_ARGUMENT, "%s has the name of a save; name another folder", plan.folder.c_str());
  ZERO_TRY(Folder::open(folder_of(plan.folder), &parent));
  bool is_save = false;
  ZERO_TRY(parent.has(kManifestName, &is_save));
  ZERO_CHECK(!is_save, ZERO_E_INVALID_ARGUMENT, "%s is a save, which an export must not mix with; name another folder", parent.path().c_str());
  ZERO_TRY(parent.make(name));
  const Status synced = parent.sync();
  *out_made = synced.ok();
  if (!synced.ok()) static_cast<void>(parent.remove_folder(name));
  return synced;
}

std::string index_text(const ExportPlan &plan) {
  std::string text;
  int64_t total = 0;
  for (const ExportPlan::OutputFile &file : plan.files) {
    for (const int64_t number : file.tensors) {
      const ExportTensor &tensor = plan.tensors[static_cast<size_t>(number)];
      text += (text.empty() ? "\n    " : ",\n    ") + nlohmann::json(tensor.name).dump() + ": \"" + file.name + "\"";
      total += nbytes_of(tensor);
    }
  }
  return "{\n  \"metadata\": {\"total_size\": " + std::to_string(total) + "},\n  \"weight_map\": {" + text + "\n  }\n}\n";
}

}  // namespace

ExportPlan plan_export(const std::string &given, std::vector<ExportTensor> tensors, int64_t writers, int64_t most_nbytes) {
  const std::string path = without_slashes(given);
  ExportPlan plan;
  plan.tensors = std::move(tensors);
  plan.is_folder = !path.ends_with(kSuffix);
  plan.folder = plan.is_folder ? path : folder_of(path);
  if (plan.is_folder) {
    deal(&plan, writers, most_nbytes);
  } else {
    plan.files.push_back({name_in(path), {}, 0});
    for (size_t t = 0; t < plan.tensors.size(); ++t) plan.files[0].tensors.push_back(static_cast<int64_t>(t));
  }
  for (size_t f = 0; f < plan.files.size(); ++f) {
    ExportPlan::OutputFile &file = plan.files[f];
    char name[96];
    std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", f + 1, plan.files.size());
    if (plan.is_folder) file.name = plan.files.size() == 1 ? kModelName : name;
    // In the order of format_header().
    std::stable_sort(file.tensors.begin(), file.tensors.end(), [&](int64_t a, int64_t b) {
      return disk_type_nbytes(plan.tensors[static_cast<size_t>(a)].type) > disk_type_nbytes(plan.tensors[static_cast<size_t>(b)].type);
    });
  }
  return plan;
}

std::map<std::string, std::string> export_metadata(const std::map<std::string, std::string> &ties) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  metadata.insert(ties.begin(), ties.end());
  return metadata;
}

Status begin_export(const ExportPlan &plan, bool *out_made) {
  bool made = false;
  ZERO_TRY(check_names(plan));
  Folder folder;
  Status status = Folder::open(plan.folder, &folder);
  if (status.ok()) {
    status = check_receiver(folder, plan.is_folder);
  } else if (plan.is_folder && status.code() == ZERO_E_NOT_FOUND) {
    status = make_receiver(plan, &made);
  }
  if (out_made != nullptr) *out_made = made;
  return status;
}

Status write_export(const ExportPlan &plan, int64_t file, const std::map<std::string, std::string> &metadata, const StreamOptions &options,
                    ExportSource &source, Progress *progress, StreamCounts *counts) {
  const ExportPlan::OutputFile &output = plan.files[static_cast<size_t>(file)];
  NewFile made;
  made.header.metadata = metadata;
  for (const int64_t number : output.tensors) {
    const ExportTensor &tensor = plan.tensors[static_cast<size_t>(number)];
    made.header.entries.push_back({tensor.name, tensor.type, tensor.shape});
  }
  ZERO_TRY(format_header(&made.header, Order::by_size, &made.head));
  Folder folder;
  ZERO_TRY(Folder::open(plan.folder, &folder));
  ExportedBytes bytes(output.tensors, source);
  StreamCounts own;
  return write_partial(folder, output.name, &made, bytes, options, progress, counts != nullptr ? counts : &own);
}

/// Writes the index last: without it readers do not accept several files as a model.
Status end_export(const ExportPlan &plan, const StreamOptions &options, StreamCounts *counts) {
  Folder folder;
  ZERO_TRY(Folder::open(plan.folder, &folder));
  for (const ExportPlan::OutputFile &file : plan.files) ZERO_TRY(folder.rename(file.name + kPartial, file.name));
  if (plan.files.size() > 1) {
    NewFile index;
    index.head = index_text(plan);
    index.header.file_nbytes = static_cast<int64_t>(index.head.size());
    NoBytes none;
    StreamCounts own;
    StreamOptions small = options;
    small.staging_nbytes = 0;
    ZERO_TRY(write_partial(folder, kIndexName, &index, none, small, nullptr, counts != nullptr ? counts : &own));
    ZERO_TRY(folder.rename(std::string(kIndexName) + kPartial, kIndexName));
  }
  return options.sync ? folder.sync() : Status();
}

void discard_export(const ExportPlan &plan, bool made) {
  Folder folder;
  if (!Folder::open(plan.folder, &folder).ok()) return;
  std::vector<std::string> names;
  for (const ExportPlan::OutputFile &file : plan.files) names.push_back(file.name);
  if (plan.is_folder) names.emplace_back(kIndexName);
  for (const std::string &name : names) {
    static_cast<void>(folder.unlink(name + kPartial));
    if (plan.is_folder) static_cast<void>(folder.unlink(name));  // a single file may be older
  }
  Folder parent;
  if (made && Folder::open(folder_of(plan.folder), &parent).ok()) static_cast<void>(parent.remove_folder(name_in(plan.folder)));
}

}  // namespace zero::checkpoint
