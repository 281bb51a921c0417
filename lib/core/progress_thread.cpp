/// @file The loop of a progress thread.
#include "core/progress_thread.h"

#include "core/doorbell.h"
#include "core/fork_guard.h"
#include "core/frame_cache.h"
#include "core/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <new>
#include <span>
#include <thread>
#include <vector>

namespace zero {
namespace {

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
    left_.wait(lock, [&] { return std::find(watched_.begin(), watched_.end(), queue) == watched_.end(); });
  }

 private:
  using Queues = std::vector<std::shared_ptr<OperationQueue>>;

  /// Room from the start, so that the steps of a training allocate nothing however their queues meet.
  static constexpr size_t kExpectedQueues = 64;
  static constexpr int64_t kLongestRestNs = 3'600'000'000'000;

  /// All memory is taken on the threads that give queues: on the progress thread nobody could be told that there is none.
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
    // The host program's signals are not for this thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
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
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started_;
  }

  void run() {
    Backoff backoff;
    for (;;) {
      const std::span<const Listening> heard = listen();
      if (take_arrivals() || drop_finished()) {
        backoff = Backoff();
      } else if (watched_.empty()) {
        arrived_.wait(heard.back().seen(), kLongestRestNs);
      } else if (hears_all(heard)) {
        backoff.pause(heard);
      }
    }
  }

  /// Listens to what the queues sleep on, as many as can be, and last to arrivals.
  std::span<const Listening> listen() {
    size_t count = 0;
    for (const auto &queue : watched_) {
      if (count + 1 == heard_.size()) break;
      if (Doorbell *bell = queue->doorbell()) heard_[count++] = Listening(bell);
    }
    heard_[count++] = Listening(&arrived_);
    return {heard_.data(), count};
  }

  /// False when a look changed what some queue sleeps on.
  bool hears_all(std::span<const Listening> heard) const {
    size_t count = 0;
    for (const auto &queue : watched_) {
      if (count + 1 == heard_.size()) break;
      Doorbell *bell = queue->doorbell();
      if (bell != nullptr && bell != heard[count++].bell()) return false;
    }
    return count + 1 == heard.size();
  }

  /// Moves newly given queues over.
  bool take_arrivals() {
    const std::lock_guard lock(mutex_);
    if (arriving_.empty()) return false;
    next_watched_.swap(watched_);
    for (auto &queue : next_watched_) watched_.push_back(std::move(queue));
    next_watched_.clear();
    for (auto &queue : arriving_) {
      if (std::find(watched_.begin(), watched_.end(), queue) != watched_.end()) continue;
      queue->set_watched(true);
      watched_.push_back(std::move(queue));
    }
    arriving_.clear();
    return true;
  }

  /// Advances every queue and lets go of those that are empty.
  bool drop_finished() {
    bool any = false;
    for (size_t index = 0; index < watched_.size();) {
      if (!watched_[index]->progress()) {
        ++index;
        continue;
      }
      const std::lock_guard lock(mutex_);
      watched_[index]->set_watched(false);
      watched_.erase(watched_.begin() + static_cast<std::ptrdiff_t>(index));
      left_.notify_all();
      any = true;
    }
    return any;
  }

  std::mutex mutex_;
  Doorbell arrived_;
  std::condition_variable left_;
  Queues arriving_;
  Queues watched_;       ///< changed by the progress thread only, under the mutex
  Queues next_watched_;  ///< empty, with room for what watched_ may become
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
