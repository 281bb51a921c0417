/// @file An export of parameters, step by step: what is written, the files of each rank, their
/// names and index.
#include "checkpoint/export.h"
#include "core/choice.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/exported.h"
#include "engine/checkpoint/votes.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

namespace zero {
namespace {

constexpr const char *kExportCall = "zero_checkpoint_export";

}  // namespace

struct Checkpoint::ExportJob final : FileJob {
  ~ExportJob() override {
    if (work != nullptr) work->end();
  }

  std::string path;
  checkpoint::SaveDescription description;
  ExportedTensors exported;
  checkpoint::ExportPlan plan;
  std::vector<int64_t> files;  ///< this rank's
  std::unique_ptr<ExportedSource> source;
  checkpoint::StreamOptions options;
  checkpoint::StreamCounts counts;
  bool made = false;  ///< rank 0: the folder

  Status write() {
    const auto metadata = checkpoint::export_metadata(exported.ties);
    for (const int64_t file : files) ZERO_TRY(checkpoint::write_export(plan, file, metadata, options, *source, work.get(), &counts));
    return {};
  }
};

Task Checkpoint::export_params(std::string path, int32_t dtype, void *stream, zero_checkpoint_result *out) {
  run_->begin(*things_.group());
  return guarded(ordered(export_body(std::move(path), dtype, out), stream), std::make_shared<Busy>(*this));
}

Status Checkpoint::check_export(const std::string &path, int32_t dtype) const {
  ZERO_CHECK(!path.empty(), ZERO_E_INVALID_ARGUMENT, "path is \"\", but must name a folder or a .safetensors file");
  ZERO_TRY(check_choice(kExportDtypes, dtype, "dtype"));
  ZERO_CHECK(!things_.optimizers().empty(), ZERO_E_INVALID_ARGUMENT, "the checkpoint has no optimizer, whose parameters %s writes", kExportCall);
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_TRY(each.state.check_save(kExportCall));
  return {};
}

Task Checkpoint::export_body(std::string path, int32_t dtype, zero_checkpoint_result *out) {
  ZERO_CO_AWAIT(open_votes(Caller::export_params));
  ZERO_CO_AWAIT(agree(check_export(path, dtype)));
  Status settled = co_await settle();
  ZERO_CO_AWAIT(agree(std::move(settled)));
  const std::string given = "path " + path + ", dtype " + std::to_string(dtype) + ", step " + std::to_string(things_.step()) + "\n" +
                            things_.text();
  ZERO_CO_AWAIT(agree_on_given("paths, dtypes, steps or lists of zero_checkpoint_export", given));
  const auto job = std::make_shared<ExportJob>();
  job->owner = shared_from_this();
  job->path = std::move(path);
  job->options = settings_.stream;
  things_.describe(true, &job->description);
  list_exported(job->description, dtype, &job->exported);
  ZERO_CO_AWAIT(begin_export(job));
  Status status = co_await write_export(job);
  if (status.ok()) status = co_await end_export(job);
  if (is_agreed(status)) ZERO_CO_AWAIT(discard_export(job));
  ZERO_CO_TRY(status);
  const checkpoint::StreamCounts &counts = job->counts;
  std::vector<int64_t> all;
  ZERO_CO_AWAIT(gather_words(votes(), {&counts.nbytes, 1}, &all));
  *out = {};
  out->struct_size = sizeof *out;
  out->step = things_.step();
  for (const int64_t nbytes : all) out->nbytes += nbytes;
  out->file_count = std::ssize(job->plan.files);
  out->write_ns = counts.copy_ns + counts.wait_ns;
  out->sync_ns = counts.sync_ns;
  out->direct = counts.direct ? 1 : 0;
  co_return Status();
}

Task Checkpoint::begin_export(std::shared_ptr<ExportJob> job) {
  Group &group = votes();
  ExportJob *mine = job.get();
  mine->plan = checkpoint::plan_export(mine->path, mine->exported.names, group.size(), settings_.file_nbytes);
  for (size_t file = 0; file < mine->plan.files.size(); ++file) {
    if (mine->plan.files[file].writer == group.rank()) mine->files.push_back(static_cast<int64_t>(file));
  }
  std::function<Status()> begins;
  if (group.rank() == 0) begins = [mine] { return checkpoint::begin_export(mine->plan, &mine->made); };
  co_return co_await run_files(job, std::move(begins));
}

/// Each rank writes its files, and asks the others for the bytes that it does not hold.
Task Checkpoint::write_export(std::shared_ptr<ExportJob> job) {
  ExportJob *mine = job.get();
  mine->work = std::make_shared<FileWork>(run_->bell);
  mine->snapshot = std::make_unique<Snapshot>(things_, mine->description);
  mine->source = std::make_unique<ExportedSource>(things_, mine->description, mine->exported, *mine->work);
  int64_t wishes_nbytes = 0;
  for (const int64_t file : mine->files) wishes_nbytes += mine->source->wishes_nbytes(mine->plan.files[static_cast<size_t>(file)].tensors);
  mine->work->start([mine] { return mine->write(); });
  Status written = co_await job->attend(votes(), settings_.progress_ms, &mine->description, wishes_nbytes);
  co_return co_await agree(std::move(written));
}

Task Checkpoint::end_export(std::shared_ptr<ExportJob> job) {
  ExportJob *mine = job.get();
  std::function<Status()> ends;
  if (votes().rank() == 0) ends = [mine] { return checkpoint::end_export(mine->plan, mine->options, &mine->counts); };
  co_return co_await run_files(job, std::move(ends));
}

/// If ranks are lost or hang, the files stay under their temporary names.
Task Checkpoint::discard_export(std::shared_ptr<ExportJob> job) {
  Group &group = votes();
  if (group.rank() != 0 || !group.usable().ok() || !job->work->ended()) co_return Status();
  ExportJob *mine = job.get();
  mine->start(run_->bell, [mine]() -> Status {
    checkpoint::discard_export(mine->plan, mine->made);
    return {};
  });
  (void)co_await mine->attend_alone(things_.group()->rank(), settings_.progress_ms);
  co_return Status();
}

}  // namespace zero
