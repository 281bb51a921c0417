/// @file Finds the runs of bytes that hold the wanted ranges, and proves that they cover them.
#include "checkpoint/save_reader.h"

#include <algorithm>
#include <utility>

namespace zero::checkpoint {
namespace {

/// The parts of one wanted range, and the proof that they cover it from its beginning to its end.
class Cover {
 public:
  Cover(const Wanted &wanted, int64_t index, int64_t entry_nbytes, std::string name, std::vector<FilePart> *out)
      : wanted_(wanted), index_(index), entry_nbytes_(entry_nbytes), name_(std::move(name)), next_(wanted.entries.begin), out_(*out) {}

  /// The entry of `file` holds entries `held` of the slot.
  Status add(int64_t file, Range held) {
    const Range both = intersect(held, wanted_.entries);
    if (both.empty()) return {};
    ZERO_TRY(check(both.begin));
    out_.push_back({file, (both.begin - held.begin) * entry_nbytes_, both.count() * entry_nbytes_, index_,
                    (both.begin - wanted_.entries.begin) * entry_nbytes_});
    next_ = both.end;
    return {};
  }

  Status finish() const { return check(wanted_.entries.end); }

 private:
  Status check(int64_t begin) const {
    ZERO_CHECK(begin == next_, ZERO_E_CHECKPOINT, "the save does not cover %s: of the entries [%lld, %lld), [%lld, %lld) %s", name_.c_str(),
               lld(wanted_.entries.begin), lld(wanted_.entries.end), lld(std::min(begin, next_)), lld(std::max(begin, next_)),
               begin > next_ ? "are in no file" : "are in two files");
    return {};
  }

  const Wanted &wanted_;
  const int64_t index_;
  const int64_t entry_nbytes_;
  const std::string name_;
  int64_t next_;
  std::vector<FilePart> &out_;
};

bool within(int64_t index, size_t count) { return index >= 0 && index < static_cast<int64_t>(count); }

Status check_range(const Wanted &wanted, int64_t count, const std::string &name) {
  ZERO_CHECK(wanted.entries.begin >= 0 && wanted.entries.end <= count, ZERO_E_INVALID_ARGUMENT,
             "entries [%lld, %lld) of %s were requested, but it has %lld", lld(wanted.entries.begin), lld(wanted.entries.end), name.c_str(),
             lld(count));
  return {};
}

class Planner {
 public:
  Planner(const Manifest &manifest, std::vector<FilePart> *out) : description_(manifest.description), plan_(description_), out_(*out) {}

  Status add(const Wanted &wanted, int64_t index) { return wanted.section < 0 ? add_extra(wanted, index) : add_slot(wanted, index); }

 private:
  Status add_extra(const Wanted &wanted, int64_t index) {
    ZERO_CHECK(within(wanted.tensor, description_.extras.size()), ZERO_E_INVALID_ARGUMENT, "extra %lld is wanted of %zu",
               lld(wanted.tensor), description_.extras.size());
    const SavedExtra &extra = description_.extras[static_cast<size_t>(wanted.tensor)];
    const int64_t count = shape_count(extra.shape);
    const bool each = extra.scope == Scope::each;
    ZERO_CHECK(each ? within(wanted.copy, static_cast<size_t>(description_.rank_count)) : wanted.copy == -1, ZERO_E_INVALID_ARGUMENT,
               "copy %lld of %s was requested, but the save has %lld ranks", lld(wanted.copy), extra.name.c_str(),
               lld(description_.rank_count));
    ZERO_TRY(check_range(wanted, count, extra.name));
    Cover cover(wanted, index, disk_type_nbytes(extra.type), extra.name, &out_);
    ZERO_TRY(cover.add(each ? plan_.state_file(wanted.copy) : plan_.extra_file(), {0, count}));
    return cover.finish();
  }

