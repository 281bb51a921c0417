/// @file A load of plain safetensors, step by step: all ranks read the headers, and each reads the
/// values of its own cuts.
#include "checkpoint/tensor_files.h"
#include "core/hash.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/saved_names.h"
#include "engine/checkpoint/votes.h"

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zero {
namespace {

using checkpoint::DiskType;
using checkpoint::SavedSlot;
using checkpoint::SavedTensor;
using checkpoint::TensorFiles;
using checkpoint::Wanted;

constexpr std::string_view kScaleSuffix = ":param_scale";

/// Plain files as a save's description: one section, in which each tensor has the slot "param" and,
/// of 8-bit codes, their scales.
class PlainDescription {
 public:
  Status make(const TensorFiles &files) {
    checkpoint::Section section;
    section.kind = "optimizer";
    for (size_t at = 0; at < files.tensors().size(); ++at) ZERO_TRY(add(files, static_cast<int64_t>(at), &section));
    for (const auto &[second, first] : files.metadata()) add_tie(files, second, first, &section);
    save_.sections.push_back(std::move(section));
    return {};
  }

  const checkpoint::SaveDescription &save() const { return save_; }
  const LoadedFrom &from() const { return from_; }
  LoadedFrom &from() { return from_; }
  int64_t plain_tensor(const Wanted &wanted) const { return places_[static_cast<size_t>(wanted.tensor)][static_cast<size_t>(wanted.slot)]; }
  int64_t entry_nbytes(const Wanted &wanted) const {
    return checkpoint::disk_type_nbytes(save_.sections[0].tensors[static_cast<size_t>(wanted.tensor)].slots[static_cast<size_t>(wanted.slot)].type);
  }

 private:
  static int64_t scales_of(const TensorFiles &files, const checkpoint::Entry &entry) {
    return entry.type == DiskType::f8_e4m3 ? files.find(entry.name + std::string(kScaleSuffix)) : -1;
  }

  static bool is_scale(const TensorFiles &files, const checkpoint::Entry &entry) {
    if (!entry.name.ends_with(kScaleSuffix)) return false;
    const int64_t codes = files.find(entry.name.substr(0, entry.name.size() - kScaleSuffix.size()));
    return codes >= 0 && files.tensors()[static_cast<size_t>(codes)].entry.type == DiskType::f8_e4m3;
  }

  Status add(const TensorFiles &files, int64_t at, checkpoint::Section *section) {
    const checkpoint::PlainTensor &plain = files.tensors()[static_cast<size_t>(at)];
    const checkpoint::Entry &entry = plain.entry;
    if (is_scale(files, entry)) return {};
    SavedTensor tensor;
    tensor.name = entry.name;
    tensor.shape = entry.shape;
    const std::optional<DType> dtype = checkpoint::dtype_of(entry.type);
    tensor.facts[SavedState::kDtype] = dtype.has_value() ? dtype_name(*dtype) : checkpoint::disk_type_name(entry.type);
    tensor.slots.push_back(slot("param", entry.type, 1));
    const int64_t scales = scales_of(files, entry);
    if (scales >= 0) {
      const checkpoint::Entry &found = files.tensors()[static_cast<size_t>(scales)].entry;
      const int64_t expected = (entry.count() + kLine - 1) / kLine;
      ZERO_CHECK(found.type == DiskType::f32 && found.count() == expected, ZERO_E_CHECKPOINT,
                 "%s: tensor %.100s has %lld elements of %s, but the codes that it scales need %lld of F32", files.path_of(plain.file).c_str(),
                 found.name.c_str(), lld(found.count()), checkpoint::disk_type_name(found.type), lld(expected));
      tensor.slots.push_back(slot("param_scale", DiskType::f32, kLine));
    }
    places_.push_back({at, scales});
    from_.of_tensor.push_back(files.path_of(plain.file));
    section->tensors.push_back(std::move(tensor));
    return {};
  }

  /// Writers that store shared tensors once name the others in the metadata: "second name": "first
  /// name".
  void add_tie(const TensorFiles &files, const std::string &second, const std::string &first, checkpoint::Section *section) {
    if (files.find(second) >= 0 || files.find(first) < 0) return;
    SavedTensor tensor;
    tensor.name = second;
    tensor.tied_to = first;
    places_.push_back({-1, -1});
    from_.of_tensor.push_back(from_.all);
    section->tensors.push_back(std::move(tensor));
  }

  static SavedSlot slot(const char *name, DiskType type, int64_t per) {
    SavedSlot slot;
    slot.name = name;
    slot.type = type;
    slot.per = per;
    slot.placement = checkpoint::Placement::whole;
    return slot;
  }

  checkpoint::SaveDescription save_;
  LoadedFrom from_;
  std::vector<std::array<int64_t, 2>> places_;  ///< by tensor and slot, the tensor in the files
};

/// Hands what is read to the sink of a load.
class WantedSink final : public checkpoint::PlainSink {
 public:
  WantedSink(std::span<const Wanted> wanted, checkpoint::BlockSink &sink) : wanted_(wanted), sink_(sink) {}
  Status take(const checkpoint::PlainRange &range, int64_t offset, std::span<const std::byte> data) override {
    return sink_.take(wanted_[static_cast<size_t>(range.user)], offset, data);
  }

 private:
  const std::span<const Wanted> wanted_;
  checkpoint::BlockSink &sink_;
};

/// The same on all ranks, if they see the same files.
std::string text_of(const TensorFiles &files) {
  std::string text;
  for (const checkpoint::PlainTensor &tensor : files.tensors()) {
    text += files.path_of(tensor.file) + " " + tensor.entry.name + " " + checkpoint::disk_type_name(tensor.entry.type) + " " +
            shape_text(tensor.entry.shape) + " " + std::to_string(tensor.entry.offset) + "\n";
  }
  char hash[24];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(hash_of_text(text)));
  return std::to_string(files.tensors().size()) + " tensors with headers of hash " + hash;
}

}  // namespace

