/// @file A save, step by step, with the vote behind each: folder, files, contents, commit.
#include "checkpoint/saves.h"
#include "core/clock.h"
#include "core/machine.h"
#include "core/number_text.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/save_source.h"
#include "engine/checkpoint/votes.h"

#include <zero/zero.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>
#include <functional>
#include <utility>

namespace zero {
namespace {

constexpr const char *kSaveCall = "zero_checkpoint_save";

/// "2026-11-27T13:05:09Z"; for people.
std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::array<char, 32> text{};
  if (::gmtime_r(&now, &utc) != nullptr) std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

std::string library_text() {
  return "libzero " + std::to_string(ZERO_VERSION_MAJOR) + "." + std::to_string(ZERO_VERSION_MINOR) + "." +
         std::to_string(ZERO_VERSION_PATCH);
}

std::vector<uint64_t> words_of(const std::vector<checkpoint::FileReport> &reports) {
  std::vector<uint64_t> words;
  for (const checkpoint::FileReport &report : reports) {
    words.insert(words.end(), {static_cast<uint64_t>(report.file), static_cast<uint64_t>(report.nbytes), report.block_hashes.size()});
    words.insert(words.end(), report.block_hashes.begin(), report.block_hashes.end());
  }
  return words;
}

/// In the order of the files.
std::vector<checkpoint::FileReport> reports_in(const std::vector<std::vector<uint64_t>> &lists) {
  std::vector<checkpoint::FileReport> reports;
  for (const std::vector<uint64_t> &words : lists) {
    for (size_t at = 0; at + 3 <= words.size();) {
      checkpoint::FileReport report;
      report.file = static_cast<int64_t>(words[at]);
      report.nbytes = static_cast<int64_t>(words[at + 1]);
      const auto first = words.begin() + static_cast<std::ptrdiff_t>(at) + 3;
      report.block_hashes.assign(first, first + static_cast<std::ptrdiff_t>(words[at + 2]));
      at += 3 + words[at + 2];
      reports.push_back(std::move(report));
    }
  }
  std::sort(reports.begin(), reports.end(), [](const auto &a, const auto &b) { return a.file < b.file; });
  return reports;
}

}  // namespace

struct Checkpoint::SaveJob final : FileJob {
  SaveJob(const SavedThings &things, bool in_background) : background(in_background), extras(things, in_background) {}
  ~SaveJob() override {
    if (work != nullptr) work->end();
  }

