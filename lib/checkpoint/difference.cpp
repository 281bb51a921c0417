/// @file Comparing saves.
#include "checkpoint/difference.h"

#include "checkpoint/json_text.h"
#include "checkpoint/save_reader.h"

#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace zero::checkpoint {
namespace {

constexpr size_t kMostShownNbytes = 200;

/// An item that both saves may have: a slot of a tensor (of one rank, if each has its own), or an
/// extra.
struct Item {
  std::string form;  ///< must be equal before values are compared
  Wanted wanted;
  int64_t entry_nbytes = 0;
  uint64_t sum = 0;
};
using Items = std::map<std::string, Item>;

std::string form_of(const SavedSlot &slot, int64_t entries) {
  return (slot.true_type.empty() ? disk_type_name(slot.type) : slot.true_type) + ", " + std::to_string(entries) + " entries";
}

void add_slot(const Section &section, int64_t s, int64_t t, int64_t k, Items *items) {
  const SavedTensor &tensor = section.tensors[static_cast<size_t>(t)];
  const SavedSlot &slot = tensor.slots[static_cast<size_t>(k)];
  const int64_t count = entry_count(tensor, slot);
  const std::string name = section.prefix + tensor.name + " " + slot.name;
  const std::string form = form_of(slot, count);
  if (slot.placement != Placement::per_rank) {
    (*items)[name] = {form, {s, t, k, -1, {0, count}}, disk_type_nbytes(slot.type)};
    return;
  }
  for (int64_t rank = 0; rank < section.rank_count; ++rank) {
    (*items)[name + " of rank " + std::to_string(rank)] = {form, {s, t, k, rank, {0, count}}, disk_type_nbytes(slot.type)};
  }
}

void add_extra(const SaveDescription &description, int64_t e, Items *items) {
  const SavedExtra &extra = description.extras[static_cast<size_t>(e)];
  const bool each = extra.scope == Scope::each;
  const std::string form = std::string(disk_type_name(extra.type)) + " " + shape_text_of(extra.shape);
  for (int64_t rank = each ? 0 : -1; rank < (each ? description.rank_count : 0); ++rank) {
    (*items)[extra.name + (each ? " of rank " + std::to_string(rank) : "")] = {
        form, {-1, e, -1, rank, {0, shape_count(extra.shape)}}, disk_type_nbytes(extra.type)};
  }
}

Items items_of(const SaveDescription &description) {
  Items items;
  for (size_t s = 0; s < description.sections.size(); ++s) {
    const Section &section = description.sections[s];
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      for (size_t k = 0; k < section.tensors[t].slots.size(); ++k) {
        add_slot(section, static_cast<int64_t>(s), static_cast<int64_t>(t), static_cast<int64_t>(k), &items);
      }
    }
  }
  for (size_t e = 0; e < description.extras.size(); ++e) add_extra(description, static_cast<int64_t>(e), &items);
  return items;
}

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// Adds up a number for each element. The number depends on the element and its place, so parts may
/// arrive in any order.
class SumSink final : public BlockSink {
 public:
  explicit SumSink(std::vector<Item *> items) : items_(std::move(items)) {}

  Status take(const Wanted &wanted, int64_t offset, std::span<const std::byte> data) override {
    Item &item = *items_[static_cast<size_t>(wanted.user)];
    const auto each = static_cast<size_t>(item.entry_nbytes);
    uint64_t place = static_cast<uint64_t>(offset) / each;
    for (size_t at = 0; at < data.size(); at += each, ++place) {
      uint64_t element = 0;
      std::memcpy(&element, data.data() + at, each);
      item.sum += mixed(mixed(place + 1) ^ element);
    }
    return {};
  }

 private:
  const std::vector<Item *> items_;
};

Status sum_items(const OpenedSave &save, const StreamOptions &options, Progress *progress, Items *items) {
  std::vector<Item *> order;
  std::vector<Wanted> wanted;
  for (auto &[name, item] : *items) {
    wanted.push_back(item.wanted);
    wanted.back().user = static_cast<int64_t>(order.size());
    order.push_back(&item);
  }
  SumSink sink(std::move(order));
  SaveReader reader(save.manifest, options);
  ZERO_TRY(reader.open(save.saves, save.name, 0));
  return reader.read(wanted, sink, progress);
}

using Tensors = std::map<std::string, const SavedTensor *>;

Tensors tensors_of(const SaveDescription &description) {
  Tensors tensors;
  for (const Section &section : description.sections) {
    for (const SavedTensor &tensor : section.tensors) tensors.emplace(section.prefix + tensor.name, &tensor);
  }
  return tensors;
}