  Status add_slot(const Wanted &wanted, int64_t index) {
    ZERO_CHECK(within(wanted.section, description_.sections.size()), ZERO_E_INVALID_ARGUMENT, "section %lld is wanted of %zu",
               lld(wanted.section), description_.sections.size());
    const Section &section = description_.sections[static_cast<size_t>(wanted.section)];
    ZERO_CHECK(within(wanted.tensor, section.tensors.size()) &&
                   within(wanted.slot, section.tensors[static_cast<size_t>(wanted.tensor)].slots.size()),
               ZERO_E_INVALID_ARGUMENT, "slot %lld of tensor %lld was requested, but section %lld has no such slot", lld(wanted.slot),
               lld(wanted.tensor), lld(wanted.section));
    const SavedTensor &tensor = section.tensors[static_cast<size_t>(wanted.tensor)];
    const SavedSlot &slot = tensor.slots[static_cast<size_t>(wanted.slot)];
    const std::string name = entry_name(section, tensor, slot);
    const int64_t count = entry_count(tensor, slot);
    const bool per_rank = slot.placement == Placement::per_rank;
    ZERO_CHECK(per_rank ? within(wanted.copy, static_cast<size_t>(section.rank_count)) : wanted.copy == -1, ZERO_E_INVALID_ARGUMENT,
               "copy %lld of %s was requested, but the save has %lld ranks", lld(wanted.copy), name.c_str(), lld(section.rank_count));
    ZERO_TRY(check_range(wanted, count, name));
    Cover cover(wanted, index, disk_type_nbytes(slot.type), name, &out_);
    if (slot.placement == Placement::whole) {
      ZERO_TRY(cover.add(plan_.model_file(tensor.model_file), {0, count}));
    } else if (per_rank) {
      ZERO_TRY(cover.add(plan_.state_file(section.state_file(wanted.copy)), {0, count}));
    } else {
      ZERO_TRY(add_pieces(section, wanted, slot, &cover));
    }
    return cover.finish();
  }

  /// Visits only the ranks whose cuts overlap the range.
  Status add_pieces(const Section &section, const Wanted &wanted, const SavedSlot &slot, Cover *cover) const {
    const int64_t *const cuts = section.cuts.data() + wanted.tensor * (section.rank_count + 1);
    const auto entry_before = [&](int64_t cut) { return entries_of(slot, {0, cut}).end; };
    const int64_t *const first = std::partition_point(cuts + 1, cuts + section.rank_count + 1,
                                                      [&](int64_t cut) { return entry_before(cut) <= wanted.entries.begin; });
    for (int64_t rank = first - cuts - 1; rank < section.rank_count; ++rank) {
      const Range held = entries_of(slot, section.cut(wanted.tensor, rank));
      if (held.begin >= wanted.entries.end) break;
      ZERO_TRY(cover->add(plan_.state_file(section.state_file(rank)), held));
    }
    return {};
  }

  const SaveDescription &description_;
  const FilePlan plan_;
  std::vector<FilePart> &out_;
};

/// Adds all slots of one tensor, each copy.
void want_tensor(const Section &section, int64_t s, int64_t t, std::vector<Wanted> *out) {
  const SavedTensor &tensor = section.tensors[static_cast<size_t>(t)];
  for (size_t k = 0; k < tensor.slots.size(); ++k) {
    const SavedSlot &slot = tensor.slots[k];
    const bool per_rank = slot.placement == Placement::per_rank;
    for (int64_t copy = per_rank ? 0 : -1; copy < (per_rank ? section.rank_count : 0); ++copy) {
      out->push_back({s, t, static_cast<int64_t>(k), copy, {0, entry_count(tensor, slot)}});
    }
  }
}

}  // namespace

Status plan_reads(const Manifest &manifest, std::span<const Wanted> wanted, std::vector<FilePart> *out) {
  out->clear();
  Planner planner(manifest, out);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i].entries.empty()) ZERO_TRY(planner.add(wanted[i], static_cast<int64_t>(i)));
  }
  return {};
}

Status prove_cover(const Manifest &manifest) {
  std::vector<FilePart> parts;
  for (size_t s = 0; s < manifest.description.sections.size(); ++s) {
    const Section &section = manifest.description.sections[s];
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      std::vector<Wanted> wanted;
      want_tensor(section, static_cast<int64_t>(s), static_cast<int64_t>(t), &wanted);
      ZERO_TRY(plan_reads(manifest, wanted, &parts));
    }
  }
  return {};
}

}  // namespace zero::checkpoint
