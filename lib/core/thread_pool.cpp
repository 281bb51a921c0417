/// @file Pool threads: started when first needed, at most one fewer than the usable cores, asleep
/// when idle.
#include "core/thread_pool.h"

#include "core/doorbell.h"
#include "core/hash.h"
#include "core/signals_blocked.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cfenv>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace zero {
namespace {

/// One call of run_pieces: lives on the caller's stack, and workers leave it before the caller
/// returns.
struct Job {
  PieceFunction function;
  void *context;
  int64_t pieces;
  std::atomic<int64_t> next{1};
  std::atomic<int64_t> helpers{0};

  void work() {
    for (int64_t piece = next.fetch_add(1); piece < pieces; piece = next.fetch_add(1)) function(context, piece);
  }
};

/// Leaves the policy SCHED_BATCH that a worker inherits if a progress thread starts it
/// (progress_thread.cpp).
void leave_batch() {
  const sched_param none{};
  const bool inherited = ::sched_getscheduler(0) == SCHED_BATCH && ::sched_getscheduler(::getpid()) == SCHED_OTHER;
  if (inherited) (void)::sched_setscheduler(0, SCHED_OTHER, &none);
}

struct Worker {
  std::atomic<Job *> job{nullptr};
  std::atomic<bool> taken{false};
  Doorbell bell;
};

/// Maximum number of threads that help in one job.
constexpr int64_t kMostHelpers = 255;

class Pool {
 public:
  void run(Job &job, int64_t most_helpers) {
    std::array<Worker *, kMostHelpers> handed;
    size_t count = 0;
    for (size_t index = 0; static_cast<int64_t>(count) < most_helpers; ++index) {
      Worker *worker = worker_at(index);
      if (worker == nullptr) break;
      if (worker->taken.exchange(true, std::memory_order_acquire)) continue;
      job.helpers.fetch_add(1);
      worker->job.store(&job, std::memory_order_release);
      worker->bell.ring();
      handed[count++] = worker;
    }
    job.function(job.context, 0);
    job.work();
    for (Worker *worker : std::span(handed).first(count)) take_back(job, *worker);
    Backoff backoff;
    for (;;) {
      const Listening listening(&finished_);
      if (job.helpers.load(std::memory_order_acquire) == 0) return;
      backoff.pause(listening);
    }
  }

 private:
  /// Takes a job back from a worker that has not begun it. The worker may wait long for a core, and
  /// no work is left.
  static void take_back(Job &job, Worker &worker) {
    Job *mine = &job;
    if (!worker.job.compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel)) return;
    worker.taken.store(false, std::memory_order_release);
    job.helpers.fetch_sub(1);
  }

  /// Returns nullptr if there are no more workers and none may be started.
  Worker *worker_at(size_t index) {
    const std::lock_guard lock(mutex_);
    if (index < workers_.size()) return workers_[index].get();
    if (static_cast<int64_t>(index) >= usable_cores() - 1) return nullptr;
    return start_worker();
  }

  Worker *start_worker() {
    const SignalsBlocked blocked;
    Worker *worker = nullptr;
    try {
      workers_.push_back(std::make_unique<Worker>());
      worker = workers_.back().get();
      std::thread([this, worker] { serve(*worker); }).detach();
    } catch (...) {
      if (worker != nullptr) workers_.pop_back();
      worker = nullptr;
    }
    return worker;
  }

  [[noreturn]] void serve(Worker &worker) {
    leave_batch();
    // The caller's floating-point environment must not decide the bits of a piece.
    std::fesetenv(FE_DFL_ENV);
    for (;;) {
      const uint32_t seen = worker.bell.sequence();
      Job *job = worker.job.exchange(nullptr, std::memory_order_acquire);
      if (job == nullptr) {
        worker.bell.wait(seen, 1'000'000'000);
        continue;
      }
      job->work();
      worker.taken.store(false, std::memory_order_release);
      job->helpers.fetch_sub(1, std::memory_order_release);
      finished_.ring();
    }
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Doorbell finished_;  ///< rung when a helper has left a job
};

}  // namespace

void run_pieces(int64_t pieces, int64_t threads, PieceFunction function, void *context) {
  const int64_t helpers = std::min({pieces - 1, threads - 1, kMostHelpers});
  if (helpers <= 0) {
    for (int64_t piece = 0; piece < pieces; ++piece) function(context, piece);
    return;
  }
  // Never destroyed: detached workers use it until the process ends.
  static auto *pool = new Pool;
  Job job{function, context, pieces};
  pool->run(job, helpers);
}

int64_t usable_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

uint64_t usable_cores_key() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  return hash_of(&set, sizeof set);
}

}  // namespace zero
