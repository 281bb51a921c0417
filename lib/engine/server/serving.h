/// @file Serving: the loop of a server. Receives the requests of all workers in parallel and serves
/// them one at a time, in the order that PushOrder chooses. Knows links and the part that it holds;
/// never the handles of users.
#pragma once

#include "core/task.h"
#include "engine/server/held_part.h"
#include "engine/server/push_order.h"
#include "engine/server/server_links.h"
#include "engine/server/server_settings.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace zero {

/// Counts of a server's work.
struct ServerCounts {
  ServedCounts served;
  int64_t skipped = 0;
  int64_t waited = 0;
  int64_t received_nbytes = 0;
  int64_t sent_nbytes = 0;
};

class Serving {
 public:
  Serving(const ServerSettings &settings, const ServerLinks &links, HeldPart &part, int64_t rank);

  PushOrder &order() { return order_; }
  const PushOrder &order() const { return order_; }
  ServerCounts counts() const;

  /// Returns once all workers have left or were lost.
  Task run(int64_t deadline_ms);

 private:
  /// The state of one worker in this server.
  struct Seat {
    ServerRequest request;
    std::optional<Operation> listening;  ///< receives the next request
    int64_t arrived_ns = 0;
    bool new_request = false;
    int64_t told_of = -1;  ///< the worker that was named in the last message about its wait
  };
  class Arrivals;
  class Silence;

  /// Half of the deadline, so that a transfer with a stopped worker times out before the workers
  /// that wait meanwhile.
  int64_t transfer_ms() const { return std::max<int64_t>(1, deadline_ms_ / 2); }
  /// True if a lost worker ends the run, because the order needs it.
  bool needs_all() const { return settings_.round_robin || order_.follows(); }
  Task serve_all();
  void listen(int64_t worker);
  Status take_arrivals();
  Status lose(int64_t worker, const Status &cause);
  Task serve(int64_t worker);
  Task serve_push(const ServerLink &link, const ServerRequest &request);
  Task serve_pull(const ServerLink &link);
  bool owes_word(int64_t worker) const;
  Task tell_waiting();
  Seat &seat(int64_t worker) { return seats_[static_cast<size_t>(worker)]; }
  const Seat &seat(int64_t worker) const { return seats_[static_cast<size_t>(worker)]; }
  const ServerLink &link(int64_t worker) const { return links_.all()[static_cast<size_t>(worker)]; }
  int64_t worker_count() const { return static_cast<int64_t>(seats_.size()); }

  const ServerSettings &settings_;
  const ServerLinks &links_;
  HeldPart &part_;
  const int64_t rank_;
  int64_t deadline_ms_ = 0;
  PushOrder order_;
  std::vector<Seat> seats_;
  ServerCounts counts_;
};

}  // namespace zero
