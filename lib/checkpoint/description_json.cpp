/// @file Descriptions to JSON and back.
#include "checkpoint/description_json.h"

#include "checkpoint/json_text.h"
#include "checkpoint/strict_json.h"

#include <utility>

namespace zero::checkpoint {
namespace {

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

void write_slot(const SavedSlot &slot, JsonText *out) {
  out->open('{');
  out->field("name", slot.name);
  out->field("type", disk_type_name(slot.type));
  out->field("placement", placement_name(slot.placement));
  if (!slot.true_type.empty()) out->field("true_type", slot.true_type);
  if (slot.per == kPerTensor) {
    out->field("per_tensor", true);
  } else if (slot.per != 1) {
    out->field("per", slot.per);
  }
  if (slot.placement == Placement::per_rank) out->field("copy_entries", slot.copy_entries);
  out->close('}');
}

void write_tensor(const SavedTensor &tensor, JsonText *out) {
  out->open('{');
  out->field("name", tensor.name);
  out->field("shape", tensor.shape);
  if (!tensor.tied_to.empty()) out->field("tied_to", tensor.tied_to);
  if (!tensor.facts.empty()) out->field("facts", tensor.facts);
  if (tensor.model_file >= 0) out->field("model_file", tensor.model_file);
  out->key("slots");
  out->open('[');
  for (const SavedSlot &slot : tensor.slots) write_slot(slot, out);
  out->close(']');
  out->close('}');
}

void write_section(const Section &section, JsonText *out) {
  out->open('{');
  out->field("kind", section.kind);
  out->field("prefix", section.prefix);
  out->field("ranks", section.rank_count);
  out->field("facts", section.facts);
  if (!section.state_files.empty()) out->field("state_files", section.state_files);
  out->key("tensors");
  out->open('[');
  for (const SavedTensor &tensor : section.tensors) write_tensor(tensor, out);
  out->close(']');
  out->close('}');
}

void write_extra(const SavedExtra &extra, JsonText *out) {
  out->open('{');
  out->field("name", extra.name);
  out->field("type", disk_type_name(extra.type));
  out->field("shape", extra.shape);
  out->field("scope", extra.scope == Scope::each ? "each" : "one");
  out->close('}');
}

/// Typed fields of an object; keeps the first error.
class Fields {
 public:
  explicit Fields(const std::string &file) : file_(file) {}

  const Status &status() const { return status_; }

  std::string text(const JsonValue &object, const char *key, bool required) {
    const JsonValue *const value = find(object, key, required);
    if (value == nullptr) return {};
    if (value->kind == JsonValue::Kind::text) return value->text;
    return wrong(key, "a text"), std::string();
  }

  int64_t integer(const JsonValue &object, const char *key, bool required, int64_t otherwise) {
    const JsonValue *const value = find(object, key, required);
    if (value == nullptr) return otherwise;
    return integer_of(*value, key);
  }

  uint64_t unsigned_integer(const JsonValue &object, const char *key) {
    const JsonValue *const value = find(object, key, true);
    if (value == nullptr) return 0;
    if (value->kind == JsonValue::Kind::number) return value->number;
    return wrong(key, "a number that is not negative"), 0;
  }

  bool flag(const JsonValue &object, const char *key) {
    const JsonValue *const value = find(object, key, false);
    if (value == nullptr) return false;
    if (value->kind == JsonValue::Kind::boolean) return value->flag;
    return wrong(key, "true or false"), false;
  }

  std::vector<int64_t> integers(const JsonValue &object, const char *key, bool required) {
    std::vector<int64_t> numbers;
    for (const JsonValue &item : items(object, key, required)) numbers.push_back(integer_of(item, key));
    return numbers;
  }

  Facts facts(const JsonValue &object, const char *key) {
    Facts facts;
    const JsonValue *const value = find(object, key, false);
    if (value == nullptr) return facts;
    if (value->kind != JsonValue::Kind::object) return wrong(key, "an object of texts"), facts;
    for (size_t i = 0; i < value->items.size(); ++i) {
      if (value->items[i].kind != JsonValue::Kind::text) return wrong(key, "an object of texts"), facts;
      facts.emplace(value->keys[i], value->items[i].text);
    }
    return facts;
  }

