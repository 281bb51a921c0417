/// @file Doorbell: a word that sleepers wait on and others ring, also across processes when it lies in shared memory.
/// Knows nothing of what the ringing means.
#pragma once

#include <atomic>
#include <cstdint>

namespace zero {

/// A zeroed Doorbell is ready for use. While nobody sleeps, nothing of it is written, so that its line stays in everyone's cache.
class Doorbell {
 public:
  /// Wakes every sleeper. Call it after publishing.
  void ring();

  /// Sleeps until it rings or the time has passed, unless ready(), which looks once more: what was published before that look is seen, and
  /// what is published after it rings. ready() throws nothing.
  template <class Ready>
  void sleep_unless(Ready &&ready, int64_t max_ns) {
    const uint32_t seen = enter();
    if (!ready()) sleep(seen, max_ns);
    leave();
  }

 private:
  uint32_t enter();
  void sleep(uint32_t seen, int64_t max_ns);
  void leave();

  std::atomic<uint32_t> rings_{0};  ///< that met sleepers
  std::atomic<uint32_t> sleepers_{0};
};

/// How a waiting loop behaves: spins, then yields, then sleeps on a doorbell (or for a moment, without one).
class Backoff {
 public:
  /// One pause, after the caller has looked and found nothing: spins or yields and returns true, or false when it is time to sleep.
  bool stays_awake();
  /// Sleeps on a doorbell, or for a moment when there is none; ready() as for Doorbell::sleep_unless.
  template <class Ready>
  void sleep(Doorbell *bell, Ready &&ready) {
    if (bell == nullptr) return rest();
    bell->sleep_unless(ready, next_sleep_ns());
  }
  /// One pause in a loop that nobody rings for.
  void pause() {
    if (!stays_awake()) rest();
  }

 private:
  void rest();
  int64_t next_sleep_ns();

  int32_t pauses_ = 0;    ///< awake
  int64_t sleep_ns_ = 0;  ///< of the last sleep
};

}  // namespace zero
