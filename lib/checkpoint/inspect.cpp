/// @file Texts about saves.
#include "checkpoint/inspect.h"

#include "checkpoint/description_json.h"
#include "checkpoint/file_plan.h"
#include "checkpoint/json_text.h"

#include <iterator>
#include <utility>
#include <vector>

namespace zero::checkpoint {
namespace {

/// "12.3 MiB"; whole bytes below a KiB.
std::string size_text(int64_t nbytes) {
  constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  int64_t tenths = nbytes > (INT64_MAX / 10) ? INT64_MAX : nbytes * 10;
  for (; tenths >= 10240 && unit + 1 < std::size(kUnits); ++unit) tenths = (tenths + 512) / 1024;
  if (unit == 0) return std::to_string(nbytes) + " B";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kUnits[unit];
}

std::string contents_text(const Manifest &manifest) {
  return "step " + std::to_string(manifest.description.step) + ", " + size_text(manifest.nbytes()) + " in " +
         std::to_string(manifest.files.size()) + " files, " + std::to_string(manifest.description.rank_count) + " ranks";
}

/// An entry of the folder of saves.
struct ListedSave {
  SaveEntry entry;
  Status status;  ///< result of checking its manifest and the sizes of its files
  Manifest manifest;
};

std::string line_of(const ListedSave &save) {
  const std::string line = save.entry.name + "  ";
  if (!save.entry.committed) return line + "not committed\n";
  if (save.status.code() == ZERO_E_CHECKPOINT) return line + "DAMAGED: " + save.status.text() + "\n";
  if (!save.status.ok()) return line + "UNREADABLE: " + save.status.text() + "\n";
  const SaveDescription &description = save.manifest.description;
  return line + contents_text(save.manifest) + ", " + description.created + ", run " + description.run_id + "\n";
}

void write_save(const ListedSave &save, JsonText *out) {
  out->open('{');
  out->field("name", save.entry.name);
  out->field("step", save.entry.step);
  out->field("id", save.entry.id);
  out->field("committed", save.entry.committed);
  if (save.entry.committed) out->field("valid", save.status.ok());
  if (save.entry.committed && !save.status.ok()) {
    out->field("status", status_name(save.status.code()));
    out->field("error", save.status.text());
  } else if (save.entry.committed) {
    out->field("nbytes", save.manifest.nbytes());
    out->field("files", static_cast<int64_t>(save.manifest.files.size()));
    out->field("ranks", save.manifest.description.rank_count);
    out->field("created", save.manifest.description.created);
    out->field("run", save.manifest.description.run_id);
  }
  out->close('}');
}

void append_facts(const Facts &facts, const std::string &indent, std::string *out) {
  for (const auto &[key, value] : facts) *out += indent + key + " = " + value.substr(0, 200) + "\n";
}

std::string slot_text(const SavedTensor &tensor, const SavedSlot &slot) {
  std::string text = slot.name + " " + (slot.true_type.empty() ? disk_type_name(slot.type) : slot.true_type.c_str());
  if (slot.placement == Placement::per_rank) return text + " x " + std::to_string(slot.copy_entries) + " per rank";
  if (slot.per != 1) text += " x " + std::to_string(entry_count(tensor, slot));
  return text;
}

void append_section(const Section &section, std::string *out) {
  *out += section.kind + (section.prefix.empty() ? "" : " \"" + section.prefix + "\"") + " on " + std::to_string(section.rank_count) +
          " ranks, " + std::to_string(section.tensors.size()) + " tensors\n";
  append_facts(section.facts, "  ", out);
  for (const SavedTensor &tensor : section.tensors) {
    *out += "  " + section.prefix + tensor.name + " " + shape_text_of(tensor.shape);
    if (!tensor.tied_to.empty()) *out += " tied to " + tensor.tied_to;
    const char *separator = ": ";
    for (const SavedSlot &slot : tensor.slots) *out += std::exchange(separator, ", ") + slot_text(tensor, slot);
    *out += "\n";
  }
}

std::string plain_text(const Manifest &manifest, const std::string &path) {
  const SaveDescription &description = manifest.description;
  std::string text = path + "\n" + contents_text(manifest) + "\ncreated " + description.created + " by " + description.library + "\nrun " +
                     description.run_id + "\n";
  if (!description.previous_id.empty()) text += "previous save " + description.previous_id + "\n";
  for (const Section &section : description.sections) append_section(section, &text);
  for (const SavedExtra &extra : description.extras) {
    text += "tensor " + extra.name + " " + shape_text_of(extra.shape) + " " + disk_type_name(extra.type) +
            (extra.scope == Scope::each ? ", one for each rank\n" : "\n");
  }
  if (!description.texts.empty()) text += "texts\n";
  append_facts(description.texts, "  ", &text);
  const FilePlan plan(description);
  text += "files\n";
  for (const FileReport &file : manifest.files) text += "  " + plan.name(file.file) + "  " + size_text(file.nbytes) + "\n";
  return text;
}

std::string json_text(const Manifest &manifest, const std::string &path) {
  JsonText json(JsonText::Form::lines);
  json.open('{');
  json.field("path", path);
  json.field("nbytes", manifest.nbytes());
  write_description(manifest.description, &json);
  const FilePlan plan(manifest.description);
  json.key("files");
  json.open('[');
  for (const FileReport &file : manifest.files) {
    json.open('{');
    json.field("name", plan.name(file.file));
    json.field("nbytes", file.nbytes);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  return json.text() + "\n";
}

}  // namespace

Status list_text(const Folder &saves, TextForm form, std::string *out) {
  std::vector<SaveEntry> entries;
  ZERO_TRY(list_saves(saves, &entries));
  JsonText json(JsonText::Form::lines);
  json.open('[');
  out->clear();
  for (SaveEntry &entry : entries) {
    ListedSave save{std::move(entry), {}, {}};
    std::vector<std::byte> bytes;
    if (save.entry.committed) save.status = read_manifest(saves, save.entry.name, true, &bytes, &save.manifest);
    if (save.status.code() == ZERO_E_NOT_FOUND) continue;  // removed meanwhile
    if (form == TextForm::plain) *out += line_of(save);
    write_save(save, &json);
  }
  json.close(']');
  if (form == TextForm::json) *out = json.text() + "\n";
  return {};
}

std::string describe_text(const Manifest &manifest, const std::string &path, TextForm form) {
  return form == TextForm::plain ? plain_text(manifest, path) : json_text(manifest, path);
}

}  // namespace zero::checkpoint
