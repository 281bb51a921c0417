/// @file The progress thread's loop.
#include "core/progress_thread.h"

#include "core/doorbell.h"

#include <pthread.h>
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <thread>
#include <vector>

namespace zero {
namespace {

class ProgressThread {
 public:
  bool watch(const std::shared_ptr<OperationQueue> &queue) {
    const std::lock_guard lock(mutex_);
    if (!started_ && !start()) return false;
    if (std::find(arriving_.begin(), arriving_.end(), queue) == arriving_.end()) arriving_.push_back(queue);
    arrived_.notify_one();
    return true;
  }

 private:
  /// Room from the start, so that the steps of a training allocate nothing however their queues meet.
  static constexpr size_t kExpectedQueues = 64;

  bool start() {
    // The host program's signals are not for this thread.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      arriving_.reserve(kExpectedQueues);
      std::thread([this] { run(); }).detach();
      started_ = true;
    } catch (...) {
      started_ = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started_;
  }

  void run() {
    std::vector<std::shared_ptr<OperationQueue>> watched;
    watched.reserve(kExpectedQueues);
    Backoff backoff;
    for (;;) {
      if (take_arrivals(watched)) backoff = Backoff();
      Doorbell *bell = watched.front()->doorbell();
      const uint32_t seen = bell != nullptr ? bell->sequence() : 0;
      const size_t before = watched.size();
      std::erase_if(watched, [](const auto &queue) { return queue->progress(); });
      if (watched.size() != before) {
        backoff = Backoff();
        continue;
      }
      // With several queues a ring for one must not wait for another's bell: sleep for a moment instead.
      backoff.pause(watched.size() == 1 ? bell : nullptr, seen);
    }
  }

  /// Moves newly given queues over; waits for one when there is nothing to do.
  bool take_arrivals(std::vector<std::shared_ptr<OperationQueue>> &watched) {
    std::unique_lock lock(mutex_);
    if (watched.empty()) arrived_.wait(lock, [this] { return !arriving_.empty(); });
    const bool any = !arriving_.empty();
    for (auto &queue : arriving_) {
      if (std::find(watched.begin(), watched.end(), queue) == watched.end()) watched.push_back(std::move(queue));
    }
    arriving_.clear();
    return any;
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::shared_ptr<OperationQueue>> arriving_;
  bool started_ = false;
};

}  // namespace

bool watch_queue(const std::shared_ptr<OperationQueue> &queue) {
  // Never destroyed: the detached thread uses it until the process ends.
  static auto *thread = new ProgressThread;
  return thread->watch(queue);
}

}  // namespace zero
