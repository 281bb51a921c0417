/// @file A save, step by step, with the vote behind each: folder, files, contents, commit.
#include "checkpoint/saves.h"
#include "core/clock.h"
#include "engine/checkpoint/checkpoint.h"
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

/// Where the bytes of this rank's files come from.
class SaveSource final : public checkpoint::BlockSource {
 public:
  SaveSource(const SavedThings &things, const checkpoint::SaveDescription &description)
      : things_(things), extras_(things.extras()), description_(description) {}

  void set_work(FileWork *work) { work_ = work; }

  Status copy(const checkpoint::EntrySource &entry, int64_t offset, std::span<std::byte> out) override {
    if (entry.section < 0) {
      ZERO_TRY(still_wanted());
      const std::byte *data = extras_[static_cast<size_t>(entry.tensor)].data;
      if (!out.empty()) std::memcpy(out.data(), data + offset, out.size());
      return {};
    }
    ZERO_TRY(still_wanted());
    const int64_t entry_nbytes = checkpoint::disk_type_nbytes(slot_of(entry).type);
    const int64_t first = entry.begin + offset / entry_nbytes;
    if (things_.has(description_, entry)) return things_.copy(description_, entry.section, entry.tensor, entry.slot, first, out);
    return work_->wish({entry.section, entry.tensor, entry.slot, first, std::ssize(out) / entry_nbytes, out.data()});
  }

  /// Bytes of these files that other ranks hold.
  int64_t wishes_nbytes(const std::vector<int64_t> &files) const {
    const checkpoint::FilePlan plan(description_);
    int64_t nbytes = 0;
    for (const int64_t number : files) {
      const checkpoint::PlannedFile file = plan.file(description_, number);
      for (const checkpoint::EntrySource &entry : file.sources) {
        if (entry.section >= 0 && !things_.has(description_, entry))
          nbytes += entry.count * checkpoint::disk_type_nbytes(slot_of(entry).type);
      }
    }
    return nbytes;
  }

 private:
  /// Work that was given up reads nothing of the caller's any more.
  Status still_wanted() const { return work_->advance(0); }
  const checkpoint::SavedSlot &slot_of(const checkpoint::EntrySource &entry) const {
    const checkpoint::Section &section = description_.sections[static_cast<size_t>(entry.section)];
    return section.tensors[static_cast<size_t>(entry.tensor)].slots[static_cast<size_t>(entry.slot)];
  }

  const SavedThings &things_;
  const std::vector<SavedThings::Extra> extras_;
  const checkpoint::SaveDescription &description_;
  FileWork *work_ = nullptr;
};

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
  ~SaveJob() override {
    if (work != nullptr) work->end();
  }

  std::string folder;
  std::string name;
  checkpoint::SaveDescription description;
  std::vector<int64_t> model_writers;
  std::vector<int64_t> files;
  std::unique_ptr<SaveSource> source;
  std::unique_ptr<checkpoint::SaveWriter> writer;
  Folder saves;
  checkpoint::Manifest manifest;  ///< on rank 0
  int64_t patience_ms = 0;
  bool sync = true;
  bool maybe_committed = false;
  int64_t nbytes = 0;
  zero_checkpoint_result result = {};
  std::string run_id;  ///< copies, made while an error can still be everybody's
  std::string id;
};

Task Checkpoint::save(std::string folder, void *stream, zero_checkpoint_result *out) {
  make_group();
  return guarded(ordered(save_body(std::move(folder), out), stream), busy());
}

Status Checkpoint::check_save(const std::string &folder) const {
  ZERO_CHECK(!folder.empty(), ZERO_E_INVALID_ARGUMENT, "folder is \"\", but must name the folder of the saves");
  for (const SavedThings::SavedOptimizer &each : things_.optimizers()) ZERO_TRY(each.state.check_save(kSaveCall));
  return {};
}

