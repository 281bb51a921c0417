/// @file PushOrder: chooses the worker that a server serves next: clocks, the bound of staleness
/// (Ho et al., 2013), rounds, the record of a run and its replay. Arithmetic on counters alone;
/// knows neither links nor memory.
#pragma once

#include "core/status.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

enum class ServerCall : int64_t { push = 1, pull = 2, leave = 3 };

/// Counts of served requests.
struct ServedCounts {
  static constexpr size_t kAgeClasses = 6;  ///< 0, 1, 2 .. 3, 4 .. 7, 8 .. 15, 16 and more
  int64_t pushes = 0;
  int64_t pulls = 0;
  int64_t left = 0;
  int64_t lost = 0;
  int64_t greatest_age = 0;
  std::array<int64_t, kAgeClasses> ages{};
};

/// Workers are numbered from 0. A worker has one request at a time.
class PushOrder {
 public:
  PushOrder(int64_t workers, int64_t staleness, bool round_robin);

  /// Serves in the order of a record. Call before the first request.
  Status follow(std::span<const uint16_t> record);
  bool follows() const { return follows_; }

  /// A request has arrived.
  void arrive(int64_t worker, ServerCall call);
  /// A worker has left, or was lost.
  void end(int64_t worker, bool lost);
  bool any_active() const { return active_ > 0; }
  bool active(int64_t worker) const { return of(worker).active; }

  /// The worker whose request is to be served now, or -1.
  int64_t next() const;
  ServerCall call(int64_t worker) const { return of(worker).call; }
  /// Pushes that were served since the worker last pulled.
  int64_t age(int64_t worker) const { return counts_.pushes - of(worker).pulled; }
  /// The worker's request was served.
  void serve(int64_t worker);

  bool waits(int64_t worker) const { return of(worker).waiting; }
  int64_t clock(int64_t worker) const { return of(worker).clock; }
  /// For error texts: the worker that must act before this one can be served.
  int64_t waits_for(int64_t worker) const;
  /// In a replay: returns ZERO_E_MISMATCH if the requests that have arrived cannot be those of the
  /// record. `first_rank` is the rank of worker 0.
  Status check(int64_t first_rank) const;

  const std::vector<uint16_t> &record() const { return record_; }
  const ServedCounts &counts() const { return counts_; }

 private:
  static constexpr uint16_t kPull = 0x8000;

  struct Worker {
    int64_t clock = 0;    ///< pushes served
    int64_t pulled = 0;   ///< pushes of all workers that were served before its last pull
    int64_t arrived = 0;  ///< sequence number of its request among those of all workers
    ServerCall call = ServerCall::push;
    bool waiting = false;  ///< its request has not been served
    bool active = true;
  };
  const Worker &of(int64_t worker) const { return workers_[static_cast<size_t>(worker)]; }
  bool before(int64_t worker, int64_t other) const { return other < 0 || of(worker).arrived < of(other).arrived; }
  int64_t least_clock() const;
  int64_t next_arrived() const;
  int64_t next_of_round() const;
  int64_t next_of_record() const;
  int64_t recorded_worker() const { return order_[at_] & (kPull - 1); }
  ServerCall recorded_call() const { return (order_[at_] & kPull) != 0 ? ServerCall::pull : ServerCall::push; }

  std::vector<Worker> workers_;
  const int64_t staleness_;
  const bool round_robin_;
  bool follows_ = false;
  std::vector<uint16_t> order_;  ///< the record to follow
  size_t at_ = 0;
  std::vector<uint16_t> record_;
  int64_t active_;
  int64_t arrivals_ = 0;
  ServedCounts counts_;
};

}  // namespace zero
