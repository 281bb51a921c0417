/// @file Trace: the newest events of an optimizer and their times, in the Chrome trace format
/// (JSON), which Perfetto shows. Knows nothing of the meaning of events.
#pragma once

#include "core/clock.h"

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace zero {

/// Off until it is opened; then any thread may record and read.
class Trace {
 public:
  /// The row that shows the event. Two events of one track either do not overlap, or one contains
  /// the other.
  enum class Track { gradients, operations, reductions, gathers };
  /// The meaning of an event's index.
  enum class About { nothing, param, bucket };

  struct Event {
    const char *what;  ///< a string literal
    Track track;
    About about;
    int64_t index;
    int64_t begin_ns;  ///< now_ns()
    int64_t end_ns;
  };

  /// Allocates room for this many events, so that recording allocates nothing; 0 leaves the trace
  /// off. May throw std::bad_alloc.
  void open(int64_t most);
  bool on() const { return most_ > 0; }
  void record(const Event &event);
  /// `name_of` returns the name of a parameter. May throw std::bad_alloc.
  std::string text(int64_t rank, const std::function<const std::string &(int64_t)> &name_of) const;

 private:
  std::vector<Event> in_order() const;

  int64_t most_ = 0;
  mutable std::mutex mutex_;
  std::vector<Event> ring_;
  size_t next_ = 0;  ///< place of the next event, once the ring is full
};

/// Records the time from its construction to its destruction.
class TraceSpan {
 public:
  explicit TraceSpan(Trace &trace, const char *what, Trace::Track track = Trace::Track::operations,
                     Trace::About about = Trace::About::nothing, int64_t index = -1)
      : trace_(trace), event_{what, track, about, index, trace.on() ? now_ns() : 0, 0} {}
  TraceSpan(const TraceSpan &) = delete;
  ~TraceSpan() {
    if (!trace_.on()) return;
    event_.end_ns = now_ns();
    trace_.record(event_);
  }

 private:
  Trace &trace_;
  Trace::Event event_;
};

}  // namespace zero