  const std::vector<JsonValue> &items(const JsonValue &object, const char *key, bool required) {
    static const std::vector<JsonValue> kNone;
    const JsonValue *const value = find(object, key, required);
    if (value == nullptr) return kNone;
    if (value->kind == JsonValue::Kind::list) return value->items;
    return wrong(key, "a list"), kNone;
  }

  DiskType type(const JsonValue &object, const char *key) {
    const std::string name = text(object, key, true);
    const auto type = disk_type_of_name(name);
    if (!type) wrong(key, "an element type");
    return type.value_or(DiskType::u8);
  }

  void wrong(const char *key, const char *wanted) {
    if (!status_.ok()) return;
    status_ = Status::error(ZERO_E_CHECKPOINT, "%s: the description's field \"%s\" is not %s", file_.c_str(), key, wanted);
  }

 private:
  const JsonValue *find(const JsonValue &object, const char *key, bool required) {
    const JsonValue *const value = object.find(key);
    if (value != nullptr) return value;
    if (required) wrong(key, "there");
    return nullptr;
  }

  int64_t integer_of(const JsonValue &value, const char *key) {
    if (value.kind == JsonValue::Kind::number && value.number <= uint64_t{1} << 62) return static_cast<int64_t>(value.number);
    if (value.kind == JsonValue::Kind::negative) return value.negative;
    return wrong(key, "a whole number below 2^62"), 0;
  }

  const std::string &file_;
  Status status_;
};

SavedSlot read_slot(const JsonValue &json, Fields *fields) {
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

SavedTensor read_tensor(const JsonValue &json, Fields *fields) {
  SavedTensor tensor;
  tensor.name = fields->text(json, "name", true);
  tensor.shape = fields->integers(json, "shape", true);
  tensor.tied_to = fields->text(json, "tied_to", false);
  tensor.facts = fields->facts(json, "facts");
  tensor.model_file = fields->integer(json, "model_file", false, -1);
  for (const JsonValue &slot : fields->items(json, "slots", true)) tensor.slots.push_back(read_slot(slot, fields));
  return tensor;
}

Section read_section(const JsonValue &json, Fields *fields) {
  Section section;
  section.kind = fields->text(json, "kind", true);
  section.prefix = fields->text(json, "prefix", true);
  section.rank_count = fields->integer(json, "ranks", true, 0);
  section.facts = fields->facts(json, "facts");
  section.state_files = fields->integers(json, "state_files", false);
  for (const JsonValue &tensor : fields->items(json, "tensors", true)) section.tensors.push_back(read_tensor(tensor, fields));
  return section;
}

SavedExtra read_extra(const JsonValue &json, Fields *fields) {
  SavedExtra extra{fields->text(json, "name", true), fields->type(json, "type"), fields->integers(json, "shape", true)};
  const std::string scope = fields->text(json, "scope", true);
  if (scope != "one" && scope != "each") fields->wrong("scope", "\"one\" or \"each\"");
  extra.scope = scope == "each" ? Scope::each : Scope::one;
  return extra;
}

}  // namespace

void write_description(const SaveDescription &description, JsonText *out) {
  out->field("id", description.id);
  out->field("run_id", description.run_id);
  out->field("previous_id", description.previous_id);
  out->field("step", description.step);
  out->field("created", description.created);
  out->field("library", description.library);
  out->field("ranks", description.rank_count);
  out->field("model_files", description.model_file_count);
  out->field("texts", description.texts);
  out->key("sections");
  out->open('[');
  for (const Section &section : description.sections) write_section(section, out);
  out->close(']');
  out->key("extras");
  out->open('[');
  for (const SavedExtra &extra : description.extras) write_extra(extra, out);
  out->close(']');
}

std::string description_text(const SaveDescription &description) {
  JsonText json;
  json.open('{');
  write_description(description, &json);
  json.close('}');
  return json.text();
}

Status parse_description(std::string_view text, const std::string &file, SaveDescription *out) {
  JsonValue json;
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
  for (const JsonValue &section : fields.items(json, "sections", true)) found.sections.push_back(read_section(section, &fields));
  for (const JsonValue &extra : fields.items(json, "extras", true)) found.extras.push_back(read_extra(extra, &fields));
  ZERO_TRY(fields.status());
  *out = std::move(found);
  return {};
}

}  // namespace zero::checkpoint
