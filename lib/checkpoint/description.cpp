/// @file Arithmetic and checks of descriptions.
#include "checkpoint/description.h"

#include "checkpoint/safetensors.h"
#include "core/system_random.h"
#include "core/utf8.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

namespace zero::checkpoint {
namespace {

constexpr size_t kMostPrefixNbytes = 255;
constexpr size_t kMostTensorNameNbytes = 255;
constexpr size_t kMostSlotNameNbytes = 64;
constexpr int64_t kMostRanks = 1 << 20;

int64_t whole_nbytes_of(const SavedTensor &tensor) {
  int64_t nbytes = 0;
  for (const SavedSlot &slot : tensor.slots) {
    if (slot.placement == Placement::whole) nbytes += entry_count(tensor, slot) * disk_type_nbytes(slot.type);
  }
  return nbytes;
}

bool has_whole(const SavedTensor &tensor) {
  return std::any_of(tensor.slots.begin(), tensor.slots.end(), [](const SavedSlot &slot) { return slot.placement == Placement::whole; });
}

/// Assigns tensors to model files, one file after the other.
class Dealer {
 public:
  Dealer(int64_t most_nbytes, std::vector<int64_t> *writers) : most_nbytes_(most_nbytes), writers_(*writers) {}

  int64_t place(int64_t nbytes, int64_t writer) {
    if (writers_.empty() || writers_.back() != writer || (used_ > 0 && nbytes > most_nbytes_ - used_)) {
      writers_.push_back(writer);
      used_ = 0;
    }
    used_ += nbytes;
    return static_cast<int64_t>(writers_.size()) - 1;
  }