Task Checkpoint::save_body(std::string folder, zero_checkpoint_result *out) {
  ZERO_CO_AWAIT(open_group(Caller::save));
  ZERO_CO_AWAIT(agree(check_save(folder)));
  Status settled = co_await settle();
  ZERO_CO_AWAIT(agree(std::move(settled)));
  const std::string given = "folder " + folder + ", step " + std::to_string(things_.step()) + ", run " + run_->run_id + "\nmodel files " +
                            std::to_string(settings_.model_files ? settings_.file_nbytes : 0) + "\n" + things_.text();
  ZERO_CO_AWAIT(agree_on_given("folders, steps or lists of zero_checkpoint_save", given));
  const auto job = std::make_shared<SaveJob>();
  job->owner = shared_from_this();
  job->folder = std::move(folder);
  job->patience_ms = std::min<int64_t>(settings_.progress_ms, 60'000);
  job->sync = settings_.stream.sync;
  ZERO_CO_AWAIT(describe(*job));
  Status status = co_await make_folder(job);
  if (status.ok()) status = co_await write_files(job);
  if (status.ok()) status = co_await commit(job);
  // An error of this rank alone is told to the others by whoever called.
  if (is_agreed(status)) ZERO_CO_AWAIT(discard(job, status));
  ZERO_CO_TRY(status);
  run_->run_id = std::move(job->run_id);
  run_->previous_id = std::move(job->id);
  *out = job->result;
  co_return Status();
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
Task Checkpoint::describe(SaveJob &job) {
  Group &group = *run_->group;
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
  description.step = static_cast<uint64_t>(things_.step());
  description.run_id = next();
  description.id = next();
  description.created = next();
  description.previous_id = run_->previous_id;
  description.library = library_text();
  things_.describe(settings_.model_files, &description);
  // Texts are rank 0's.
  ZERO_CO_AWAIT(share_texts(&description.texts));
  checkpoint::assign_model_files(&description, settings_.file_nbytes, &job.model_writers);
  job.name = checkpoint::save_name(description.step, description.id);
  co_return co_await agree(checkpoint::check_description(description));
}

/// Rank 0's, with lengths before them.
Task Checkpoint::share_texts(checkpoint::Facts *texts) {
  std::string all;
  for (const auto &[key, text] : *texts) all += std::to_string(key.size()) + " " + std::to_string(text.size()) + "\n" + key + text;
  ZERO_CO_AWAIT(broadcast_text(*run_->group, &all, 0));
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
  Group &group = *run_->group;
  SaveJob *mine = job.get();
  co_return co_await run_files(job, [mine, first = group.rank() == 0]() -> Status {
    ZERO_TRY(Folder::open(mine->folder, &mine->saves));
    return first ? checkpoint::create_save(mine->saves, mine->name, mine->sync) : Status();
  });
}

/// A full disk is known before a byte is written.
Task Checkpoint::write_files(std::shared_ptr<SaveJob> job) {
  Group &group = *run_->group;
  SaveJob *mine = job.get();
  mine->files = checkpoint::SaveWriter::files_of(mine->description, mine->model_writers, group.rank());
  mine->source = std::make_unique<SaveSource>(things_, mine->description);
  mine->writer = std::make_unique<checkpoint::SaveWriter>(mine->description, mine->files, settings_.stream);
  ZERO_CO_AWAIT(run_files(job, [mine]() -> Status {
    ZERO_TRY(mine->writer->open(mine->saves, mine->name, mine->patience_ms));
    return mine->writer->preallocate();
  }));
  const int64_t wishes_nbytes = mine->source->wishes_nbytes(mine->files);
  mine->work = std::make_shared<FileWork>();
  mine->source->set_work(mine->work.get());
  mine->work->start([mine]() { return mine->writer->write(*mine->source, mine->work.get()); });
  Status written = co_await attend(job, &mine->description, wishes_nbytes);
  co_return co_await agree(std::move(written));
}

/// Only after rank 0's word is the save acknowledged anywhere.
Task Checkpoint::commit(std::shared_ptr<SaveJob> job) {
  Group &group = *run_->group;
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
    (void)co_await run_alone(job, [mine, keep = settings_.keep] {
      checkpoint::RotateCounts counts;
      return checkpoint::rotate_saves(mine->saves, mine->name, mine->manifest, keep, mine->sync, &counts);
    });
  }
  co_return Status();
}

/// Each rank removes its own files, then rank 0 the folder. Where ranks are lost, or the commit may have happened, all stays.
Task Checkpoint::discard(std::shared_ptr<SaveJob> job, Status cause) {
  Group &group = *run_->group;
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
    (void)co_await run_alone(job, [mine]() -> Status {
      if (mine->saves.valid()) checkpoint::remove_save(mine->saves, mine->name);
      return {};
    });
  }
  co_return Status();
}

}  // namespace zero
