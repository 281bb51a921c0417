/// @file The ring of events, and its text: "Trace Event Format" (Google, 2016), complete events
/// ("ph": "X") in microseconds.
#include "engine/stats/trace.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace zero {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char *, 4> kTracks = {"gradients given", "operations", "reductions", "gathers"};

Json name_event(const char *what, int64_t rank, size_t track, const std::string &name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", track}, {"args", {{"name", name}}}};
}

double microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

}  // namespace

void Trace::open(int64_t most) {
  ring_.reserve(static_cast<size_t>(most));
  most_ = most;
}

void Trace::record(const Event &event) {
  const std::lock_guard lock(mutex_);
  if (ring_.size() < static_cast<size_t>(most_)) {
    ring_.push_back(event);
    return;
  }
  ring_[next_] = event;
  next_ = (next_ + 1) % ring_.size();
}

std::vector<Trace::Event> Trace::in_order() const {
  const std::lock_guard lock(mutex_);
  std::vector<Event> events(ring_);
  std::rotate(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(next_), events.end());
  return events;
}

std::string Trace::text(int64_t rank, const std::function<const std::string &(int64_t)> &name_of) const {
  Json events = Json::array();
  events.push_back(name_event("process_name", rank, 0, "rank " + std::to_string(rank)));
  for (size_t track = 0; track < kTracks.size(); ++track) events.push_back(name_event("thread_name", rank, track, kTracks[track]));
  for (const Event &event : in_order()) {
    std::string name = event.what;
    if (event.about == About::bucket) name += " " + std::to_string(event.index);
    if (event.about == About::param) name += " " + name_of(event.index);
    events.push_back({{"ph", "X"},
                      {"name", name},
                      {"cat", event.what},
                      {"pid", rank},
                      {"tid", static_cast<int>(event.track)},
                      {"ts", microseconds(event.begin_ns)},
                      {"dur", microseconds(event.end_ns - event.begin_ns)}});
  }
  // Bytes of names that are not UTF-8 are replaced.
  return Json{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace zero
