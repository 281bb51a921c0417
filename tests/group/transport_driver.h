/// @file Drives a transport in tests as a group would: rounds, quiet and messages with a deadline of the caller.
/// Knows transports, not groups.
#pragma once

#include "core/clock.h"
#include "core/task.h"
#include "group/transport.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero::test {

inline constexpr int64_t kWaitMs = 20'000;

/// Runs a task to its end on this thread.
inline Status run_task(Task task) {
  OperationQueue queue;
  return queue.run(std::move(task));
}

/// Waits until a poll function is ready, fails, or the deadline has passed (ZERO_E_TIMEOUT).
inline Status await(Transport &transport, const std::function<Status(bool *)> &poll, int64_t deadline_ms = kWaitMs) {
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  Backoff backoff;
  for (;;) {
    const Listening listening(transport.peers().doorbell());
    bool ready = false;
    ZERO_TRY(poll(&ready));
    if (ready) return {};
    ZERO_CHECK(!deadline.passed(), ZERO_E_TIMEOUT, "the test waited %lld ms", static_cast<long long>(deadline_ms));
    backoff.pause(listening);
  }
}

inline Status await_failure(Transport &transport) {
  return await(transport, [&](bool *) { return transport.peers().health(); });
}

/// One round: `look` sees the arrivals before they are given back.
inline Status round(Transport &transport, const Fingerprint *fingerprint, const std::vector<Offer> &offers, std::vector<Arrival> arrivals,
                    const std::function<void(const std::vector<Arrival> &)> &look = {}, int64_t deadline_ms = kWaitMs) {
  ZERO_TRY(transport.rounds().start(fingerprint, offers, arrivals));
  ZERO_TRY(await(
      transport, [&](bool *ready) { return transport.rounds().poll(ready); }, deadline_ms));
  if (look) look(arrivals);
  transport.rounds().consume();
  return {};
}

inline Fingerprint call(OperationKind kind, uint64_t sequence, int64_t count = 0) {
  Fingerprint fingerprint;
  fingerprint.kind = kind;
  fingerprint.sequence = sequence;
  fingerprint.count = count;
  return fingerprint;
}

/// A barrier as a group would run it.
inline Status barrier(Transport &transport, uint64_t sequence, int64_t deadline_ms = kWaitMs) {
  const Fingerprint fingerprint = call(OperationKind::barrier, sequence);
  transport.peers().publish(&fingerprint);
  const auto size = static_cast<size_t>(transport.size());
  Status status = round(transport, &fingerprint, std::vector<Offer>(size), std::vector<Arrival>(size), {}, deadline_ms);
  if (status.code() == ZERO_E_TIMEOUT) {
    // Another rank may have been faster to say so.
    status = transport.peers().health();
    if (status.ok()) status = Status::error(ZERO_E_TIMEOUT, "%s", transport.peers().progress_report(fingerprint).c_str());
  }
  transport.peers().publish(nullptr);
  return status;
}

inline Status quiet(Transport &transport, int64_t deadline_ms = kWaitMs) {
  return await(
      transport, [&](bool *ready) { return transport.rounds().poll_quiet(ready); }, deadline_ms);
}

inline Status send(Transport &transport, int64_t peer, const Fingerprint &fingerprint, const void *data, int64_t nbytes,
                   int64_t deadline_ms = kWaitMs) {
  ZERO_TRY(transport.messages().send_start(peer, fingerprint, {data, nbytes}));
  return await(
      transport, [&](bool *ready) { return transport.messages().send_poll(peer, ready); }, deadline_ms);
}

inline Status recv(Transport &transport, int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes,
                   int64_t deadline_ms = kWaitMs) {
  ZERO_TRY(transport.messages().recv_start(peer, fingerprint, data, nbytes));
  return await(
      transport, [&](bool *ready) { return transport.messages().recv_poll(peer, ready); }, deadline_ms);
}

}  // namespace zero::test
