/// @file Doorbell: a word that sleepers wait on and other threads ring, also across processes if it
/// is in shared memory. Knows nothing of the meaning of a ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace zero {

class Listening;

/// A zeroed Doorbell is ready for use. Ring after publishing. Read sequence() before checking the
/// condition, so that no ring is missed.
class Doorbell {
 public:
  uint32_t sequence() const { return sequence_.load(std::memory_order_acquire); }

  /// Wakes every sleeper. Costs a load and an add if nobody sleeps.
  void ring();

  /// Sleeps until the sequence differs from `seen` or the time has passed.
  void wait(uint32_t seen, int64_t max_ns);

  /// Sleeps until one of at most kMostListenings bells differs from the sequence seen, or the time
  /// has passed. If the system can wait for one word only, it waits for the first bell.
  static void wait_any(std::span<const Listening> listenings, int64_t max_ns);
  static constexpr size_t kMostListenings = 16;

 private:
  std::atomic<uint32_t> sequence_{0};
  std::atomic<uint32_t> sleepers_{0};
};

/// A doorbell and the sequence that it had before a waiting loop checked its condition. Without a
/// bell it is never rung.
class Listening {
 public:
  Listening() = default;
  explicit Listening(Doorbell *bell) : bell_(bell), seen_(bell != nullptr ? bell->sequence() : 0) {}

  Doorbell *bell() const { return bell_; }
  uint32_t seen() const { return seen_; }

 private:
  Doorbell *bell_ = nullptr;
  uint32_t seen_ = 0;
};

/// One spin of a loop that waits for another core.
void relax();

/// The pauses of a waiting loop: it spins, then yields, then sleeps on doorbells, or for a moment
/// without one. If many loops of this process wait at once, they do not yield, and sleeps grow with
/// their number per core: the threads that they wait for need cores as well.
class Backoff {
 public:
  enum class Manner {
    in_crowd,  ///< one of many loops
    alone,     ///< a loop that all others wait for
  };
  explicit Backoff(Manner manner = Manner::in_crowd) : manner_(manner) {}
  Backoff(const Backoff &) = delete;
  ~Backoff() { leave(); }

  /// Makes the next pause the shortest again.
  void begin_anew() {
    leave();
    round_ = 0;
  }

  /// Pauses once. `listenings` were made before the condition was checked.
  void pause(std::span<const Listening> listenings);
  void pause(const Listening &listening = {}) { pause({&listening, 1}); }

 private:
  void leave();

  const Manner manner_;
  int32_t round_ = 0;
  bool counted_ = false;  ///< this loop is counted among the waiting ones
};

}  // namespace zero
