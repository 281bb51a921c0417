/// @file Names and contents of a save's files.
#include "checkpoint/file_plan.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <utility>

namespace zero::checkpoint {
namespace {

constexpr size_t kStepDigits = 20;
constexpr size_t kIdDigits = 32;

std::string numbered(const char *kind, int64_t number, int64_t count) {
  char text[96];
  std::snprintf(text, sizeof text, "%s-%05lld-of-%05lld.safetensors", kind, lld(number + 1), lld(count));
  return text;
}

void add(PlannedFile *file, std::string name, DiskType type, std::vector<int64_t> shape, const EntrySource &source) {
  file->entries.push_back({std::move(name), type, std::move(shape), 0});
  file->sources.push_back(source);
}

void add_model(const SaveDescription &description, PlannedFile *file) {
  for (size_t s = 0; s < description.sections.size(); ++s) {
    const Section &section = description.sections[s];
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      const SavedTensor &tensor = section.tensors[t];
      if (tensor.model_file != file->number) continue;
      for (size_t k = 0; k < tensor.slots.size(); ++k) {
        const SavedSlot &slot = tensor.slots[k];
        if (slot.placement != Placement::whole) continue;
        const int64_t count = entry_count(tensor, slot);
        add(file, entry_name(section, tensor, slot), slot.type, keeps_shape(slot) ? tensor.shape : std::vector<int64_t>{count},
            {static_cast<int64_t>(s), static_cast<int64_t>(t), static_cast<int64_t>(k), -1, 0, count});
      }
    }
  }
}

/// Adds the entries that rank `rank` of section `s` has in its state file.
void add_section_state(const Section &section, int64_t s, int64_t rank, PlannedFile *file) {
  for (size_t t = 0; t < section.tensors.size(); ++t) {
    const SavedTensor &tensor = section.tensors[t];
    for (size_t k = 0; k < tensor.slots.size(); ++k) {
      const SavedSlot &slot = tensor.slots[k];
      if (slot.placement == Placement::whole) continue;
      const Range entries = slot.placement == Placement::per_rank ? Range{0, slot.copy_entries}
                                                                  : entries_of(slot, section.cut(static_cast<int64_t>(t), rank));
      if (entries.empty()) continue;
      add(file, entry_name(section, tensor, slot), slot.type, {entries.count()},
          {s, static_cast<int64_t>(t), static_cast<int64_t>(k), rank, entries.begin, entries.count()});
    }
  }
}

void add_extras(const SaveDescription &description, Scope scope, int64_t rank, PlannedFile *file) {
  for (size_t e = 0; e < description.extras.size(); ++e) {
    const SavedExtra &extra = description.extras[e];
    if (extra.scope != scope) continue;
    add(file, extra.name, extra.type, extra.shape, {-1, static_cast<int64_t>(e), -1, rank, 0, shape_count(extra.shape)});
  }
}

void add_state(const SaveDescription &description, PlannedFile *file) {
  for (size_t s = 0; s < description.sections.size(); ++s) {
    const Section &section = description.sections[s];
    for (int64_t rank = 0; rank < section.rank_count; ++rank) {
      if (section.state_file(rank) == file->number) add_section_state(section, static_cast<int64_t>(s), rank, file);
    }
  }
  add_extras(description, Scope::each, file->number, file);
}

/// The order of format_header(), for entries and sources together.
void put_in_order(PlannedFile *file) {
  std::vector<size_t> order(file->entries.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return disk_type_nbytes(file->entries[a].type) > disk_type_nbytes(file->entries[b].type);
  });
  std::vector<Entry> entries;
  std::vector<EntrySource> sources;
  for (const size_t at : order) {
    entries.push_back(std::move(file->entries[at]));
    sources.push_back(file->sources[at]);
  }
  file->entries = std::move(entries);
  file->sources = std::move(sources);
}

bool has_extra_file(const SaveDescription &description) {
  for (const SavedExtra &extra : description.extras) {
    if (extra.scope == Scope::one) return true;
  }
  return false;
}

}  // namespace

FilePlan::FilePlan(const SaveDescription &description)
    : model_count_(description.model_file_count), index_count_(description.model_file_count > 0 ? 1 : 0),
      state_count_(description.rank_count), extra_count_(has_extra_file(description) ? 1 : 0) {}

FileKind FilePlan::kind(int64_t file) const {
  if (file < model_count_) return FileKind::model;
  if (file < model_count_ + index_count_) return FileKind::index;
  return file < model_count_ + index_count_ + state_count_ ? FileKind::state : FileKind::extra;
}

std::string FilePlan::name(int64_t file) const {
  switch (kind(file)) {
    case FileKind::model:
      return numbered("model", file, model_count_);
    case FileKind::index:
      return kIndexName;
    case FileKind::state:
      return numbered("state", file - model_count_ - index_count_, state_count_);
    case FileKind::extra:
      break;
  }
  return kExtraName;
}

PlannedFile FilePlan::file(const SaveDescription &description, int64_t file) const {
  PlannedFile planned{kind(file), file, 0, name(file), {}, {}};
  switch (planned.kind) {
    case FileKind::model:
      planned.number = file;
      add_model(description, &planned);
      break;
    case FileKind::state:
      planned.number = file - model_count_ - index_count_;
      add_state(description, &planned);
      break;
    case FileKind::extra:
      add_extras(description, Scope::one, -1, &planned);
      break;
    case FileKind::index:
      break;
  }
  put_in_order(&planned);
  return planned;
}

std::map<std::string, std::string> file_metadata(const SaveDescription &description, FileKind kind, const std::string &name) {
  return {{"format", kind == FileKind::model ? "pt" : "zero"}, {"zero.version", "1"}, {"zero.save", description.id}, {"zero.file", name}};
}

std::string index_text(const SaveDescription &description) {
  const FilePlan plan(description);
  std::string map;
  int64_t total = 0;
  for (int64_t f = 0; f < description.model_file_count; ++f) {
    for (const Entry &entry : plan.file(description, f).entries) {
      map += (map.empty() ? "\n    " : ",\n    ") + nlohmann::json(entry.name).dump() + ": \"" + plan.name(f) + "\"";
      total += entry.nbytes();
    }
  }
  return "{\n  \"metadata\": {\"total_size\": " + std::to_string(total) + "},\n  \"weight_map\": {" + map + "\n  }\n}\n";
}

std::string save_name(uint64_t step, const std::string &id) {
  char text[96];
  std::snprintf(text, sizeof text, "save-%020llu-%s", static_cast<unsigned long long>(step), id.c_str());
  return text;
}

bool parse_save_name(std::string_view name, uint64_t *out_step, std::string *out_id) {
  constexpr std::string_view kPrefix = "save-";
  if (name.size() != kPrefix.size() + kStepDigits + 1 + kIdDigits || !name.starts_with(kPrefix)) return false;
  const std::string_view digits = name.substr(kPrefix.size(), kStepDigits);
  const std::string_view id = name.substr(name.size() - kIdDigits);
  if (name[kPrefix.size() + kStepDigits] != '-' || id.find_first_not_of("0123456789abcdef") != std::string_view::npos) return false;
  uint64_t step = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size()) return false;
  *out_step = step;
  *out_id = id;
  return true;
}

}  // namespace zero::checkpoint
