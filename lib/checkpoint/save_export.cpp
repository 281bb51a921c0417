/// @file From a save to plain safetensors.
#include "checkpoint/save_export.h"

#include "checkpoint/export.h"
#include "checkpoint/save_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace zero::checkpoint {
namespace {

struct Exported {
  ExportTensor tensor;
  Wanted wanted;
};

std::vector<Exported> exported_of(const SaveDescription &description) {
  std::vector<Exported> all;
  for (size_t s = 0; s < description.sections.size(); ++s) {
    const Section &section = description.sections[s];
    for (size_t t = 0; t < section.tensors.size(); ++t) {
      const SavedTensor &tensor = section.tensors[t];
      for (size_t k = 0; k < tensor.slots.size(); ++k) {
        const SavedSlot &slot = tensor.slots[k];
        if (!is_exported(section, slot)) continue;
        const int64_t count = entry_count(tensor, slot);
        const bool shaped = slot.name == "param";
        all.push_back({{section.prefix + tensor.name + (shaped ? "" : ":" + slot.name), slot.type, shaped ? tensor.shape : std::vector<int64_t>{count}},
                       {static_cast<int64_t>(s), static_cast<int64_t>(t), static_cast<int64_t>(k), -1, {}}});
      }
    }
  }
  return all;
}

/// Parts of a batch, one after another in memory.
class BatchSink final : public BlockSink {
 public:
  explicit BatchSink(std::span<std::byte> out) : out_(out) {}
  Status take(const Wanted &wanted, int64_t offset, std::span<const std::byte> data) override {
    std::memcpy(out_.data() + wanted.user + offset, data.data(), data.size());
    return {};
  }

 private:
  const std::span<std::byte> out_;
};

/// Reads ahead of the writer, which asks for all bytes of a file in order. Each read lists all
/// tensors of a file of the save, so one read serves many tensors.
class SavedSource final : public ExportSource {
 public:
  SavedSource(const std::vector<Exported> &all, const ExportPlan &plan, SaveReader &reader) : all_(all), plan_(plan), reader_(reader) {}

  void begin_file(int64_t file) {
    order_ = plan_.files[static_cast<size_t>(file)].tensors;
    next_ = 0;
    next_offset_ = 0;
    batch_.clear();
    taken_ = 0;
  }

  Status copy(int64_t, int64_t, std::span<std::byte> out) override {
    while (!out.empty()) {
      if (taken_ == batch_.size()) ZERO_TRY(read_batch());
      const size_t nbytes = std::min(out.size(), batch_.size() - taken_);
      ZERO_CHECK(nbytes > 0, ZERO_E_INTERNAL, "a read goes past the last byte of an export");
      std::memcpy(out.data(), batch_.data() + taken_, nbytes);
      taken_ += nbytes;
      out = out.subspan(nbytes);
    }
    return {};
  }

 private:
  static constexpr int64_t kBatchNbytes = 16 << 20;

  Status read_batch() {
    std::vector<Wanted> wanted;
    int64_t nbytes = 0;
    while (next_ < order_.size() && nbytes < kBatchNbytes) {
      const Exported &exported = all_[static_cast<size_t>(order_[next_])];
      const int64_t each = disk_type_nbytes(exported.tensor.type);
      const int64_t whole = shape_count(exported.tensor.shape) * each;
      const int64_t part = std::min(whole - next_offset_, kBatchNbytes - nbytes);
      if (part > 0) {
        wanted.push_back(exported.wanted);
        wanted.back().entries = {next_offset_ / each, (next_offset_ + part) / each};
        wanted.back().user = nbytes;
      }
      nbytes += part;
      next_offset_ += part;
      if (next_offset_ < whole) continue;
      ++next_;
      next_offset_ = 0;
    }
    batch_.resize(static_cast<size_t>(nbytes));
    taken_ = 0;
    BatchSink sink(batch_);
    return reader_.read(wanted, sink, nullptr);
  }

  const std::vector<Exported> &all_;
  const ExportPlan &plan_;
  SaveReader &reader_;
  std::vector<int64_t> order_;
  size_t next_ = 0;  ///< position in the order of the next batch
  int64_t next_offset_ = 0;
  std::vector<std::byte> batch_;
  size_t taken_ = 0;
};

std::map<std::string, std::string> ties_of(const SaveDescription &description) {
  std::map<std::string, std::string> ties;
  for (const Section &section : description.sections) {
    for (const SavedTensor &tensor : section.tensors) {
      if (!tensor.tied_to.empty()) ties.emplace(section.prefix + tensor.name, section.prefix + tensor.tied_to);
    }
  }
  return ties;
}

Status write_all(const ExportPlan &plan, const std::map<std::string, std::string> &metadata, const StreamOptions &options, SavedSource &source,
                 Progress *progress) {
  for (size_t file = 0; file < plan.files.size(); ++file) {
    source.begin_file(static_cast<int64_t>(file));
    ZERO_TRY(write_export(plan, static_cast<int64_t>(file), metadata, options, source, progress));
  }
  return end_export(plan, options);
}

}  // namespace

bool is_exported(const Section &section, const SavedSlot &slot) {
  return section.kind == "optimizer" && (slot.name == "param" || slot.name == "param_scale");
}

Status export_save(const OpenedSave &save, const std::string &path, int64_t most_nbytes, const StreamOptions &options, Progress *progress) {
  const std::vector<Exported> all = exported_of(save.manifest.description);
  ZERO_CHECK(!all.empty(), ZERO_E_INVALID_ARGUMENT, "%s holds no parameters to export", save.saves.path_of(save.name).c_str());
  std::vector<ExportTensor> tensors;
  for (const Exported &one : all) tensors.push_back(one.tensor);
  SaveReader reader(save.manifest, options);
  ZERO_TRY(reader.open(save.saves, save.name, 0));
  const ExportPlan plan = plan_export(path, std::move(tensors), 1, most_nbytes);
  bool made = false;
  ZERO_TRY(begin_export(plan, &made));
  SavedSource source(all, plan, reader);
  Status status = write_all(plan, export_metadata(ties_of(save.manifest.description)), options, source, progress);
  if (!status.ok()) discard_export(plan, made);
  return status;
}

}  // namespace zero::checkpoint
