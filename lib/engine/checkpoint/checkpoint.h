/// @file Checkpoint: things that are saved and loaded together, and the steps of a save or a load
/// with the votes between them. Knows ranks, optimizers and files' names; how files look is
/// lib/checkpoint's.
#pragma once

#include "checkpoint/manifest.h"
#include "checkpoint/save_writer.h"
#include "core/config.h"
#include "core/progress_thread.h"
#include "core/task.h"
#include "engine/checkpoint/checkpoint_settings.h"
#include "engine/checkpoint/file_job.h"
#include "engine/checkpoint/load_plan.h"
#include "engine/checkpoint/queue_holds.h"
#include "engine/checkpoint/saved_things.h"
#include "engine/checkpoint/snapshot.h"
#include "engine/checkpoint/vote_group.h"

#include <zero/checkpoint.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// State that a run keeps from one save to the next.
struct SavedRun {
  SavedRun() = default;
  SavedRun(const SavedRun &) = delete;
  ~SavedRun() { let_go(); }
  /// A save or load is called: what failed before goes, and the group of its votes is asked for,
  /// unless another is in progress.
  void begin(Group &whole);
  /// Before a group goes: the progress thread may sleep on its doorbell. While no save or load is
  /// in progress.
  void let_go();
  bool is_idle() const { return token.use_count() == 1; }

  /// Runs saves and loads, one after the other.
  const std::shared_ptr<OperationQueue> queue = std::make_shared<OperationQueue>();
  const std::shared_ptr<WorkBell> bell = std::make_shared<WorkBell>();
  /// Each save and load in progress holds one.
  const std::shared_ptr<const int> token = std::make_shared<const int>(0);
  QueueWatch watch;
  int64_t lane = 0;
  SnapshotMemory copies;
  VoteGroup votes;
  std::string run_id;  ///< empty before the first save or load
  std::string previous_id;
};

/// Tasks run in queue(), in the same order on every rank, and the checkpoint must outlive them.
/// Arguments are checked here, except addresses of results.
class Checkpoint : public std::enable_shared_from_this<Checkpoint> {
 public:
  static Status create(std::shared_ptr<Group> group, const Config &config, std::shared_ptr<Checkpoint> *out);
  /// Creates the checkpoint of one optimizer; its run continues from one such checkpoint to the
  /// next.
  static Status create_for(std::shared_ptr<Optimizer> optimizer, std::shared_ptr<Checkpoint> *out);
  Checkpoint(const Checkpoint &) = delete;

  SavedThings &things() { return things_; }
  const SavedThings &things() const { return things_; }
  /// The run follows the first optimizer, from one of its checkpoints to the next.
  Status add_optimizer(const std::string &prefix, std::shared_ptr<Optimizer> optimizer);
  Status rename(const char *in_file, const char *here);
  /// ZERO_E_STATE while a save or load is in progress, which uses the list.
  Status check_idle() const;
  /// Streams are those of all optimizers' devices. Any thread.
  Status check_stream(void *stream) const;

  /// The queue of saves and loads. Other calls of the optimizers wait while a save or load uses
  /// them.
  const std::shared_ptr<OperationQueue> &queue() const { return run_->queue; }
  /// `out` must not be nullptr; its struct_size is set here.
  Task save(std::string folder, void *stream, zero_checkpoint_result *out);
  /// *out_taken becomes true once there is a snapshot: from then on the optimizers may be used.
  Task save_in_background(std::string folder, void *stream, zero_checkpoint_result *out, std::shared_ptr<const std::atomic<bool>> *out_taken);
  /// *out_found, where given: 0 instead of ZERO_E_NOT_FOUND.
  Task load(std::string folder, int32_t part, void *stream, zero_checkpoint_result *out, int64_t *out_found = nullptr);

  /// Writes the parameters of all optimizers as plain safetensors. `dtype`: 0 or a float dtype.
  Task export_params(std::string path, int32_t dtype, void *stream, zero_checkpoint_result *out);

  /// The entries that the last load skipped or converted, one per line.
  const std::string &skipped() const { return skipped_; }

