/// @file Texts about saves.
#include "checkpoint/inspect.h"

#include "checkpoint/description_json.h"
#include "checkpoint/file_plan.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <utility>
#include <vector>

namespace zero::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

/// "12.3 MiB"; whole bytes below a KiB.
std::string size_text(int64_t nbytes) {
  constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  int64_t tenths = nbytes > (INT64_MAX / 10) ? INT64_MAX : nbytes * 10;
  for (; tenths >= 10240 && unit + 1 < std::size(kUnits); ++unit) tenths = (tenths + 512) / 1024;
  if (unit == 0) return std::to_string(nbytes) + " B";
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " " + kUnits[unit];
}

std::string shape_text_of(const std::vector<int64_t> &shape) { return Json(shape).dump(); }

Json save_json(const Folder &saves, const SaveEntry &entry) {
  Json json = {{"name", entry.name}, {"step", entry.step}, {"id", entry.id}, {"committed", entry.committed}};
  if (!entry.committed) return json;
  std::vector<std::byte> bytes;
  Manifest manifest;
  const Status status = read_manifest(saves, entry.name, true, &bytes, &manifest);
  json["valid"] = status.ok();
  if (!status.ok()) {
    json["error"] = status.text();
    return json;
  }
  json["nbytes"] = manifest.nbytes();
  json["files"] = manifest.files.size();
  json["ranks"] = manifest.description.rank_count;
  json["created"] = manifest.description.created;
  json["run"] = manifest.description.run_id;
  return json;
}

std::string line_of(const Json &save) {
  std::string line = save["name"].get<std::string>() + "  ";
  if (!save["committed"].get<bool>()) return line + "not committed\n";
  if (!save["valid"].get<bool>()) return line + "DAMAGED: " + save["error"].get<std::string>() + "\n";
  return line + "step " + std::to_string(save["step"].get<uint64_t>()) + ", " + size_text(save["nbytes"].get<int64_t>()) + " in " +
         std::to_string(save["files"].get<int64_t>()) + " files, " + std::to_string(save["ranks"].get<int64_t>()) + " ranks, " +
         save["created"].get<std::string>() + "\n";
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
  *out += section.kind + (section.prefix.empty() ? "" : " \"" + section.prefix + "\"") + " on " + std::to_string(section.rank_count) + " ranks, " +
          std::to_string(section.tensors.size()) + " tensors\n";
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
  std::string text = path + "\nstep " + std::to_string(description.step) + ", " + size_text(manifest.nbytes()) + " in " +
                     std::to_string(manifest.files.size()) + " files, " + std::to_string(description.rank_count) + " ranks\ncreated " +
                     description.created + " by " + description.library + "\nrun " + description.run_id + "\n";
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

}  // namespace

Status list_text(const Folder &saves, TextForm form, std::string *out) {
  std::vector<SaveEntry> entries;
  ZERO_TRY(list_saves(saves, &entries));
  Json all = Json::array();
  out->clear();
  for (const SaveEntry &entry : entries) {
    Json save = save_json(saves, entry);
    if (form == TextForm::plain) *out += line_of(save);
    all.push_back(std::move(save));
  }
  // Texts of errors may quote what a damaged file holds.
  if (form == TextForm::json) *out = all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  return {};
}

std::string describe_text(const Manifest &manifest, const std::string &path, TextForm form) {
  if (form == TextForm::plain) return plain_text(manifest, path);
  Json json = {{"path", path}, {"nbytes", manifest.nbytes()}};
  json.update(Json::parse(description_text(manifest.description)));
  const FilePlan plan(manifest.description);
  Json &files = json["files"] = Json::array();
  for (const FileReport &file : manifest.files) files.push_back({{"name", plan.name(file.file)}, {"nbytes", file.nbytes}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zero::checkpoint
