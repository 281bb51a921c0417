/// @file Bytes and steps of the sample run.
#include "tests/checkpoint/sample_run.h"

#include "core/hash.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>

namespace zero::tests {
namespace {

using namespace checkpoint;

constexpr int64_t kMostModelFile = 64 << 20;

SavedSlot pieces(const char *name, DiskType type, int64_t per = 1) { return {name, type, {}, per, Placement::pieces, 0}; }

void add_tensor(Section *section, std::string name, std::vector<int64_t> shape, std::vector<SavedSlot> slots) {
  SavedTensor tensor;
  tensor.name = std::move(name);
  tensor.shape = std::move(shape);
  tensor.slots = std::move(slots);
  tensor.facts = {{"set", "0"}};
  section->tensors.push_back(std::move(tensor));
}

/// As a partition gives them: whole lines, small tensors in one piece, one tensor in three whole on a rank.
void cut_tensors(Section *section) {
  for (size_t t = 0; t < section->tensors.size(); ++t) {
    const int64_t count = section->tensors[t].count();
    const int64_t lines = (count + kLine - 1) / kLine;
    const bool whole = count < kLine || t % 3 == 2;
    const auto owner = static_cast<int64_t>(t) % section->rank_count;
    for (int64_t rank = 0; rank <= section->rank_count; ++rank) {
      const int64_t even = std::min(scale_floor(lines, rank, section->rank_count) * kLine, count);
      section->cuts.push_back(!whole ? even : rank <= owner ? 0 : count);
    }
  }
}

Section make_optimizer(const SampleShape &shape) {
  const SavedSlot param{"param", DiskType::bf16, {}, 1, shape.model ? Placement::whole : Placement::pieces, 0};
  const SavedSlot first = pieces("first_moment", DiskType::f32);
  const SavedSlot second = pieces("second_moment", DiskType::f32);
  Section section;
  section.kind = "optimizer";
  section.rank_count = shape.ranks;
  section.facts = {{"stage", "2"}, {"algorithm", "adamw"}, {"set.0.lr", "0x1.0624dd2f1a9fcp-10"}};
  const int64_t k = shape.scale;
  if (shape.minimal) {
    add_tensor(&section, "w", {k, 700}, {param, first});
    cut_tensors(&section);
    return section;
  }
  add_tensor(&section, "embed.weight", {k * 11, 256}, {param, pieces("master", DiskType::f32), first, second});
  add_tensor(&section, "norm.weight", {37}, {param, first, second, pieces("update_count", DiskType::i64, kPerTensor)});
  add_tensor(&section, "empty", {0, 4}, {param, first});
  add_tensor(&section, "scalar", {}, {param, first});
  add_tensor(&section, "fc.weight", {k * 9, 257},
             {param, pieces("first_moment", DiskType::f8_e4m3), pieces("first_scale", DiskType::f32, kLine),
              SavedSlot{"residual", DiskType::f32, {}, 1, Placement::per_rank, 130}});
  add_tensor(&section, "quantized", {k * 3, 300},
             {SavedSlot{"param", DiskType::u8, "f8_ue5m3", 1, param.placement, 0},
              SavedSlot{"param_scale", DiskType::f32, {}, kLine, param.placement, 0}, second});
  add_tensor(&section, "head.weight", {k * 11, 256}, {});
  section.tensors.back().tied_to = "embed.weight";
  cut_tensors(&section);
  return section;
}

Section make_buffer(const SampleShape &shape) {
  Section section;
  section.kind = "buffer";
  section.prefix = "data.";
  section.rank_count = shape.ranks;
  add_tensor(&section, "history", {shape.scale * 1500}, {pieces("value", DiskType::f64)});
  cut_tensors(&section);
  return section;
}

std::string name_of(const SaveDescription &description, int64_t section, int64_t tensor, int64_t slot) {
  if (section < 0) return description.extras[static_cast<size_t>(tensor)].name;
  const Section &of = description.sections[static_cast<size_t>(section)];
  const SavedTensor &found = of.tensors[static_cast<size_t>(tensor)];
  return entry_name(of, found, found.slots[static_cast<size_t>(slot)]);
}

/// The copy to which an entry belongs; -1 if all ranks have one together.
int64_t copy_of(const SaveDescription &description, const EntrySource &entry) {
  if (entry.section < 0) return entry.rank;
  const SavedTensor &tensor = description.sections[static_cast<size_t>(entry.section)].tensors[static_cast<size_t>(entry.tensor)];
  return tensor.slots[static_cast<size_t>(entry.slot)].placement == Placement::per_rank ? entry.rank : -1;
}

int64_t entry_nbytes(const SaveDescription &description, int64_t section, int64_t tensor, int64_t slot) {
  if (section < 0) return disk_type_nbytes(description.extras[static_cast<size_t>(tensor)].type);
  const SavedTensor &found = description.sections[static_cast<size_t>(section)].tensors[static_cast<size_t>(tensor)];
  return disk_type_nbytes(found.slots[static_cast<size_t>(slot)].type);
}

/// Compares what comes, and counts it.
class ComparingSink final : public BlockSink {
 public:
  explicit ComparingSink(const SaveDescription &description) : description_(description) {}