 private:
  const int64_t most_nbytes_;
  int64_t used_ = 0;
  std::vector<int64_t> &writers_;
};

void deal_section(Section *section, Dealer *dealer) {
  int64_t total = 0;
  for (const SavedTensor &tensor : section->tensors) total += whole_nbytes_of(tensor);
  int64_t before = 0;
  for (SavedTensor &tensor : section->tensors) {
    tensor.model_file = -1;
    if (!has_whole(tensor)) continue;
    const int64_t nbytes = whole_nbytes_of(tensor);
    // The rank whose even share contains the middle of the tensor.
    const int64_t share = total > 0 ? scale_floor(before + nbytes / 2, section->rank_count, total) : 0;
    tensor.model_file = dealer->place(nbytes, section->state_file(std::min(share, section->rank_count - 1)));
    before += nbytes;
  }
}

bool is_hex_id(const std::string &id) {
  return id.size() == 32 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Status check_text(const std::string &text, size_t least, size_t most, const char *what) {
  ZERO_CHECK(text.size() >= least && text.size() <= most, ZERO_E_INVALID_ARGUMENT, "%s has %zu bytes, but must have %zu to %zu: %.100s",
             what, text.size(), least, most, text.c_str());
  ZERO_CHECK(valid_nbytes(text.data(), text.size()) == text.size() && text.find('\0') == std::string::npos, ZERO_E_INVALID_ARGUMENT,
             "%s is not UTF-8, or has a zero byte: %.100s", what, text.c_str());
  return {};
}

Status check_facts(const Facts &facts, const char *what) {
  for (const auto &[key, value] : facts) {
    ZERO_TRY(check_text(key, 1, kMostNameNbytes, what));
    ZERO_TRY(check_text(value, 0, size_t{1} << 30, what));
  }
  return {};
}

Status check_cuts(const Section &section) {
  const auto width = static_cast<size_t>(section.rank_count + 1);
  ZERO_CHECK(section.cuts.size() == section.tensors.size() * width, ZERO_E_INVALID_ARGUMENT,
             "section \"%s\" has %zu cuts, but %zu tensors on %lld ranks have %zu", section.prefix.c_str(), section.cuts.size(),
             section.tensors.size(), lld(section.rank_count), section.tensors.size() * width);
  for (size_t t = 0; t < section.tensors.size(); ++t) {
    const int64_t *const cuts = section.cuts.data() + t * width;
    const SavedTensor &tensor = section.tensors[t];
    const bool rises = cuts[0] == 0 && std::is_sorted(cuts, cuts + width) && cuts[width - 1] == tensor.count();
    ZERO_CHECK(rises, ZERO_E_INVALID_ARGUMENT, "the cuts of tensor %s%s do not rise from 0 to its %lld elements", section.prefix.c_str(),
               tensor.name.c_str(), lld(tensor.count()));
  }
  return {};
}

Status check_slot(const SavedTensor &tensor, const SavedSlot &slot) {
  ZERO_TRY(check_text(slot.name, 1, kMostSlotNameNbytes, "the name of a slot"));
  ZERO_CHECK(slot.name.find(':') == std::string::npos, ZERO_E_INVALID_ARGUMENT, "the slot name %s has a colon", slot.name.c_str());
  ZERO_CHECK(slot.per >= 1 && slot.per <= kPerTensor, ZERO_E_INVALID_ARGUMENT,
             "slot %s of tensor %s has %lld elements per entry, but must have 1 to 2^62",
             slot.name.c_str(), tensor.name.c_str(), lld(slot.per));
  ZERO_CHECK(slot.copy_entries >= 0 && (slot.copy_entries == 0 || slot.placement == Placement::per_rank), ZERO_E_INVALID_ARGUMENT,
             "slot %s of tensor %s has %lld entries per copy, but only slots per rank have any, and none is negative", slot.name.c_str(),
             tensor.name.c_str(), lld(slot.copy_entries));
  const bool in_model = tensor.model_file >= 0;
  ZERO_CHECK(slot.placement != Placement::whole || in_model, ZERO_E_INVALID_ARGUMENT,
             "slot %s of tensor %s is saved as one full tensor, but the tensor has no model file", slot.name.c_str(), tensor.name.c_str());
  return {};
}

/// Counts all bytes of a save, and refuses more than a file system can hold. Sums of byte counts
/// then fit into 64 bits.
class ByteCount {
 public:
  Status add(const std::string &name, int64_t count, DiskType type, int64_t copies) {
    nbytes_ += static_cast<Int128>(count) * disk_type_nbytes(type) * copies;
    ZERO_CHECK(nbytes_ <= kPerTensor, ZERO_E_INVALID_ARGUMENT, "with %s, a save has more than 2^62 bytes", name.c_str());
    return {};
  }

 private:
  Int128 nbytes_ = 0;
};

Status count_section(const Section &section, ByteCount *bytes) {
  for (const SavedTensor &tensor : section.tensors) {
    for (const SavedSlot &slot : tensor.slots) {
      ZERO_TRY(bytes->add(tensor.name, entry_count(tensor, slot), slot.type,
                          slot.placement == Placement::per_rank ? section.rank_count : 1));
    }
  }
  return {};
}

/// Names that must be unique: in all model files together, in all state files together, in the
/// extra file.
class NameSets {
 public:
  Status add(const Section &section, const SavedTensor &tensor) {
    ZERO_TRY(add_to(&tensors_, section.prefix + tensor.name));
    for (const SavedSlot &slot : tensor.slots) {
      ZERO_TRY(add_to(slot.placement == Placement::whole ? &model_ : &state_, entry_name(section, tensor, slot)));
    }
    return {};
  }
  Status add(const SavedExtra &extra) { return add_to(extra.scope == Scope::one ? &extra_ : &state_, extra.name); }

 private:
  static Status add_to(std::set<std::string> *names, std::string name) {
    ZERO_CHECK(name != "__metadata__", ZERO_E_INVALID_ARGUMENT,
               "a tensor is named __metadata__, which readers take for the metadata of a file");
    const auto [at, is_new] = names->insert(std::move(name));
    ZERO_CHECK(is_new, ZERO_E_INVALID_ARGUMENT, "two things of a save are named %s; rename one, or give one a prefix", at->c_str());
    return {};
  }

  std::set<std::string> tensors_;
  std::set<std::string> model_;
  std::set<std::string> state_;
  std::set<std::string> extra_;
};

Status check_tensor(const SaveDescription &description, const SavedTensor &tensor) {
  ZERO_TRY(check_text(tensor.name, 1, kMostTensorNameNbytes, "the name of a tensor"));
  ZERO_TRY(check_text(tensor.tied_to, 0, kMostTensorNameNbytes, "the name of a tensor"));
  ZERO_TRY(check_facts(tensor.facts, "a fact of a tensor"));
  ZERO_CHECK(tensor.count() >= 0, ZERO_E_INVALID_ARGUMENT, "tensor %s has a negative dimension, or more than 2^62 elements",
             tensor.name.c_str());
  ZERO_CHECK(tensor.tied_to.empty() || tensor.slots.empty(), ZERO_E_INVALID_ARGUMENT, "tensor %s is tied to %s, but has slots of its own",
             tensor.name.c_str(), tensor.tied_to.c_str());
  ZERO_CHECK(tensor.model_file >= -1 && tensor.model_file < description.model_file_count, ZERO_E_INVALID_ARGUMENT,
             "tensor %s lies in model file %lld of %lld", tensor.name.c_str(), lld(tensor.model_file), lld(description.model_file_count));
  for (const SavedSlot &slot : tensor.slots) ZERO_TRY(check_slot(tensor, slot));
  return {};
}

/// The cost is proportional to the length of the list: a hostile file may have many sections
/// without one.
Status check_state_files(const SaveDescription &description, const Section &section) {
  std::set<int64_t> files;
  for (size_t rank = 0; rank < section.state_files.size(); ++rank) {
    const int64_t file = section.state_files[rank];
    ZERO_CHECK(file >= 0 && file < description.rank_count && files.insert(file).second, ZERO_E_INVALID_ARGUMENT,
               "rank %zu of section \"%s\" has state file %lld, which is not one of its own among %lld", rank, section.prefix.c_str(),
               lld(file), lld(description.rank_count));
  }
  return {};
}

Status check_section(const SaveDescription &description, const Section &section, NameSets *names) {
  ZERO_TRY(check_text(section.kind, 1, kMostSlotNameNbytes, "the kind of a section"));
  ZERO_TRY(check_text(section.prefix, 0, kMostPrefixNbytes, "a prefix"));
  ZERO_TRY(check_facts(section.facts, "a fact of a section"));
  ZERO_CHECK(section.rank_count >= 1 && section.rank_count <= description.rank_count, ZERO_E_INVALID_ARGUMENT,
             "section \"%s\" has %lld ranks, but must have 1 to %lld, the ranks of the save", section.prefix.c_str(),
             lld(section.rank_count), lld(description.rank_count));
  ZERO_CHECK(section.state_files.empty() || static_cast<int64_t>(section.state_files.size()) == section.rank_count, ZERO_E_INVALID_ARGUMENT,
             "section \"%s\" of %lld ranks has %zu state files", section.prefix.c_str(), lld(section.rank_count),
             section.state_files.size());
  ZERO_TRY(check_state_files(description, section));
  for (const SavedTensor &tensor : section.tensors) {
    ZERO_TRY(check_tensor(description, tensor));
    ZERO_TRY(names->add(section, tensor));
  }
  return check_cuts(section);
}

}  // namespace

int64_t SavedTensor::count() const { return shape_count(shape); }

int64_t Section::state_file(int64_t rank) const { return state_files.empty() ? rank : state_files[static_cast<size_t>(rank)]; }

Range Section::cut(int64_t tensor, int64_t rank) const {
  if (rank >= rank_count) return {};
  const auto at = static_cast<size_t>(tensor * (rank_count + 1) + rank);
  return {cuts[at], cuts[at + 1]};
}

bool keeps_shape(const SavedSlot &slot) { return slot.placement == Placement::whole && slot.name == "param" && slot.per == 1; }

std::string entry_name(const Section &section, const SavedTensor &tensor, const SavedSlot &slot) {
  return section.prefix + tensor.name + (keeps_shape(slot) ? "" : ":" + slot.name);
}

std::string shape_text_of(const std::vector<int64_t> &shape) {
  std::string text;
  for (const int64_t extent : shape) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return "[" + text + "]";
}

Range entries_of(const SavedSlot &slot, Range elements) {
  const auto before = [&](int64_t element) { return (element + slot.per - 1) / slot.per; };
  return {before(elements.begin), before(elements.end)};
}

int64_t entry_count(const SavedTensor &tensor, const SavedSlot &slot) {
  return slot.placement == Placement::per_rank ? slot.copy_entries : entries_of(slot, {0, tensor.count()}).end;
}

void assign_model_files(SaveDescription *description, int64_t most_nbytes, std::vector<int64_t> *out_writers) {
  out_writers->clear();
  Dealer dealer(most_nbytes, out_writers);
  for (Section &section : description->sections) deal_section(&section, &dealer);
  description->model_file_count = static_cast<int64_t>(out_writers->size());
}

Status check_description(const SaveDescription &description) {
  ZERO_CHECK(is_hex_id(description.id) && is_hex_id(description.run_id), ZERO_E_INVALID_ARGUMENT,
             "the id of a save or a run is not 32 hexadecimal digits: \"%.40s\", \"%.40s\"", description.id.c_str(),
             description.run_id.c_str());
  ZERO_CHECK(description.previous_id.empty() || is_hex_id(description.previous_id), ZERO_E_INVALID_ARGUMENT,
             "the id of the previous save is not 32 hexadecimal digits: \"%.40s\"", description.previous_id.c_str());
  ZERO_CHECK(description.rank_count >= 1 && description.rank_count <= kMostRanks && description.model_file_count >= 0 &&
                 description.model_file_count <= kMostRanks,
             ZERO_E_INVALID_ARGUMENT, "a save of %lld ranks with %lld model files is out of bounds", lld(description.rank_count),
             lld(description.model_file_count));
  ZERO_TRY(check_text(description.created, 0, kMostNameNbytes, "the time of creation"));
  ZERO_TRY(check_text(description.library, 0, kMostNameNbytes, "the name of the library"));
  ZERO_TRY(check_facts(description.texts, "a text of the user"));
  NameSets names;
  ByteCount bytes;
  for (const Section &section : description.sections) {
    ZERO_TRY(check_section(description, section, &names));
    ZERO_TRY(count_section(section, &bytes));
  }
  for (const SavedExtra &extra : description.extras) {
    ZERO_TRY(check_text(extra.name, 1, kMostNameNbytes, "the name of a tensor"));
    ZERO_CHECK(shape_count(extra.shape) >= 0, ZERO_E_INVALID_ARGUMENT, "tensor %s has a shape that is negative or too large",
               extra.name.c_str());
    ZERO_TRY(names.add(extra));
    ZERO_TRY(bytes.add(extra.name, shape_count(extra.shape), extra.type, extra.scope == Scope::each ? description.rank_count : 1));
  }
  return {};
}

Status make_id(std::string *out) {
  uint64_t high = 0;
  uint64_t low = 0;
  ZERO_TRY(random_u64(&high));
  ZERO_TRY(random_u64(&low));
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high), static_cast<unsigned long long>(low));
  *out = text;
  return {};
}

}  // namespace zero::checkpoint
