/// @file Choosing the next request.
#include "engine/server/push_order.h"

#include <algorithm>
#include <bit>

namespace zero {
namespace {

size_t age_class(int64_t age) {
  return std::min<size_t>(static_cast<size_t>(std::bit_width(static_cast<uint64_t>(age))), ServedCounts::kAgeClasses - 1);
}

const char *call_name(ServerCall call) { return call == ServerCall::pull ? "pull" : "push"; }

}  // namespace

PushOrder::PushOrder(int64_t workers, int64_t staleness, bool round_robin)
    : workers_(static_cast<size_t>(workers)), staleness_(staleness), round_robin_(round_robin), active_(workers) {}

Status PushOrder::follow(std::span<const uint16_t> record) {
  for (size_t i = 0; i < record.size(); ++i) {
    const int64_t worker = record[i] & (kPull - 1);
    ZERO_CHECK(worker < std::ssize(workers_), ZERO_E_INVALID_ARGUMENT,
               "element %zu of the record is of worker %lld, but there are %lld workers; give a server the record of the same server", i,
               lld(worker), lld(std::ssize(workers_)));
  }
  order_.assign(record.begin(), record.end());
  follows_ = true;
  return {};
}

void PushOrder::arrive(int64_t worker, ServerCall call) {
  Worker &each = workers_[static_cast<size_t>(worker)];
  each.call = call;
  each.waiting = true;
  each.arrived = ++arrivals_;
}

void PushOrder::end(int64_t worker, bool lost) {
  Worker &each = workers_[static_cast<size_t>(worker)];
  each.active = false;
  each.waiting = false;
  --active_;
  ++(lost ? counts_.lost : counts_.left);
}

int64_t PushOrder::least_clock() const {
  int64_t least = INT64_MAX;
  for (const Worker &each : workers_) {
    if (each.active) least = std::min(least, each.clock);
  }
  return least;
}

int64_t PushOrder::next() const {
  if (follows_) return next_of_record();
  return round_robin_ ? next_of_round() : next_arrived();
}

/// The earliest request of the workers within the bound.
int64_t PushOrder::next_arrived() const {
  const int64_t least = least_clock();
  int64_t first = -1;
  for (int64_t worker = 0; worker < std::ssize(workers_); ++worker) {
    if (of(worker).waiting && of(worker).clock - least <= staleness_ && before(worker, first)) first = worker;
  }
  return first;
}

/// First the pulls of workers with the least clock. A push is served only once all workers of its
/// round have sent theirs; workers with a greater clock were served in it already.
int64_t PushOrder::next_of_round() const {
  const int64_t round = least_clock();
  int64_t push = -1;
  bool complete = true;
  for (int64_t worker = 0; worker < std::ssize(workers_); ++worker) {
    const Worker &each = of(worker);
    if (!each.active || each.clock != round) continue;
    if (each.waiting && each.call == ServerCall::pull) return worker;
    complete = complete && each.waiting;
    if (push < 0) push = worker;
  }
  return complete ? push : -1;
}

int64_t PushOrder::next_of_record() const {
  if (at_ == order_.size()) return -1;
  const int64_t worker = recorded_worker();
  return of(worker).waiting && of(worker).call == recorded_call() ? worker : -1;
}

void PushOrder::serve(int64_t worker) {
  Worker &each = workers_[static_cast<size_t>(worker)];
  const bool pull = each.call == ServerCall::pull;
  if (!round_robin_) record_.push_back(static_cast<uint16_t>(worker) | (pull ? kPull : uint16_t{0}));
  if (follows_) ++at_;
  each.waiting = false;
  if (pull) {
    each.pulled = counts_.pushes;
    ++counts_.pulls;
    return;
  }
  const int64_t old = age(worker);
  counts_.greatest_age = std::max(counts_.greatest_age, old);
  ++counts_.ages[age_class(old)];
  ++counts_.pushes;
  ++each.clock;
}

int64_t PushOrder::waits_for(int64_t worker) const {
  if (follows_) return at_ < order_.size() ? recorded_worker() : worker;
  int64_t slowest = -1;
  for (int64_t other = 0; other < std::ssize(workers_); ++other) {
    const Worker &each = of(other);
    if (!each.active || other == worker || each.waiting) continue;
    if (slowest < 0 || each.clock < of(slowest).clock) slowest = other;
  }
  return slowest < 0 ? worker : slowest;
}

Status PushOrder::check(int64_t first_rank) const {
  if (!follows_) return {};
  for (int64_t worker = 0; worker < std::ssize(workers_); ++worker) {
    ZERO_CHECK(at_ < order_.size() || !of(worker).waiting, ZERO_E_MISMATCH,
               "the record has %zu requests and all were served, but rank %lld comes with a %s; replay a run of the same length",
               order_.size(), lld(first_rank + worker), call_name(of(worker).call));
  }
  if (at_ == order_.size()) return {};
  const Worker &due = of(recorded_worker());
  const auto rank = lld(first_rank + recorded_worker());
  ZERO_CHECK(due.active, ZERO_E_MISMATCH, "request %zu of the record is a %s of rank %lld, which has left; replay a run of the same length",
             at_, call_name(recorded_call()), rank);
  ZERO_CHECK(!due.waiting || due.call == recorded_call(), ZERO_E_MISMATCH,
             "request %zu of the record is a %s of rank %lld, which comes with a %s; replay makes the calls of the recorded run", at_,
             call_name(recorded_call()), rank, call_name(due.call));
  return {};
}

}  // namespace zero
