/// @file Doorbells on futexes, and the waiting loop's pauses.
#include "core/doorbell.h"

#include "core/clock.h"
#include "core/machine.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace zero {
namespace {

/// Loops of this process that wait and have finished spinning.
constinit std::atomic<int64_t> waiting_loops = 0;

timespec to_timespec(int64_t nanoseconds) { return {nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000}; }

/// True if a futex call has waited as intended. Otherwise the kernel or a sandbox refuses it,
/// immediately and every time.
bool has_waited(long result) { return result >= 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT; }

#if defined(SYS_futex_waitv)
/// Returns false if the kernel (before Linux 5.16) or a sandbox has no such call.
bool wait_for_any(std::span<futex_waitv> words, int64_t max_ns) {
  timespec end{};
  ::clock_gettime(CLOCK_MONOTONIC, &end);
  end = to_timespec(end.tv_sec * 1'000'000'000 + end.tv_nsec + max_ns);
  return has_waited(::syscall(SYS_futex_waitv, words.data(), words.size(), 0, &end, CLOCK_MONOTONIC));
}
#endif

/// Polls at intervals, for systems on which a thread cannot be woken.
void nap(const Doorbell &bell, uint32_t seen, int64_t max_ns) {
  constexpr int64_t kNapNs = 1'000'000;
  const timespec time = to_timespec(std::min(kNapNs, max_ns));
  const int64_t end_ns = now_ns() + max_ns;
  while (bell.sequence() == seen && now_ns() < end_ns) {
    if (::nanosleep(&time, nullptr) != 0 && errno != EINTR) return;
  }
}

}  // namespace

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void Doorbell::ring() {
  sequence_.fetch_add(1, std::memory_order_seq_cst);
  // Sequentially consistent with the sleeper's increment: either the sleeper sees the new sequence,
  // or the sleeper is seen here.
  if (sleepers_.load(std::memory_order_seq_cst) != 0) {
    ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&sequence_), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
}

void Doorbell::wait(uint32_t seen, int64_t max_ns) {
  const timespec timeout = to_timespec(max_ns);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (sequence_.load(std::memory_order_seq_cst) == seen) {
    const long result = ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&sequence_), FUTEX_WAIT, seen, &timeout, nullptr, 0);
    if (!has_waited(result)) nap(*this, seen, max_ns);
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

void Doorbell::wait_any(std::span<const Listening> listenings, int64_t max_ns) {
#if defined(SYS_futex_waitv)
  std::array<futex_waitv, kMostListenings> words;
  size_t count = 0;
  for (const Listening &listening : listenings) {
    listening.bell()->sleepers_.fetch_add(1, std::memory_order_seq_cst);
    words[count++] = {listening.seen(), reinterpret_cast<uintptr_t>(&listening.bell()->sequence_), FUTEX_32, 0};
  }
  const bool waited = wait_for_any({words.data(), count}, max_ns);
  for (const Listening &listening : listenings) listening.bell()->sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  if (waited) return;
#endif
  listenings.front().bell()->wait(listenings.front().seen(), max_ns);
}

void Backoff::leave() {
  if (counted_) waiting_loops.fetch_sub(1, std::memory_order_relaxed);
  counted_ = false;
}

void Backoff::pause(std::span<const Listening> listenings) {
  // A few spins suffice if the peer is nearly there. Yields come next: they cost little if no other
  // thread wants the core. If ranks outnumber cores, a yield hands the core to a rank that is
  // waited for.
  static const int64_t cores = online_cores();
  static const int32_t spins = cores > 1 ? 3 : 0;
  constexpr int32_t kYields = 400;
  constexpr int64_t kFirstSleepNs = 50'000;
  constexpr int64_t kLongestSleepNs = 1'000'000;
  // Below 2 * kCrowd waiting loops per core, pauses are unchanged. From there on sleeps grow with
  // the number of loops.
  constexpr int64_t kCrowd = 4;
  constexpr int64_t kMostCrowds = 256;
  if (round_ < spins) {
    ++round_;
    relax();
    return;
  }
  if (manner_ == Manner::in_crowd && !std::exchange(counted_, true)) waiting_loops.fetch_add(1, std::memory_order_relaxed);
  const int64_t waiting = manner_ == Manner::in_crowd ? waiting_loops.load(std::memory_order_relaxed) : 0;
  const int64_t crowds = std::clamp<int64_t>(waiting / (kCrowd * cores), 1, kMostCrowds);
  if (crowds > 1) round_ = std::max(round_, spins + kYields);
  const int32_t round = round_++;
  if (round < spins + kYields) {
    ::sched_yield();
    return;
  }
  const int32_t doublings = std::min(round - spins - kYields, 5);
  const int64_t sleep_ns = std::min(kFirstSleepNs << doublings, kLongestSleepNs) * crowds;
  if (listenings.size() > 1) {
    Doorbell::wait_any(listenings, sleep_ns);
  } else if (listenings.size() == 1 && listenings.front().bell() != nullptr) {
    listenings.front().bell()->wait(listenings.front().seen(), sleep_ns);
  } else {
    const timespec time = to_timespec(sleep_ns);
    ::nanosleep(&time, nullptr);
  }
}

}  // namespace zero
