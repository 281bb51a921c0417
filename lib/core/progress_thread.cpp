/// @file The loop of a progress thread.
#include "core/progress_thread.h"

#include "core/doorbell.h"
#include "core/fork_guard.h"
#include "core/frame_cache.h"
#include "core/signals_blocked.h"
#include "core/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace zero {
namespace {

/// Sets SCHED_BATCH: callers do little before they sleep, and a thread of this policy does not
/// preempt the one that woke it. If the host program chose another policy, or the system refuses,
/// nothing changes.
void let_callers_go_on() {
  const sched_param none{};
  if (::sched_getscheduler(0) == SCHED_OTHER) (void)::sched_setscheduler(0, SCHED_BATCH, &none);
}

class ProgressThread {
 public:
  bool watch(const std::shared_ptr<OperationQueue> &queue) noexcept {
    const std::lock_guard lock(mutex_);
    if (!reserve() || (!started_ && !start())) return false;
    if (std::find(arriving_.begin(), arriving_.end(), queue) == arriving_.end()) arriving_.push_back(queue);
    arrived_.ring();
    return true;
  }

  void unwatch(const std::shared_ptr<OperationQueue> &queue) {
    std::unique_lock lock(mutex_);
    // A child of fork has the lists but not the thread.
    if (!started_ || forked()) return;
    std::erase(arriving_, queue);
    left_.wait(lock, [&] { return !watches(queue); });
  }

 private:
  struct Watched {
    std::shared_ptr<OperationQueue> queue;
    Listening listening;  ///< its bell, from before it was advanced
  };

  /// Reserved from the start, so that training steps allocate nothing however many queues meet.
  static constexpr size_t kExpectedQueues = 64;
  static constexpr int64_t kLongestRestNs = 3'600'000'000'000;

  /// Takes all memory on the threads that add queues: the progress thread could not report a lack
  /// of it.
  bool reserve() noexcept {
    const size_t most = std::max(kExpectedQueues, watched_.size() + arriving_.size() + 1);
    try {
      arriving_.reserve(most);
      next_watched_.reserve(most);
      if (!started_) watched_.reserve(most);
      return true;
    } catch (const std::bad_alloc &) {
      return false;
    }
  }

  bool start() noexcept {
    const SignalsBlocked blocked;
    FrameCache *frames = nullptr;
    try {
      frames = reserve_frame_cache();
      std::thread([this, frames] {
        use_frame_cache(frames);
        run();
      }).detach();
      started_ = true;
    } catch (...) {
      if (frames != nullptr) return_frame_cache(frames);
    }
    return started_;
  }

  void run() {
    let_callers_go_on();
    Pacing pacing(Backoff::Manner::alone);
    for (;;) {
      const std::span<const Listening> heard = listen();
      if (take_arrivals()) {
        pacing.begin_anew();
      } else if (watched_.empty()) {
        arrived_.wait(heard.back().seen(), kLongestRestNs);
      } else if (look()) {
        pacing.pause(heard);
      }
    }
  }

  /// Listens to the doorbells of the queues, as many as fit, and last to arrivals.
  std::span<const Listening> listen() {
    size_t count = 0;
    for (Watched &watched : watched_) {
      watched.listening = Listening(watched.queue->doorbell());
      if (watched.listening.bell() != nullptr && count + 1 < heard_.size()) heard_[count++] = watched.listening;
    }
    heard_[count++] = Listening(&arrived_);
    return {heard_.data(), count};
  }

  /// Moves newly added queues over.
  bool take_arrivals() {
    const std::lock_guard lock(mutex_);
    if (arriving_.empty()) return false;
    next_watched_.swap(watched_);
    for (Watched &watched : next_watched_) watched_.push_back(std::move(watched));
    next_watched_.clear();
    for (auto &queue : arriving_) {
      if (watches(queue)) continue;
      queue->set_watched(true);
      watched_.push_back({std::move(queue), {}});
    }
    arriving_.clear();
    return true;
  }

  bool watches(const std::shared_ptr<OperationQueue> &queue) const {
    return std::any_of(watched_.begin(), watched_.end(), [&](const Watched &watched) { return watched.queue == queue; });
  }

  /// Advances every queue and drops those that are empty. Returns false if another look is due
  /// before a pause.
  bool look() {
    bool may_rest = true;
    for (size_t index = 0; index < watched_.size();) {
      const Watched &watched = watched_[index];
      const Look look = watched.queue->progress();
      may_rest = may_rest && look != Look::empty && watched.queue->hears(look, watched.listening.bell());
      if (look == Look::empty) {
        drop(index);
      } else {
        ++index;
      }
    }
    return may_rest;
  }

  void drop(size_t index) {
    const std::lock_guard lock(mutex_);
    watched_[index].queue->set_watched(false);
    watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(index));
    left_.notify_all();
  }

  std::mutex mutex_;
  Doorbell arrived_;
  std::condition_variable left_;
  std::vector<std::shared_ptr<OperationQueue>> arriving_;
  std::vector<Watched> watched_;       ///< changed by the progress thread only, under the mutex
  std::vector<Watched> next_watched_;  ///< empty, with room for all of watched_
  std::array<Listening, Doorbell::kMostListenings> heard_;
  bool started_ = false;
};

constexpr size_t kMostThreads = 64;

ProgressThread &progress_thread(int64_t lane) {
  // Never destroyed: the detached threads use them until the process ends.
  static auto *threads = new std::array<ProgressThread, kMostThreads>;
  static const auto count = std::min(kMostThreads, static_cast<size_t>(usable_cores()));
  return (*threads)[static_cast<size_t>(lane) % count];
}

}  // namespace

bool watch_queue(const std::shared_ptr<OperationQueue> &queue, int64_t lane) { return progress_thread(lane).watch(queue); }

void unwatch_queue(const std::shared_ptr<OperationQueue> &queue, int64_t lane) { progress_thread(lane).unwatch(queue); }

}  // namespace zero