struct Checkpoint::PlainJob final : FileJob {
  ~PlainJob() override {
    if (work != nullptr) work->end();
  }

  std::string path;
  TensorFiles files;
  PlainDescription description;
  LoadPlan plan;
  std::unique_ptr<checkpoint::TensorReader> reader;

  Status open() {
    ZERO_TRY(TensorFiles::open(path, &files));
    description.from().all = path;
    return description.make(files);
  }

  Status read(std::span<const Wanted> wanted, checkpoint::BlockSink &sink) {
    std::vector<checkpoint::PlainRange> ranges;
    for (size_t at = 0; at < wanted.size(); ++at) {
      const int64_t each = description.entry_nbytes(wanted[at]);
      ranges.push_back({description.plain_tensor(wanted[at]), wanted[at].entries.begin * each, wanted[at].entries.count() * each,
                        static_cast<int64_t>(at)});
    }
    WantedSink to(wanted, sink);
    ZERO_TRY(reader->read(ranges, to, work.get()));
    return work->advance(0);  // work that was given up stores nothing any more
  }
};

Task Checkpoint::load_plain(std::string path, int32_t part, zero_checkpoint_result *out) {
  Status fits;
  if (part != ZERO_PART_PARAMS) {
    fits = Status::error(ZERO_E_INVALID_ARGUMENT, "%s is no save: plain safetensors hold parameters alone; load them with ZERO_PART_PARAMS",
                         path.c_str());
  }
  ZERO_CO_AWAIT(agree(std::move(fits)));
  const auto job = std::make_shared<PlainJob>();
  job->owner = shared_from_this();
  job->path = std::move(path);
  ZERO_CO_AWAIT(open_plain(job));
  ZERO_CO_AWAIT(read_plain(job));
  // The last vote: nothing may fail behind it.
  Status taken = co_await take_over_plain();
  ZERO_CO_AWAIT(agree(std::move(taken)));
  fill_plain_result(*job, out);
  out->step = things_.step();
  skipped_ = std::move(job->plan.skipped);
  co_return Status();
}

/// Each rank reads the headers, and plans.
Task Checkpoint::open_plain(std::shared_ptr<PlainJob> job) {
  PlainJob *mine = job.get();
  ZERO_CO_AWAIT(run_files(job, [mine] { return mine->open(); }));
  ZERO_CO_AWAIT(agree_on_given("the files that ranks find", text_of(mine->files)));
  Status planned = plan_load(things_, renames_, settings_, ZERO_PART_PARAMS, mine->description.save(), mine->description.from(), &mine->plan);
  co_return co_await agree(std::move(planned));
}

Task Checkpoint::read_plain(std::shared_ptr<PlainJob> job) {
  PlainJob *mine = job.get();
  mine->reader = std::make_unique<checkpoint::TensorReader>(mine->files, settings_.stream);
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) each.state.begin_load();
  mine->start(run_->bell, [mine]() -> Status {
    const auto read = [mine](std::span<const Wanted> wanted, checkpoint::BlockSink &sink) { return mine->read(wanted, sink); };
    for (const EqualValues &equal : mine->plan.equal) ZERO_TRY(check_equal(read, equal, mine->path));
    for (const LoadedValues &values : mine->plan.values) ZERO_TRY(load_values(read, values));
    return {};
  });
  Status status = co_await job->attend(votes(), settings_.progress_ms);
  co_return co_await agree(std::move(status));
}

Task Checkpoint::take_over_plain() {
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_CO_AWAIT(each.state.finish_load(nullptr, false));
  co_return Status();
}

void Checkpoint::fill_plain_result(const PlainJob &job, zero_checkpoint_result *out) {
  *out = {};
  out->struct_size = sizeof *out;
  const checkpoint::StreamCounts &counts = job.reader->counts();
  out->nbytes = counts.nbytes;
  out->file_count = job.files.file_count();
  out->write_ns = counts.copy_ns + counts.wait_ns;
  out->direct = counts.direct ? 1 : 0;
  out->missing = job.plan.missing;
  out->extra = job.plan.extra;
  out->converted = job.plan.converted;
}

}  // namespace zero