  const bool background;  ///< the optimizers continue once a snapshot exists
  const SavedExtras extras;
  const int64_t began_ns = now_ns();
  std::shared_ptr<Busy> busy;
  Status prepared;  ///< this rank's result
  std::string folder;
  std::string name;
  checkpoint::SaveDescription description;
  std::vector<int64_t> model_writers;
  std::vector<int64_t> files;
  std::unique_ptr<SaveSource> source;
  std::unique_ptr<checkpoint::SaveWriter> writer;
  Folder saves;
  checkpoint::Manifest manifest;  ///< on rank 0
  int64_t retry_ms = 0;
  bool sync = true;
  bool maybe_committed = false;
  int64_t nbytes = 0;
  zero_checkpoint_result result = {};
  std::string run_id;  ///< copies, made while all ranks can still agree on an error
  std::string id;
};

std::shared_ptr<Checkpoint::SaveJob> Checkpoint::make_job(std::string folder, bool background) {
  run_->begin(*things_.group());
  const auto job = std::make_shared<SaveJob>(things_, background);
  job->owner = shared_from_this();
  job->busy = std::make_shared<Busy>(*this);
  job->folder = std::move(folder);
  job->retry_ms = std::min<int64_t>(settings_.progress_ms, 60'000);
  job->sync = settings_.stream.sync;
  return job;
}

Task Checkpoint::save(std::string folder, void *stream, zero_checkpoint_result *out) {
  const std::shared_ptr<SaveJob> job = make_job(std::move(folder), false);
  return guarded(save_body(job, stream, out), job->busy);
}

Task Checkpoint::save_in_background(std::string folder, void *stream, zero_checkpoint_result *out,
                                    std::shared_ptr<const std::atomic<bool>> *out_taken) {
  const std::shared_ptr<SaveJob> job = make_job(std::move(folder), true);
  *out_taken = {job->busy, &job->busy->released};
  return guarded(save_body(job, stream, out), job->busy);
}

Status Checkpoint::check_save(const SaveJob &job) const {
  ZERO_CHECK(!job.folder.empty(), ZERO_E_INVALID_ARGUMENT, "folder is \"\", but must name the folder of the saves");
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) {
    ZERO_TRY(each.state.check_save(kSaveCall));
    ZERO_CHECK(!job.background || !settings_.lazy || !each.state.on_device(), ZERO_E_UNSUPPORTED,
               "ZERO_KEY_CHECKPOINT_SNAPSHOT is ZERO_SNAPSHOT_LAZY, but optimizer \"%s\" is kept on a device; use ZERO_SNAPSHOT_COPY",
               each.prefix.c_str());
  }
  return {};
}

Task Checkpoint::save_body(std::shared_ptr<SaveJob> job, void *stream, zero_checkpoint_result *out) {
  if (job->background) {
    ZERO_CO_AWAIT(ordered(prepare(job), stream));
    let_optimizers_go_on(*job);
    Status status = co_await write_and_commit(job);
    if (job->lazy != nullptr) job->lazy->gate.open();
    ZERO_CO_TRY(status);
  } else {
    ZERO_CO_AWAIT(ordered(save_in_one(job), stream));
    job->result.stall_ns = now_ns() - job->began_ns;
  }
  if (job->lazy != nullptr) job->result.stall_ns += job->lazy->gate.waited_ns();
  job->result.snapshot_nbytes += job->snapshot->late_nbytes();
  run_->run_id = std::move(job->run_id);
  run_->previous_id = std::move(job->id);
  *out = job->result;
  co_return Status();
}

Task Checkpoint::save_in_one(std::shared_ptr<SaveJob> job) {
  ZERO_CO_AWAIT(prepare(job));
  co_return co_await write_and_commit(job);
}

/// All that needs the optimizers to stand still. No other rank is waited for: an error is for the
/// vote that follows.
Task Checkpoint::prepare(std::shared_ptr<SaveJob> job) {
  job->prepared = check_save(*job);
  if (job->prepared.ok()) job->prepared = co_await settle();
  if (job->prepared.ok()) job->prepared = take_snapshot(*job);
  co_return Status();
}

/// A lazy one copies buffers and carried values only, which nothing keeps from changing.
Status Checkpoint::take_snapshot(SaveJob &job) {
  job.description.step = static_cast<uint64_t>(things_.step());
  things_.describe(settings_.model_files, &job.description);
  checkpoint::assign_model_files(&job.description, settings_.file_nbytes, &job.model_writers);
  job.files = checkpoint::SaveWriter::files_of(job.description, job.model_writers, things_.group()->rank());
  job.snapshot = std::make_unique<Snapshot>(things_, job.description);
  job.source = std::make_unique<SaveSource>(things_, job.description, job.extras, *job.snapshot);
  if (!job.background) return {};
  Snapshot &snapshot = *job.snapshot;
  snapshot.list(job.files, !settings_.lazy);
  const int64_t nbytes = settings_.lazy ? snapshot.buffer_nbytes() : snapshot.nbytes();
  ZERO_TRY(check_room(nbytes));
  ZERO_TRY(run_->copies.reserve(nbytes));
  ZERO_TRY(settings_.lazy ? snapshot.copy_buffers(run_->copies.data()) : snapshot.copy_all(run_->copies.data()));
  job.result.snapshot_nbytes = nbytes;
  if (!settings_.lazy) return {};
  job.lazy = std::make_shared<LazyRead>(run_->queue, run_->bell, settings_.stream.staging_nbytes);
  job.source->read_lazily(job.lazy);
  const std::shared_ptr<ReadGate> gate(job.lazy, &job.lazy->gate);
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) each.state.set_gate(gate);
  return {};
}

/// Ranks of one host need about the same.
Status Checkpoint::check_room(int64_t nbytes) const {
  const int64_t more = std::max<int64_t>(nbytes - run_->copies.nbytes(), 0);
  if (more == 0) return {};
  const MemoryOffer offer = memory_offer();
  const bool of_machine = offer.system_nbytes <= offer.group_nbytes;
  const int64_t left = std::min(offer.system_nbytes, offer.group_nbytes);
  const int64_t ranks = things_.group()->place().local_size;
  ZERO_CHECK(more <= left / ranks, ZERO_E_OUT_OF_MEMORY,
             "copies for an asynchronous save need %s on each of %s, but %s are available %s; with ZERO_KEY_CHECKPOINT_SNAPSHOT = "
             "ZERO_SNAPSHOT_LAZY a rank copies at most ZERO_KEY_CHECKPOINT_STAGING_BYTES",
             nbytes_text(static_cast<double>(more)).c_str(), count_text(ranks, "rank").c_str(), nbytes_text(static_cast<double>(left)).c_str(),
             of_machine ? "on this machine" : "in the control group of this process");
  return {};
}

