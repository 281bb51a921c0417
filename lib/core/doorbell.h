/// @file Doorbell: a word that sleepers wait on and others ring, also across processes when it lies in shared memory.
/// Knows nothing of what the ringing means.
#pragma once

#include <atomic>
#include <cstdint>

namespace zero {

/// A zeroed Doorbell is ready for use. Ring after publishing; read sequence() before looking, so that no ring is missed.
class Doorbell {
 public:
  uint32_t sequence() const { return sequence_.load(std::memory_order_acquire); }

  /// Wakes every sleeper. A load and an add when nobody sleeps.
  void ring();

  /// Sleeps until the sequence differs from `seen` or the time has passed.
  void wait(uint32_t seen, int64_t max_ns);

 private:
  std::atomic<uint32_t> sequence_{0};
  std::atomic<uint32_t> sleepers_{0};
};

/// One moment of a loop that waits for another core.
void relax();

/// How a waiting loop behaves: spins, then yields, then sleeps on a doorbell (or for a moment, without one).
class Backoff {
 public:
  /// One pause. `bell` may be nullptr; `seen` is its sequence as read before the caller looked.
  void pause(Doorbell *bell, uint32_t seen);

 private:
  int32_t round_ = 0;
};

}  // namespace zero
