/// @file Comparing saves.
#include "checkpoint/difference.h"

#include "checkpoint/save_reader.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace zero::checkpoint {
namespace {

/// Something that both saves may have: a slot of a tensor (of one rank, where each has its own), or an extra.
struct Item {
  std::string form;  ///< type and shape, which must be alike before values are
  Wanted wanted;
  int64_t entry_nbytes = 0;
  uint64_t sum = 0;
};
using Items = std::map<std::string, Item>;

std::string form_of(DiskType type, const std::string &true_type, const std::vector<int64_t> &shape, int64_t entries) {
  return (true_type.empty() ? disk_type_name(type) : true_type) + " " + nlohmann::json(shape).dump() + ", " + std::to_string(entries) + " entries";
}

void add_slot(const Section &section, int64_t s, int64_t t, int64_t k, Items *items) {
  const SavedTensor &tensor = section.tensors[static_cast<size_t>(t)];
  const SavedSlot &slot = tensor.slots[static_cast<size_t>(k)];
  const int64_t count = entry_count(tensor, slot);
  const std::string name = section.prefix + tensor.name + " " + slot.name;
  const std::string form = form_of(slot.type, slot.true_type, tensor.shape, count);
  if (slot.placement != Placement::per_rank) {
    (*items)[name] = {form, {s, t, k, -1, {0, count}}, disk_type_nbytes(slot.type)};
    return;
  }
  for (int64_t rank = 0; rank < section.rank_count; ++rank) {
    (*items)[name + " of rank " + std::to_string(rank)] = {form, {s, t, k, rank, {0, count}}, disk_type_nbytes(slot.type)};
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
  for (size_t e = 0; e < description.extras.size(); ++e) {
    const SavedExtra &extra = description.extras[e];
    const bool each = extra.scope == Scope::each;
    for (int64_t rank = each ? 0 : -1; rank < (each ? description.rank_count : 0); ++rank) {
      const int64_t count = shape_count(extra.shape);
      items[extra.name + (each ? " of rank " + std::to_string(rank) : "")] = {
          form_of(extra.type, {}, extra.shape, count), {-1, static_cast<int64_t>(e), -1, rank, {0, count}}, disk_type_nbytes(extra.type)};
    }
  }
  return items;
}

uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// Adds up a number for each element, which depends on the element and its place, so that the order in which parts come does not matter.
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

/// A line for each thing that differs.
class Differences {
 public:
  void add(const std::string &name, const std::string &what, const std::string &a, const std::string &b) {
    text_ += name + ": " + what + (a.empty() && b.empty() ? "" : ": " + a + " | " + b) + "\n";
    json_.push_back({{"name", name}, {"difference", what}, {"a", a}, {"b", b}});
  }

  void compare_facts(const std::string &where, const Facts &a, const Facts &b) {
    for (const auto &[key, value] : a) {
      const auto other = b.find(key);
      if (other == b.end()) add(where + key, "only in the first", {}, {});
      if (other != b.end() && other->second != value) add(where + key, "differs", value.substr(0, 200), other->second.substr(0, 200));
    }
    for (const auto &[key, value] : b) {
      if (!a.contains(key)) add(where + key, "only in the second", {}, {});
    }
  }

  void compare_items(const Items &a, const Items &b) {
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

  int64_t count() const { return static_cast<int64_t>(json_.size()); }
  const std::string &plain() const { return text_; }
  std::string json() const { return json_.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"; }

 private:
  std::string text_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::array();
};

const Section *section_of(const SaveDescription &description, const std::string &prefix) {
  for (const Section &section : description.sections) {
    if (section.prefix == prefix) return &section;
  }
  return nullptr;
}

}  // namespace

Status diff_saves(const OpenedSave &a, const OpenedSave &b, const StreamOptions &options, Progress *progress, std::string *out_plain,
                  std::string *out_json, int64_t *out_count) {
  Items first = items_of(a.manifest.description);
  Items second = items_of(b.manifest.description);
  ZERO_TRY(sum_items(a, options, progress, &first));
  ZERO_TRY(sum_items(b, options, progress, &second));
  Differences differences;
  differences.compare_facts("text ", a.manifest.description.texts, b.manifest.description.texts);
  for (const Section &section : a.manifest.description.sections) {
    const Section *const other = section_of(b.manifest.description, section.prefix);
    if (other != nullptr) differences.compare_facts(section.kind + " " + section.prefix, section.facts, other->facts);
  }
  differences.compare_items(first, second);
  *out_plain = differences.plain();
  *out_json = differences.json();
  *out_count = differences.count();
  return {};
}

}  // namespace zero::checkpoint
