/// @file A load, step by step: the newest valid save, what of it this rank reads, its bytes, and
/// what becomes of them.
#include "checkpoint/save_reader.h"
#include "checkpoint/saves.h"
#include "checkpoint/tensor_files.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/votes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

namespace zero {
namespace {

constexpr const char *kLoadCall = "zero_checkpoint_load";

/// Bytes that are copied, to where they belong.
class CopySink final : public checkpoint::BlockSink {
 public:
  CopySink(const std::vector<LoadTarget> &targets, FileWork &work) : targets_(targets), work_(work) {}
  Status take(const checkpoint::Wanted &wanted, int64_t offset, std::span<const std::byte> data) override {
    // Abandoned work no longer writes to memory of the caller.
    ZERO_TRY(work_.advance(0));
    const LoadTarget &target = targets_[static_cast<size_t>(wanted.user)];
    if (target.state != nullptr) return target.state->store(target.id, target.slot, wanted.entries.begin + offset / target.entry_nbytes, data);
    if (!data.empty()) std::memcpy(target.memory + offset, data.data(), data.size());
    return {};
  }

 private:
  const std::vector<LoadTarget> &targets_;
  FileWork &work_;
};

}  // namespace

struct Checkpoint::LoadJob final : FileJob {
  ~LoadJob() override {
    if (work != nullptr) work->end();
  }