  Status take(const Wanted &wanted, int64_t offset, std::span<const std::byte> data) override {
    const std::string name = name_of(description_, wanted.section, wanted.tensor, wanted.slot);
    std::vector<std::byte> expected(data.size());
    const int64_t each = entry_nbytes(description_, wanted.section, wanted.tensor, wanted.slot);
    sample_bytes(description_.step, name, wanted.copy, wanted.entries.begin * each + offset, expected);
    ZERO_CHECK(std::memcmp(expected.data(), data.data(), data.size()) == 0, ZERO_E_INTERNAL, "%s differs in entries from %lld on", name.c_str(),
               lld(wanted.entries.begin + offset / each));
    nbytes += static_cast<int64_t>(data.size());
    return {};
  }

  int64_t nbytes = 0;

 private:
  const SaveDescription &description_;
};

/// Everything there is, cut for `ranks` readers at places that have nothing to do with the writers'.
std::vector<Wanted> want_all(const SaveDescription &description, int64_t ranks) {
  std::vector<Wanted> wanted;
  const auto add = [&](Wanted want, int64_t count) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      want.entries = even_share(count, rank, ranks);
      wanted.push_back(want);
    }
  };
  for (size_t s = 0; s < description.sections.size(); ++s) {
    const Section &section = description.sections[s];
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      const SavedTensor &tensor = section.tensors[t];
      for (size_t k = 0; k < tensor.slots.size(); ++k) {
        const bool copies = tensor.slots[k].placement == Placement::per_rank;
        for (int64_t copy = copies ? 0 : -1; copy < (copies ? section.rank_count : 0); ++copy) {
          add({static_cast<int64_t>(s), static_cast<int64_t>(t), static_cast<int64_t>(k), copy, {}}, entry_count(tensor, tensor.slots[k]));
        }
      }
    }
  }
  for (size_t e = 0; e < description.extras.size(); ++e) {
    const SavedExtra &extra = description.extras[e];
    const bool copies = extra.scope == Scope::each;
    for (int64_t copy = copies ? 0 : -1; copy < (copies ? description.rank_count : 0); ++copy) {
      add({-1, static_cast<int64_t>(e), -1, copy, {}}, shape_count(extra.shape));
    }
  }
  return wanted;
}

/// The parts of all ranks, which threads or processes would do at the same time.
class Saving {
 public:
  Saving(const Folder &saves, const SaveDescription &description, const std::vector<int64_t> &model_writers, const SampleOptions &options)
      : saves_(saves), description_(description), model_writers_(model_writers), options_(options),
        name_(save_name(description.step, description.id)) {}

  SampleSaved run() {
    SampleSaved saved;
    saved.name = name_;
    as_rank(0);
    const bool sync = options_.stream.sync;
    saved.status = create_save(saves_, name_, sync);
    if (!saved.status.ok()) return saved;
    Manifest manifest;
    saved.status = write(&manifest);
    as_rank(0);
    if (saved.status.ok()) saved.status = commit_save(saves_, name_, manifest, sync, &saved.maybe);
    saved.committed = saved.status.ok();
    if (!saved.status.ok() && !saved.maybe) clean_up();
    if (!saved.committed) return saved;
    if (options_.acknowledged) options_.acknowledged();
    RotateCounts counts;
    if (options_.rotate) static_cast<void>(rotate_saves(saves_, name_, manifest, options_.keep, sync, &counts));
    return saved;
  }

 private:
  void as_rank(int64_t rank) {
    if (options_.as_rank) options_.as_rank(static_cast<int>(rank));
  }

