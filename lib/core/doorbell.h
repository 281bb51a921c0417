/// @file Doorbell: a word that sleepers wait on and others ring, also across processes when it lies in shared memory.
/// Knows nothing of what the ringing means.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace zero {

class Listening;

/// A zeroed Doorbell is ready for use. Ring after publishing; read sequence() before looking, so that no ring is missed.
class Doorbell {
 public:
  uint32_t sequence() const { return sequence_.load(std::memory_order_acquire); }

  /// Wakes every sleeper. A load and an add when nobody sleeps.
  void ring();

  /// Sleeps until the sequence differs from `seen` or the time has passed.
  void wait(uint32_t seen, int64_t max_ns);

  /// Sleeps until one of at most kMostListenings bells differs from what was seen or the time has passed. Where the system can wait for one
  /// word only, that is the first bell's.
  static void wait_any(std::span<const Listening> listenings, int64_t max_ns);
  static constexpr size_t kMostListenings = 16;

 private:
  std::atomic<uint32_t> sequence_{0};
  std::atomic<uint32_t> sleepers_{0};
};

/// A doorbell and its sequence as it was before a waiting loop looked. Without a bell it hears nothing.
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

/// One moment of a loop that waits for another core.
void relax();

/// How a waiting loop behaves: spins, then yields, then sleeps on doorbells (or for a moment, without one). Where many loops of
/// this process wait at once, none yields and sleeps grow with their number per core: what they wait for needs a core as well.
class Backoff {
 public:
  enum class Manner {
    in_crowd,  ///< as one of many
    alone,     ///< for a loop that all others wait for
  };
  explicit Backoff(Manner manner = Manner::in_crowd) : manner_(manner) {}
  Backoff(const Backoff &) = delete;
  ~Backoff() { leave(); }

  /// The next pause is the shortest again.
  void begin_anew() {
    leave();
    round_ = 0;
  }

  /// One pause, after a look that followed the making of `listenings`.
  void pause(std::span<const Listening> listenings);
  void pause(const Listening &listening = {}) { pause({&listening, 1}); }

 private:
  void leave();

  const Manner manner_;
  int32_t round_ = 0;
  bool counted_ = false;  ///< among the loops that wait
};

}  // namespace zero