  std::string folder;
  int32_t part = ZERO_PART_ALL;
  bool plain = false;  ///< rank 0: the folder holds plain files, or is one
  Folder saves;
  std::string name;
  std::vector<std::byte> bytes;  ///< the manifest's
  checkpoint::Manifest manifest;
  bool one_save = false;  ///< the folder is a save itself
  int64_t fallback = 0;
  LoadPlan plan;
  std::unique_ptr<checkpoint::SaveReader> reader;
  int64_t retry_ms = 0;
  std::vector<std::vector<SavedScalars>> scalars;  ///< by optimizer, of all its sets of states
};

Task Checkpoint::load(std::string folder, int32_t part, void *stream, zero_checkpoint_result *out, int64_t *out_found) {
  run_->begin(*things_.group());
  return guarded(ordered(load_body(std::move(folder), part, out, out_found), stream), std::make_shared<Busy>(*this));
}

Status Checkpoint::check_load(const std::string &folder, int32_t part) const {
  ZERO_CHECK(!folder.empty(), ZERO_E_INVALID_ARGUMENT, "folder is \"\", but must name a folder of saves, or a save");
  ZERO_CHECK(part == ZERO_PART_ALL || part == ZERO_PART_PARAMS, ZERO_E_INVALID_ARGUMENT, "part is %d, but must be a zero_part (0, 1)", part);
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_TRY(each.state.check_load(kLoadCall));
  return {};
}

Task Checkpoint::load_body(std::string folder, int32_t part, zero_checkpoint_result *out, int64_t *out_found) {
  ZERO_CO_AWAIT(open_votes(Caller::load));
  ZERO_CO_AWAIT(agree(check_load(folder, part)));
  Status settled = co_await settle();
  ZERO_CO_AWAIT(agree(std::move(settled)));
  const std::string given = "folder " + folder + ", part " + std::to_string(part) + "\n" + things_.text();
  ZERO_CO_AWAIT(agree_on_given("folders, parts or lists of zero_checkpoint_load", given));
  const auto job = std::make_shared<LoadJob>();
  job->owner = shared_from_this();
  job->folder = std::move(folder);
  job->part = part;
  bool plain = false;
  ZERO_CO_AWAIT(find_plain(job, &plain));
  if (plain) co_return co_await load_plain(std::move(job->folder), part, out);
  job->retry_ms = std::min<int64_t>(settings_.progress_ms, 60'000);
  Status status;
  for (int64_t index = 0;; ++index) {
    Status found = co_await find_save(job, index);
    // Behind a damaged save the error is that of the newest, unless there is an older one that is
    // whole.
    if (index > 0 && is_agreed(found)) {
      agreed_ = status;
      co_return status;
    }
    if (found.code() == ZERO_E_NOT_FOUND && out_found != nullptr) {
      *out_found = 0;
      co_return Status();
    }
    ZERO_CO_TRY(found);
    bool damaged = false;
    status = co_await read_save(job, &damaged);
    if (status.ok() || !damaged || job->one_save) break;
  }
  ZERO_CO_TRY(status);
  // The last vote: nothing may fail behind it.
  Status taken = co_await take_over(*job);
  ZERO_CO_AWAIT(agree(std::move(taken)));
  fill_result(*job, out);
  if (out_found != nullptr) *out_found = 1;
  co_return Status();
}

void Checkpoint::fill_result(const LoadJob &job, zero_checkpoint_result *out) {
  *out = {};
  out->struct_size = sizeof *out;
  out->step = static_cast<int64_t>(job.manifest.description.step);
  const checkpoint::StreamCounts &counts = job.reader->counts();
  out->nbytes = counts.nbytes;
  out->file_count = std::ssize(job.manifest.files);
  out->write_ns = counts.copy_ns + counts.wait_ns;
  out->direct = counts.direct ? 1 : 0;
  out->missing = job.plan.missing;
  out->extra = job.plan.extra;
  out->converted = job.plan.converted;
  out->fallback = job.fallback;
}

/// Rank 0 looks.
Task Checkpoint::find_plain(std::shared_ptr<LoadJob> job, bool *out) {
  LoadJob *mine = job.get();
  std::function<Status()> looks;
  if (votes().rank() == 0) looks = [mine] { return checkpoint::is_plain(mine->folder, &mine->plain); };
  ZERO_CO_AWAIT(run_files(job, std::move(looks)));
  const int64_t word = mine->plain ? 1 : 0;
  std::vector<int64_t> all;
  ZERO_CO_AWAIT(gather_words(votes(), {&word, 1}, &all));
  *out = all[0] != 0;
  co_return Status();
}

/// Rank 0 searches, and the others open the save by the name that it sends.
Task Checkpoint::find_save(std::shared_ptr<LoadJob> job, int64_t index) {
  Group &group = votes();
  LoadJob *mine = job.get();
  std::function<Status()> finds;
  if (group.rank() == 0) {
    finds = [mine, index]() -> Status {
      ZERO_TRY(checkpoint::open_saves(mine->folder, &mine->saves, &mine->name));
      mine->one_save = !mine->name.empty();
      if (mine->one_save) return checkpoint::read_manifest(mine->saves, mine->name, true, &mine->bytes, &mine->manifest);
      checkpoint::FoundSave save;
      ZERO_TRY(checkpoint::find_save(mine->saves, index, &save));
      mine->name = std::move(save.name);
      mine->bytes = std::move(save.bytes);
      mine->manifest = std::move(save.manifest);
      mine->fallback = save.passed_over + index;
      return {};
    };
  }
  ZERO_CO_AWAIT(run_files(job, std::move(finds)));
  ZERO_CO_AWAIT(broadcast_text(group, &mine->name, 0));
  ZERO_CO_AWAIT(broadcast_bytes(group, &mine->bytes, 0));
  const std::array<int64_t, 2> words = {mine->one_save ? 1 : 0, mine->fallback};
  std::vector<int64_t> all;
  ZERO_CO_AWAIT(gather_words(group, words, &all));
  mine->one_save = all[0] != 0;
  mine->fallback = all[1];
  std::function<Status()> decodes;
  if (group.rank() != 0) {
    decodes = [mine]() -> Status {
      std::string own_name;
      ZERO_TRY(checkpoint::open_saves(mine->folder, &mine->saves, &own_name));
      return checkpoint::decode_manifest(mine->bytes, mine->name, &mine->manifest);
    };
  }
  co_return co_await run_files(job, std::move(decodes));
}

/// *out_damaged: the files are not what the manifest says, so that an older save may be taken.
Task Checkpoint::read_save(std::shared_ptr<LoadJob> job, bool *out_damaged) {
  LoadJob *mine = job.get();
  const checkpoint::SaveDescription &description = mine->manifest.description;
  mine->plan = {};
  Status planned = plan_load(things_, renames_, settings_, mine->part, description, {}, &mine->plan);
  mine->scalars.assign(things_.optimizers().size(), {});
  for (size_t number = 0; planned.ok() && mine->part == ZERO_PART_ALL && number < mine->scalars.size(); ++number) {
    std::vector<SavedScalars> &of_sets = mine->scalars[number];
    for (const int64_t section : mine->plan.sets[number]) {
      of_sets.emplace_back();
      if (planned.ok()) planned = SavedState::read_scalars(description.sections[static_cast<size_t>(section)].facts, &of_sets.back());
      if (!mine->plan.gradients_copied[number]) of_sets.back().gradient_scale = 0;
    }
  }
  ZERO_CO_AWAIT(agree(std::move(planned)));
  mine->reader = std::make_unique<checkpoint::SaveReader>(mine->manifest, settings_.stream);
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) each.state.begin_load();
  mine->start(run_->bell, [mine]() -> Status {
    CopySink sink(mine->plan.targets, *mine->work);
    ZERO_TRY(mine->reader->open(mine->saves, mine->name, mine->retry_ms));
    ZERO_TRY(mine->reader->read(mine->plan.copied, sink, mine->work.get()));
    const auto read = [mine](std::span<const checkpoint::Wanted> wanted, checkpoint::BlockSink &to) -> Status {
      ZERO_TRY(mine->reader->read(wanted, to, mine->work.get()));
      return mine->work->advance(0);  // as CopySink
    };
    for (const EqualValues &equal : mine->plan.equal) ZERO_TRY(check_equal(read, equal, "the save"));
    for (const LoadedValues &values : mine->plan.values) ZERO_TRY(load_values(read, values));
    return {};
  });
  Status status = co_await job->attend(votes(), settings_.progress_ms);
  status = co_await agree(std::move(status));
  *out_damaged = status.code() == ZERO_E_CHECKPOINT;
  co_return status;
}

Task Checkpoint::take_over(LoadJob &job) {
  const checkpoint::SaveDescription &description = job.manifest.description;
  const bool all = job.part == ZERO_PART_ALL;
  for (const LoadedCarried &each : job.plan.carried) each.state->note_written(each.loss_scale);
  for (size_t number = 0; number < things_.optimizers().size(); ++number) {
    const SavedState &state = things_.optimizers()[number].state;
    for (size_t set = 0; all && set < state.sets().size(); ++set) {
      const auto section = static_cast<size_t>(job.plan.sections[number]);
      ZERO_CO_TRY(state.store_hyper(static_cast<int64_t>(set), description.sections[section].facts));
    }
    const SavedScalars *scalars = nullptr;
    if (all) {
      const std::vector<SavedScalars> &of_sets = job.scalars[number];
      scalars = &of_sets[static_cast<size_t>(state.state_set()) % of_sets.size()];
      ZERO_CO_TRY(state.store_outer(description.sections[static_cast<size_t>(job.plan.sections[number])].facts));
      state.store_counts(of_sets);
    }
    ZERO_CO_AWAIT(state.finish_load(scalars, job.plan.counts_copied[number]));
  }
  skipped_ = std::move(job.plan.skipped);
  if (!all) co_return Status();
  things_.texts() = std::move(job.manifest.description.texts);
  run_->run_id = std::move(job.manifest.description.run_id);
  run_->previous_id = std::move(job.manifest.description.id);
  co_return Status();
}

}  // namespace zero
