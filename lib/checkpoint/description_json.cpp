/// @file Descriptions to JSON and back.
#include "checkpoint/description_json.h"

#include "checkpoint/strict_json.h"

#include <utility>

namespace zero::checkpoint {
namespace {

using Json = nlohmann::json;

const char *placement_name(Placement placement) {
  switch (placement) {
    case Placement::pieces:
      return "pieces";
    case Placement::whole:
      return "whole";
    case Placement::per_rank:
      break;
  }
  return "per_rank";
}

Json slot_json(const SavedSlot &slot) {
  Json json = {{"name", slot.name}, {"type", disk_type_name(slot.type)}, {"placement", placement_name(slot.placement)}};
  if (!slot.true_type.empty()) json["true_type"] = slot.true_type;
  if (slot.per == kPerTensor) json["per_tensor"] = true;
  if (slot.per != 1 && slot.per != kPerTensor) json["per"] = slot.per;
  if (slot.placement == Placement::per_rank) json["copy_entries"] = slot.copy_entries;
  return json;
}

Json tensor_json(const SavedTensor &tensor) {
  Json json = {{"name", tensor.name}, {"shape", tensor.shape}};
  if (!tensor.tied_to.empty()) json["tied_to"] = tensor.tied_to;
  if (!tensor.facts.empty()) json["facts"] = tensor.facts;
  if (tensor.model_file >= 0) json["model_file"] = tensor.model_file;
  Json &slots = json["slots"] = Json::array();
  for (const SavedSlot &slot : tensor.slots) slots.push_back(slot_json(slot));
  return json;
}

Json section_json(const Section &section) {
  Json json = {{"kind", section.kind}, {"prefix", section.prefix}, {"ranks", section.rank_count}, {"facts", section.facts}};
  if (!section.state_files.empty()) json["state_files"] = section.state_files;
  Json &tensors = json["tensors"] = Json::array();
  for (const SavedTensor &tensor : section.tensors) tensors.push_back(tensor_json(tensor));
  return json;
}

/// Typed fields of an object; keeps the first error.
class Fields {
 public:
  explicit Fields(const std::string &file) : file_(file) {}

  const Status &status() const { return status_; }

  std::string text(const Json &object, const char *key, bool required) {
    const Json *const value = find(object, key, required);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    return wrong(key, "a text"), std::string();
  }

  int64_t integer(const Json &object, const char *key, bool required, int64_t otherwise) {
    const Json *const value = find(object, key, required);
    if (value == nullptr) return otherwise;
    return integer_of(*value, key);
  }

  uint64_t unsigned_integer(const Json &object, const char *key) {
    const Json *const value = find(object, key, true);
    if (value == nullptr) return 0;
    if (value->is_number_unsigned()) return value->get<uint64_t>();
    return wrong(key, "a number that is not negative"), 0;
  }

  bool flag(const Json &object, const char *key) {
    const Json *const value = find(object, key, false);
    if (value == nullptr) return false;
    if (value->is_boolean()) return value->get<bool>();
    return wrong(key, "true or false"), false;
  }

  std::vector<int64_t> integers(const Json &object, const char *key, bool required) {
    std::vector<int64_t> numbers;
    for (const Json &item : items(object, key, required)) numbers.push_back(integer_of(item, key));
    return numbers;
  }

  Facts facts(const Json &object, const char *key) {
    Facts facts;
    const Json *const value = find(object, key, false);
    if (value == nullptr) return facts;
    if (!value->is_object()) return wrong(key, "an object of texts"), facts;
    for (const auto &[name, text] : value->items()) {
      if (!text.is_string()) return wrong(key, "an object of texts"), facts;
      facts.emplace(name, text.get<std::string>());
    }
    return facts;
  }

  const Json &items(const Json &object, const char *key, bool required) {
    static const Json kNone = Json::array();
    const Json *const value = find(object, key, required);
    if (value == nullptr) return kNone;
    if (value->is_array()) return *value;
    return wrong(key, "a list"), kNone;
  }

  DiskType type(const Json &object, const char *key) {
    const std::string name = text(object, key, true);
    const auto type = disk_type_of_name(name);
    if (!type) wrong(key, "an element type");
    return type.value_or(DiskType::u8);
  }

  void wrong(const char *key, const char *wanted) {
    if (status_.ok()) status_ = Status::error(ZERO_E_CHECKPOINT, "%s: the description's field \"%s\" is not %s", file_.c_str(), key, wanted);
  }