/// From here on the progress thread advances the save, if the transport lets it.
void Checkpoint::let_optimizers_go_on(SaveJob &job) {
  Group &group = *things_.group();
  job.busy->release();
  job.result.stall_ns = now_ns() - job.began_ns;
  run_->lane = group.place().local_rank;
  if (!group.transport().capabilities().single_thread) (void)run_->watch.on(run_->queue, run_->lane);
}

Task Checkpoint::write_and_commit(std::shared_ptr<SaveJob> job) {
  ZERO_CO_AWAIT(open_votes(Caller::save));
  ZERO_CO_AWAIT(agree(job->prepared));
  const std::string given = "folder " + job->folder + ", step " + std::to_string(job->description.step) + ", run " + run_->run_id +
                            "\nmodel files " + std::to_string(settings_.model_files ? settings_.file_nbytes : 0) + "\n" + things_.text();
  ZERO_CO_AWAIT(agree_on_given("folders, steps or lists of zero_checkpoint_save", given));
  ZERO_CO_AWAIT(name_save(*job));
  Status status = co_await make_folder(job);
  if (status.ok()) status = co_await write_files(job);
  if (status.ok()) status = co_await commit(job);
  // The caller reports an error of this rank alone to the others.
  if (is_agreed(status)) ZERO_CO_AWAIT(discard(job, status));
  co_return status;
}

/// Before the last vote: nothing may fail behind it.
void Checkpoint::prepare_result(SaveJob &job) {
  job.run_id = job.description.run_id;
  job.id = job.description.id;
  zero_checkpoint_result &result = job.result;
  result.struct_size = sizeof result;
  result.step = static_cast<int64_t>(job.description.step);
  result.file_count = checkpoint::FilePlan(job.description).file_count();
  const checkpoint::StreamCounts &counts = job.writer->counts();
  result.write_ns = counts.copy_ns + counts.wait_ns;
  result.sync_ns = counts.sync_ns;
  result.direct = counts.direct ? 1 : 0;
}

/// Rank 0 draws the ids that all write into their files.
Task Checkpoint::name_save(SaveJob &job) {
  Group &group = votes();
  std::string ids;
  Status status;
  if (group.rank() == 0) {
    std::string run_id = run_->run_id;
    std::string id;
    if (run_id.empty()) status = checkpoint::make_id(&run_id);
    if (status.ok()) status = checkpoint::make_save_id(run_id, &id);
    ids = run_id + "\n" + id + "\n" + time_text() + "\n";
  }
  ZERO_CO_AWAIT(agree(std::move(status)));
  ZERO_CO_AWAIT(broadcast_text(group, &ids, 0));
  const auto next = [&ids] {
    const size_t end = ids.find('\n');
    std::string line = ids.substr(0, end);
    ids.erase(0, end + 1);
    return line;
  };
  checkpoint::SaveDescription &description = job.description;
  description.run_id = next();
  description.id = next();
  description.created = next();
  description.previous_id = run_->previous_id;
  description.library = library_text();
  // Texts are rank 0's.
  ZERO_CO_AWAIT(share_texts(&description.texts));
  job.name = checkpoint::save_name(description.step, description.id);
  co_return co_await agree(checkpoint::check_description(description));
}

/// Rank 0's, with lengths before them.
Task Checkpoint::share_texts(checkpoint::Facts *texts) {
  std::string all;
  for (const auto &[key, text] : *texts) all += std::to_string(key.size()) + " " + std::to_string(text.size()) + "\n" + key + text;
  ZERO_CO_AWAIT(broadcast_text(votes(), &all, 0));
  texts->clear();
  for (size_t at = 0; at < all.size();) {
    size_t used = 0;
    const size_t key = std::stoul(all.substr(at), &used);
    size_t more = 0;
    const size_t text = std::stoul(all.substr(at + used), &more);
    at += used + more + 1;
    (*texts)[all.substr(at, key)] = all.substr(at + key, text);
    at += key + text;
  }
  co_return Status();
}