  /// A step of every rank, then a vote: the first error is everybody's.
  template <class Step>
  Status all_ranks(Step step) {
    std::vector<Status> results(static_cast<size_t>(description_.rank_count));
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < description_.rank_count; ++rank) {
      as_rank(rank);
      const auto work = [&, rank] { results[static_cast<size_t>(rank)] = step(rank); };
      if (options_.threads) {
        threads.emplace_back(work);
      } else {
        work();
      }
    }
    for (std::thread &thread : threads) thread.join();
    for (const Status &result : results) ZERO_TRY(result);
    return {};
  }

  Status write(Manifest *manifest) {
    SampleSource source(description_);
    for (int64_t rank = 0; rank < description_.rank_count; ++rank) {
      writers_.push_back(
          std::make_unique<SaveWriter>(description_, SaveWriter::files_of(description_, model_writers_, rank), options_.stream));
    }
    const auto writer = [&](int64_t rank) -> SaveWriter & { return *writers_[static_cast<size_t>(rank)]; };
    const auto prepare = [&](int64_t rank) {
      const Status opened = writer(rank).open(saves_, name_, 0);
      return opened.ok() ? writer(rank).preallocate() : opened;
    };
    ZERO_TRY(all_ranks(prepare));
    ZERO_TRY(all_ranks([&](int64_t rank) { return writer(rank).write(source, nullptr); }));
    manifest->description = description_;
    manifest->files.resize(static_cast<size_t>(FilePlan(description_).file_count()));
    for (const auto &one : writers_) {
      for (const FileReport &report : one->reports()) manifest->files[static_cast<size_t>(report.file)] = report;
    }
    return {};
  }

  void clean_up() {
    for (int64_t rank = 0; rank < static_cast<int64_t>(writers_.size()); ++rank) {
      as_rank(rank);
      writers_[static_cast<size_t>(rank)]->remove();
    }
    as_rank(0);
    remove_save(saves_, name_);
  }

  const Folder &saves_;
  const SaveDescription &description_;
  const std::vector<int64_t> &model_writers_;
  const SampleOptions &options_;
  const std::string name_;
  std::vector<std::unique_ptr<SaveWriter>> writers_;
};

}  // namespace

SaveDescription sample_description(const SampleShape &shape, uint64_t step, const std::string &run_id) {
  SaveDescription description;
  description.step = step;
  description.run_id = run_id;
  if (!make_save_id(run_id, &description.id).ok()) description.id = run_id;
  description.created = "2026-01-01T00:00:00Z";
  description.library = "libzero tests";
  description.rank_count = shape.ranks;
  description.texts = {{"note", "step \"" + std::to_string(step) + "\" \xc3\xa4"}};
  description.sections.push_back(make_optimizer(shape));
  if (!shape.minimal) description.sections.push_back(make_buffer(shape));
  if (shape.extras) {
    description.extras = {{"mask", DiskType::u8, {shape.scale * 70}, Scope::one}, {"loader", DiskType::i64, {5}, Scope::each}};
  }
  return description;
}

void sample_bytes(uint64_t step, const std::string &name, int64_t copy, int64_t offset, std::span<std::byte> out) {
  const uint64_t seed = hash_of_text(name, step * 1000003 + static_cast<uint64_t>(copy + 1));
  uint64_t word = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const uint64_t at = static_cast<uint64_t>(offset) + i;
    if (i == 0 || at % 8 == 0) {
      word = (seed ^ (at / 8)) * 0x9e3779b97f4a7c15ULL;
      word ^= word >> 29;
    }
    out[i] = static_cast<std::byte>(word >> (at % 8 * 8));
  }
}

Status SampleSource::copy(const EntrySource &entry, int64_t offset, std::span<std::byte> out) {
  const int64_t each = entry_nbytes(description_, entry.section, entry.tensor, entry.slot);
  sample_bytes(description_.step, name_of(description_, entry.section, entry.tensor, entry.slot), copy_of(description_, entry),
               entry.begin * each + offset, out);
  return {};
}

SampleSaved save_sample(const Folder &saves, const SaveDescription &description, const std::vector<int64_t> &model_writers,
                        const SampleOptions &options) {
  return Saving(saves, description, model_writers, options).run();
}

SampleSaved save_sample(const Folder &saves, const SampleShape &shape, uint64_t step, const SampleOptions &options) {
  SaveDescription description = sample_description(shape, step);
  std::vector<int64_t> writers;
  assign_model_files(&description, kMostModelFile, &writers);
  const Status checked = check_description(description);
  if (!checked.ok()) return {checked, {}};
  return save_sample(saves, description, writers, options);
}

Status compare_sample(const Folder &saves, const std::string &name, const Manifest &manifest, int64_t ranks, const StreamOptions &options) {
  const std::vector<Wanted> wanted = want_all(manifest.description, ranks);
  int64_t nbytes = 0;
  for (const Wanted &want : wanted) {
    nbytes += want.entries.count() * entry_nbytes(manifest.description, want.section, want.tensor, want.slot);
  }
  SaveReader reader(manifest, options);
  ZERO_TRY(reader.open(saves, name, 0));
  ComparingSink sink(manifest.description);
  ZERO_TRY(reader.read(wanted, sink, nullptr));
  ZERO_CHECK(sink.nbytes == nbytes, ZERO_E_INTERNAL, "%lld bytes came, expected %lld", lld(sink.nbytes), lld(nbytes));
  return {};
}

}  // namespace zero::tests