 private:
  struct SaveJob;
  struct LoadJob;
  struct PlainJob;
  struct ExportJob;
  /// While a Busy exists, the checkpoint and its run have a save or load in progress; until
  /// release() no other call uses the optimizers.
  struct Busy {
    explicit Busy(const Checkpoint &checkpoint);
    void release();

    const std::shared_ptr<const int> token;
    const std::shared_ptr<const int> run_token;
    std::vector<SavedState::Busy> optimizers;
    QueueHolds holds;
    std::atomic<bool> released{false};
  };

  Checkpoint(std::shared_ptr<Group> group, const CheckpointSettings &settings);

  /// @name Both (checkpoint.cpp)
  /// @{
  Task guarded(Task body, std::shared_ptr<Busy> busy);
  Task ordered(Task body, void *stream, size_t index = 0);
  Group &votes() const { return run_->votes.group(); }
  Task open_votes(Caller caller) { return run_->votes.open(*things_.group(), caller); }
  Task settle();
  /// As vote and compare_given. Errors that come from elsewhere are this rank's alone.
  Task agree(Status mine);
  bool is_agreed(const Status &status) const { return !status.ok() && !agreed_.ok() && status.text() == agreed_.text(); }
  Task agree_on_given(const char *what, const std::string &mine);
  Task run_files(std::shared_ptr<FileJob> job, std::function<Status()> files);
  /// @}

  /// @name Saves (save.cpp)
  /// @{
  std::shared_ptr<SaveJob> make_job(std::string folder, bool background);
  Task save_body(std::shared_ptr<SaveJob> job, void *stream, zero_checkpoint_result *out);
  Task save_in_one(std::shared_ptr<SaveJob> job);
  Task prepare(std::shared_ptr<SaveJob> job);
  Task write_and_commit(std::shared_ptr<SaveJob> job);
  Status check_save(const SaveJob &job) const;
  Status take_snapshot(SaveJob &job);
  Status check_room(int64_t nbytes) const;
  void let_optimizers_go_on(SaveJob &job);
  Task name_save(SaveJob &job);
  Task share_texts(checkpoint::Facts *texts);
  Task make_folder(std::shared_ptr<SaveJob> job);
  Task write_files(std::shared_ptr<SaveJob> job);
  Task commit(std::shared_ptr<SaveJob> job);
  Task discard(std::shared_ptr<SaveJob> job, Status cause);
  static void prepare_result(SaveJob &job);
  /// @}

  /// @name Loads (load.cpp)
  /// @{
  Task load_body(std::string folder, int32_t part, zero_checkpoint_result *out, int64_t *out_found);
  Status check_load(const std::string &folder, int32_t part) const;
  Task find_plain(std::shared_ptr<LoadJob> job, bool *out);
  Task find_save(std::shared_ptr<LoadJob> job, int64_t index);
  Task read_save(std::shared_ptr<LoadJob> job, bool *out_damaged);
  Task take_over(LoadJob &job);
  static void fill_result(const LoadJob &job, zero_checkpoint_result *out);
  /// @}

  /// @name Loads of plain safetensors (load_plain.cpp)
  /// @{
  Task load_plain(std::string path, int32_t part, zero_checkpoint_result *out);
  Task open_plain(std::shared_ptr<PlainJob> job);
  Task read_plain(std::shared_ptr<PlainJob> job);
  Task take_over_plain();
  static void fill_plain_result(const PlainJob &job, zero_checkpoint_result *out);
  /// @}

  /// @name Exports (export.cpp)
  /// @{
  Task export_body(std::string path, int32_t dtype, zero_checkpoint_result *out);
  Status check_export(const std::string &path, int32_t dtype) const;
  Task begin_export(std::shared_ptr<ExportJob> job);
  Task write_export(std::shared_ptr<ExportJob> job);
  Task end_export(std::shared_ptr<ExportJob> job);
  Task discard_export(std::shared_ptr<ExportJob> job);
  /// @}

  const CheckpointSettings settings_;
  SavedThings things_;
  Renames renames_;
  std::shared_ptr<SavedRun> run_ = std::make_shared<SavedRun>();
  const std::shared_ptr<const int> token_ = std::make_shared<const int>(0);
  std::string skipped_;
  Status agreed_;  ///< the last error that all ranks have alike
};

}  // namespace zero