Task Checkpoint::make_folder(std::shared_ptr<SaveJob> job) {
  Group &group = votes();
  SaveJob *mine = job.get();
  co_return co_await run_files(job, [mine, first = group.rank() == 0]() -> Status {
    ZERO_TRY(Folder::open(mine->folder, &mine->saves));
    return first ? checkpoint::create_save(mine->saves, mine->name, mine->sync) : Status();
  });
}

/// A full disk is known before a byte is written.
Task Checkpoint::write_files(std::shared_ptr<SaveJob> job) {
  SaveJob *mine = job.get();
  mine->writer = std::make_unique<checkpoint::SaveWriter>(mine->description, mine->files, settings_.stream);
  const Status opened = co_await run_files(job, [mine]() -> Status {
    ZERO_TRY(mine->writer->open(mine->saves, mine->name, mine->retry_ms));
    return mine->writer->preallocate();
  });
  ZERO_CO_TRY(opened);
  const int64_t wishes_nbytes = mine->source->wishes_nbytes(mine->files);
  mine->work = std::make_shared<FileWork>(run_->bell);
  mine->source->set_work(mine->work.get());
  mine->work->start([mine]() { return mine->writer->write(*mine->source, mine->work.get()); });
  Status written = co_await job->attend(votes(), settings_.progress_ms, &mine->description, wishes_nbytes);
  co_return co_await agree(std::move(written));
}

/// Only after rank 0's word is the save acknowledged anywhere.
Task Checkpoint::commit(std::shared_ptr<SaveJob> job) {
  Group &group = votes();
  SaveJob *mine = job.get();
  const int64_t began_ns = now_ns();
  std::vector<std::vector<uint64_t>> lists;
  ZERO_CO_AWAIT(gather_lists(group, words_of(mine->writer->reports()), &lists));
  if (group.rank() == 0) {
    mine->manifest.description = mine->description;
    mine->manifest.files = reports_in(lists);
    mine->nbytes = mine->manifest.nbytes();
  }
  prepare_result(*mine);
  std::function<Status()> commits;
  if (group.rank() == 0) {
    commits = [mine] { return checkpoint::commit_save(mine->saves, mine->name, mine->manifest, mine->sync, &mine->maybe_committed); };
  }
  Status committed = co_await run_files(job, std::move(commits));
  const std::array<int64_t, 2> words = {mine->maybe_committed ? 1 : 0, mine->nbytes};
  std::vector<int64_t> all;
  ZERO_CO_AWAIT(gather_words(group, words, &all));
  mine->maybe_committed = all[0] != 0;
  mine->result.nbytes = all[1];
  mine->result.commit_ns = now_ns() - began_ns;
  ZERO_CO_TRY(committed);
  // Nobody waits for rank 0 to clean up, and what cannot be removed stays for the next time.
  if (group.rank() == 0) {
    mine->start(run_->bell, [mine, keep = settings_.keep] {
      checkpoint::RotateCounts counts;
      return checkpoint::rotate_saves(mine->saves, mine->name, mine->manifest, keep, mine->sync, &counts);
    });
    (void)co_await mine->attend_alone(things_.group()->rank(), settings_.progress_ms);
  }
  co_return Status();
}

/// Each rank removes its own files, then rank 0 removes the folder. If ranks are lost, or the
/// commit may have happened, all files stay.
Task Checkpoint::discard(std::shared_ptr<SaveJob> job, Status cause) {
  Group &group = votes();
  if (job->maybe_committed || !group.usable().ok() || !job->work->ended()) co_return Status();
  if (cause.code() == ZERO_E_TIMEOUT) co_return Status();
  SaveJob *mine = job.get();
  const Status kept = agreed_;
  ZERO_CO_AWAIT(run_files(job, [mine]() -> Status {
    if (mine->writer != nullptr) mine->writer->remove();
    return {};
  }));
  agreed_ = kept;
  if (group.rank() == 0) {
    mine->start(run_->bell, [mine]() -> Status {
      if (mine->saves.valid()) checkpoint::remove_save(mine->saves, mine->name);
      return {};
    });
    (void)co_await mine->attend_alone(things_.group()->rank(), settings_.progress_ms);
  }
  co_return Status();
}

}  // namespace zero
