/// @file Doorbells on futexes, and the waiting loop's pauses.
#include "core/doorbell.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

namespace zero {
namespace {

timespec to_timespec(int64_t nanoseconds) { return {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000}; }

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Doorbell::ring() {
  // Pairs with the fence in enter: either the sleeper is seen here, or its look sees what was published.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_relaxed) == 0) return;
  rings_.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&rings_), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

uint32_t Doorbell::enter() {
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return rings_.load(std::memory_order_acquire);
}

void Doorbell::sleep(uint32_t seen, int64_t max_ns) {
  const timespec timeout = to_timespec(max_ns);
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&rings_), FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

void Doorbell::leave() { sleepers_.fetch_sub(1, std::memory_order_relaxed); }

bool Backoff::stays_awake() {
  // Spinning pays only while the peer can run on another core, and for some microseconds; then yields, which cost little where nobody else
  // wants the core, let an oversubscribed peer run before anyone sleeps.
  static const int32_t spins = std::thread::hardware_concurrency() > 1 ? 100 : 0;
  constexpr int32_t kYields = 400;
  if (pauses_ == spins + kYields) return false;
  if (pauses_++ < spins) {
    relax();
  } else {
    ::sched_yield();
  }
  return true;
}

int64_t Backoff::next_sleep_ns() {
  constexpr int64_t kFirst = 50'000;
  constexpr int64_t kLongest = 1'000'000;
  sleep_ns_ = sleep_ns_ == 0 ? kFirst : std::min(2 * sleep_ns_, kLongest);
  return sleep_ns_;
}

void Backoff::rest() {
  const timespec time = to_timespec(next_sleep_ns());
  ::nanosleep(&time, nullptr);
}

}  // namespace zero
