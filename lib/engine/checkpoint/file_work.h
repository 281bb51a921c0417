/// @file FileWork: the file operations of a rank, on a thread of their own. Meanwhile the calling
/// thread reports progress to other ranks, supplies bytes that they hold, and can abandon the work.
/// Knows no files and no ranks.
#pragma once

#include "checkpoint/blocks.h"
#include "core/doorbell.h"
#include "core/status.h"
#include "core/task.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace zero {

/// A request of the work for entries of a slot that other ranks hold.
struct Wish {
  int64_t section;
  int64_t tensor;
  int64_t slot;  ///< index in the tensor's description
  int64_t begin;
  int64_t count;
  std::byte *out;
};

/// Rung on each event of a save or load in progress. It must outlive the threads that wait for it.
class WorkBell {
 public:
  void ring() {
    rings_.fetch_add(1, std::memory_order_acq_rel);
    bell_.ring();
  }
  int64_t rings() const { return rings_.load(std::memory_order_acquire); }
  Doorbell &doorbell() { return bell_; }

 private:
  std::atomic<int64_t> rings_{0};
  Doorbell bell_;
};

class FileWork final : public checkpoint::Progress {
 public:
  explicit FileWork(std::shared_ptr<WorkBell> bell) : bell_(std::move(bell)) {}
  FileWork(const FileWork &) = delete;
  ~FileWork() override { end(); }

  /// Starts the work on a thread with all signals blocked; call it once. If the thread cannot
  /// start, status() reports the error. If `work` is empty, it has ended already.
  void start(std::function<Status()> work);
  /// Cancels the work and waits for its end, unless it was given up.
  void end();

  /// @name For the work
  /// @{
  /// Reports bytes that were read or written. Returns an error once the work was cancelled.
  Status advance(int64_t nbytes) override;
  /// Waits until grant() has filled wish.out.
  Status wish(const Wish &wish);
  /// @}

  /// @name For the call's thread
  /// @{
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// The result, after the end. ZERO_OK if the work stopped early because it was cancelled: its own
  /// rank did not fail.
  Status status() const;
  std::optional<Wish> open_wish();
  void grant();
  /// Asks the work to stop; it ends at its next call of advance() or wish().
  void cancel();
  /// Cancels the work and detaches its thread. `keep` owns all that the work refers to, this object
  /// included, and is released when the work returns.
  void give_up(std::shared_ptr<void> keep);
  int64_t nbytes() const { return nbytes_.load(std::memory_order_relaxed); }
  /// Time since the last call of advance().
  int64_t silent_ms() const;
  WorkBell &bell() { return *bell_; }
  /// @}

 private:
  void run(const std::function<Status()> &work);

  const std::shared_ptr<WorkBell> bell_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<int64_t> nbytes_{0};
  std::atomic<int64_t> advanced_ns_{0};
  Status status_;
  std::mutex mutex_;
  std::condition_variable granted_;
  std::optional<Wish> wish_;
  std::shared_ptr<void> keep_;
  std::thread thread_;
};

/// Ready once the work has ended or `wait_ms` have passed. If `rings` is given, also ready when the
/// work has an open wish, or when the bell's count of rings differs from `rings`.
class WorkLook final : public Waitable {
 public:
  WorkLook(FileWork &work, int64_t wait_ms, std::optional<int64_t> rings = std::nullopt);
  Status poll(bool *out_ready) override;
  Doorbell *doorbell() override { return &work_.bell().doorbell(); }

 private:
  FileWork &work_;
  const int64_t end_ns_;
  const std::optional<int64_t> rings_;
};

}  // namespace zero
