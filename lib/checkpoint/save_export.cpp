/// @file From a save to plain safetensors.
#include "checkpoint/save_export.h"

#include "checkpoint/export.h"
#include "checkpoint/save_reader.h"

#include <cstring>
#include <string_view>
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

class MemorySink final : public BlockSink {
 public:
  explicit MemorySink(std::span<std::byte> out) : out_(out) {}
  Status take(const Wanted &, int64_t offset, std::span<const std::byte> data) override {
    std::memcpy(out_.data() + offset, data.data(), data.size());
    return {};
  }

 private:
  const std::span<std::byte> out_;
};

/// Reads what the writer asks for.
class SavedSource final : public ExportSource {
 public:
  SavedSource(const std::vector<Exported> &all, SaveReader &reader) : all_(all), reader_(reader) {}

  Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) override {
    const Exported &exported = all_[static_cast<size_t>(tensor)];
    const int64_t each = disk_type_nbytes(exported.tensor.type);
    Wanted wanted = exported.wanted;
    wanted.entries = {offset / each, (offset + static_cast<int64_t>(out.size())) / each};
    MemorySink sink(out);
    return reader_.read({&wanted, 1}, sink, nullptr);
  }

 private:
  const std::vector<Exported> &all_;
  SaveReader &reader_;
};

}  // namespace

bool is_exported(const Section &section, const SavedSlot &slot) {
  return section.kind == "optimizer" && (slot.name == "param" || slot.name == "param_scale");
}

Status export_save(const OpenedSave &save, const std::string &path, int64_t most_nbytes, const StreamOptions &options, Progress *progress,
                   int64_t *out_tensors) {
  const std::vector<Exported> all = exported_of(save.manifest.description);
  ZERO_CHECK(!all.empty(), ZERO_E_INVALID_ARGUMENT, "%s holds no parameters to export", save.saves.path_of(save.name).c_str());
  std::vector<ExportTensor> tensors;
  for (const Exported &one : all) tensors.push_back(one.tensor);
  SaveReader reader(save.manifest, options);
  ZERO_TRY(reader.open(save.saves, save.name, 0));
  const ExportPlan plan = plan_export(path, std::move(tensors), 1, most_nbytes);
  ZERO_TRY(begin_export(plan));
  SavedSource source(all, reader);
  for (size_t file = 0; file < plan.files.size(); ++file) {
    ZERO_TRY(write_export(plan, static_cast<int64_t>(file), {{"format", "pt"}}, options, source, progress));
  }
  ZERO_TRY(end_export(plan));
  *out_tensors = static_cast<int64_t>(all.size());
  return {};
}

}  // namespace zero::checkpoint