 private:
  const Json *find(const Json &object, const char *key, bool required) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    if (object.is_object() && at != object.end()) return &*at;
    if (required) wrong(key, "there");
    return nullptr;
  }

  int64_t integer_of(const Json &value, const char *key) {
    const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{1} << 62);
    if (fits) return value.get<int64_t>();
    return wrong(key, "a whole number below 2^62"), 0;
  }

  const std::string &file_;
  Status status_;
};

SavedSlot read_slot(const Json &json, Fields *fields) {
  SavedSlot slot{fields->text(json, "name", true), fields->type(json, "type"), fields->text(json, "true_type", false)};
  slot.per = fields->flag(json, "per_tensor") ? kPerTensor : fields->integer(json, "per", false, 1);
  slot.copy_entries = fields->integer(json, "copy_entries", false, 0);
  const std::string placement = fields->text(json, "placement", true);
  for (const Placement known : {Placement::pieces, Placement::whole, Placement::per_rank}) {
    if (placement != placement_name(known)) continue;
    slot.placement = known;
    return slot;
  }
  fields->wrong("placement", "one that this version knows");
  return slot;
}

SavedTensor read_tensor(const Json &json, Fields *fields) {
  SavedTensor tensor;
  tensor.name = fields->text(json, "name", true);
  tensor.shape = fields->integers(json, "shape", true);
  tensor.tied_to = fields->text(json, "tied_to", false);
  tensor.facts = fields->facts(json, "facts");
  tensor.model_file = fields->integer(json, "model_file", false, -1);
  for (const Json &slot : fields->items(json, "slots", true)) tensor.slots.push_back(read_slot(slot, fields));
  return tensor;
}

Section read_section(const Json &json, Fields *fields) {
  Section section;
  section.kind = fields->text(json, "kind", true);
  section.prefix = fields->text(json, "prefix", true);
  section.rank_count = fields->integer(json, "ranks", true, 0);
  section.facts = fields->facts(json, "facts");
  section.state_files = fields->integers(json, "state_files", false);
  for (const Json &tensor : fields->items(json, "tensors", true)) section.tensors.push_back(read_tensor(tensor, fields));
  return section;
}

SavedExtra read_extra(const Json &json, Fields *fields) {
  SavedExtra extra{fields->text(json, "name", true), fields->type(json, "type"), fields->integers(json, "shape", true)};
  const std::string scope = fields->text(json, "scope", true);
  if (scope != "one" && scope != "each") fields->wrong("scope", "\"one\" or \"each\"");
  extra.scope = scope == "each" ? Scope::each : Scope::one;
  return extra;
}

}  // namespace

std::string description_text(const SaveDescription &description) {
  Json json = {{"id", description.id},
               {"run_id", description.run_id},
               {"previous_id", description.previous_id},
               {"step", description.step},
               {"created", description.created},
               {"library", description.library},
               {"ranks", description.rank_count},
               {"model_files", description.model_file_count},
               {"texts", description.texts}};
  Json &sections = json["sections"] = Json::array();
  for (const Section &section : description.sections) sections.push_back(section_json(section));
  Json &extras = json["extras"] = Json::array();
  for (const SavedExtra &extra : description.extras) {
    extras.push_back({{"name", extra.name},
                      {"type", disk_type_name(extra.type)},
                      {"shape", extra.shape},
                      {"scope", extra.scope == Scope::each ? "each" : "one"}});
  }
  return json.dump();
}

Status parse_description(std::string_view text, const std::string &file, SaveDescription *out) {
  Json json;
  ZERO_TRY(parse_json(text, file, &json));
  Fields fields(file);
  SaveDescription found;
  found.id = fields.text(json, "id", true);
  found.run_id = fields.text(json, "run_id", true);
  found.previous_id = fields.text(json, "previous_id", true);
  found.step = fields.unsigned_integer(json, "step");
  found.created = fields.text(json, "created", true);
  found.library = fields.text(json, "library", true);
  found.rank_count = fields.integer(json, "ranks", true, 0);
  found.model_file_count = fields.integer(json, "model_files", true, 0);
  found.texts = fields.facts(json, "texts");
  for (const Json &section : fields.items(json, "sections", true)) found.sections.push_back(read_section(section, &fields));
  for (const Json &extra : fields.items(json, "extras", true)) found.extras.push_back(read_extra(extra, &fields));
  ZERO_TRY(fields.status());
  *out = std::move(found);
  return {};
}

}  // namespace zero::checkpoint
