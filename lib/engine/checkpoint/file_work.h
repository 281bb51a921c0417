/// @file FileWork: what a rank does with files, on a thread of its own, so that the thread of the call can tell other ranks how far it is,
/// give the work what other ranks hold, and give up on it. Knows no files and no ranks.
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

/// Entries of a slot that the work needs and other ranks hold.
struct Wish {
  int64_t section;
  int64_t tensor;
  int64_t slot;  ///< in the tensor's description
  int64_t begin;
  int64_t count;
  std::byte *out;
};

/// Rung when there is news of a save or load under way. It outlives the threads that listen to it.
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

  /// Once. All signals are blocked on the thread. An error to start it is the work's; where `work` is empty it has ended already.
  void start(std::function<Status()> work);
  /// Cancels the work and waits for its end, unless it was given up.
  void end();

  /// @name For the work
  /// @{
  /// An error once the work was cancelled.
  Status advance(int64_t nbytes) override;
  /// Waits until grant() has filled wish.out.
  Status wish(const Wish &wish);
  /// @}

  /// @name For the call's thread
  /// @{
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// After the end. ZERO_OK where the work ended early because it was cancelled: its rank did not fail.
  Status status() const;
  std::optional<Wish> open_wish();
  void grant();
  /// The work ends as soon as it looks.
  void cancel();
  /// Nobody waits for the thread any more. `keep` holds all that it refers to, this object too, and is let go of when it returns.
  void give_up(std::shared_ptr<void> keep);
  int64_t nbytes() const { return nbytes_.load(std::memory_order_relaxed); }
  /// Time since something was last read or written.
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

/// Awaits that the work has ended or that `wait_ms` have passed; where `rings` is given, also that the work wishes for something or the bell
/// was rung since it had so many.
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