/// The facts of a tensor, with its shape and its tie.
Facts facts_of(const SavedTensor &tensor) {
  Facts facts = tensor.facts;
  facts["shape"] = shape_text_of(tensor.shape);
  if (!tensor.tied_to.empty()) facts["tied_to"] = tensor.tied_to;
  return facts;
}

const Section *section_like(const SaveDescription &description, const Section &like) {
  for (const Section &section : description.sections) {
    if (section.kind == like.kind && section.prefix == like.prefix) return &section;
  }
  return nullptr;
}

/// Collects the things that differ.
class Differences {
 public:
  void compare(const SaveDescription &a, const SaveDescription &b) {
    if (a.step != b.step) add("step", "differs", std::to_string(a.step), std::to_string(b.step));
    compare_facts("text ", a.texts, b.texts);
    for (const Section &section : a.sections) {
      const Section *const other = section_like(b, section);
      compare_facts(section.kind + " " + section.prefix, section.facts, other != nullptr ? other->facts : Facts());
    }
    for (const Section &section : b.sections) {
      if (section_like(a, section) == nullptr) compare_facts(section.kind + " " + section.prefix, {}, section.facts);
    }
    compare_tensors(tensors_of(a), tensors_of(b));
  }

  void compare(const Items &a, const Items &b) {
    for (const auto &[name, item] : a) {
      const auto other = b.find(name);
      if (other == b.end()) {
        add(name, "only in the first", {}, {});
      } else if (other->second.form != item.form) {
        add(name, "has another type or shape", item.form, other->second.form);
      } else if (other->second.sum != item.sum) {
        add(name, "has other values", {}, {});
      }
    }
    for (const auto &[name, item] : b) {
      if (!a.contains(name)) add(name, "only in the second", {}, {});
    }
  }

  int64_t count() const { return static_cast<int64_t>(found_.size()); }

  /// One line per difference.
  std::string plain() const {
    std::string text;
    for (const Found &one : found_) {
      text += one.name + ": " + one.what + (one.a.empty() && one.b.empty() ? "" : ": " + one.a + " | " + one.b) + "\n";
    }
    return text;
  }

  /// One object per difference.
  std::string json() const {
    JsonText json(JsonText::Form::lines);
    json.open('[');
    for (const Found &one : found_) {
      json.open('{');
      json.field("name", one.name);
      json.field("difference", one.what);
      json.field("a", one.a);
      json.field("b", one.b);
      json.close('}');
    }
    json.close(']');
    return json.text() + "\n";
  }

 private:
  struct Found {
    std::string name;
    const char *what;
    std::string a;
    std::string b;
  };

  void add(std::string name, const char *what, std::string a, std::string b) {
    found_.push_back({std::move(name), what, std::move(a), std::move(b)});
  }

  void compare_facts(const std::string &where, const Facts &a, const Facts &b) {
    for (const auto &[key, value] : a) {
      const auto other = b.find(key);
      if (other == b.end()) {
        add(where + key, "only in the first", {}, {});
      } else if (other->second != value) {
        add(where + key, "differs", value.substr(0, kMostShownNbytes), other->second.substr(0, kMostShownNbytes));
      }
    }
    for (const auto &[key, value] : b) {
      if (!a.contains(key)) add(where + key, "only in the second", {}, {});
    }
  }

  /// If one save lacks a tensor, reports its slots, or the tensor itself if it has none.
  void compare_tensors(const Tensors &a, const Tensors &b) {
    for (const auto &[name, tensor] : a) {
      const auto other = b.find(name);
      if (other != b.end()) {
        compare_facts(name + " ", facts_of(*tensor), facts_of(*other->second));
      } else if (tensor->slots.empty()) {
        add(name, "only in the first", {}, {});
      }
    }
    for (const auto &[name, tensor] : b) {
      if (tensor->slots.empty() && !a.contains(name)) add(name, "only in the second", {}, {});
    }
  }

  std::vector<Found> found_;
};

}  // namespace

Status diff_saves(const OpenedSave &a, const OpenedSave &b, const StreamOptions &options, Progress *progress, std::string *out_plain,
                  std::string *out_json, int64_t *out_count) {
  Items first = items_of(a.manifest.description);
  Items second = items_of(b.manifest.description);
  ZERO_TRY(sum_items(a, options, progress, &first));
  ZERO_TRY(sum_items(b, options, progress, &second));
  Differences differences;
  differences.compare(a.manifest.description, b.manifest.description);
  differences.compare(first, second);
  *out_plain = differences.plain();
  *out_json = differences.json();
  *out_count = differences.count();
  return {};
}

}  // namespace zero::checkpoint
