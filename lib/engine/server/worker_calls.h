/// @file WorkerCalls: the push, pull and leave of a worker, over all links in parallel. Knows the
/// messages of links; never how servers choose.
#pragma once

#include "core/partition.h"
#include "core/task.h"
#include "engine/server/server_links.h"

#include <cstdint>
#include <vector>

namespace zero {

class WorkerCalls {
 public:
  /// `parts`: the ranges of the servers. Both must outlive this object.
  WorkerCalls(const ServerLinks &links, const std::vector<Range> &parts, int64_t rank, int64_t staleness)
      : links_(links), parts_(parts), rank_(rank), staleness_(staleness) {}

  /// `skips`: the values are not finite and are not sent.
  Task push(const float *values, bool skips, int64_t deadline_ms) {
    return over_links(ServerCall::push, values, nullptr, skips, deadline_ms);
  }
  Task pull(float *values, int64_t deadline_ms) { return over_links(ServerCall::pull, nullptr, values, false, deadline_ms); }
  Task leave(int64_t deadline_ms) { return over_links(ServerCall::leave, nullptr, nullptr, false, deadline_ms); }

 private:
  struct Call {
    ServerRequest request;
    const float *pushed;
    float *pulled;
  };

  Task over_links(ServerCall call, const float *pushed, float *pulled, bool skips, int64_t deadline_ms);
  Task over_link(const ServerLink &link, Range part, const Call &call) const;
  Task await_turn(const ServerLink &link, const Call &call, Status *out_blame) const;
  Status named(const Status &status, const ServerLink &link, const Call &call, const Status &blame) const;

  const ServerLinks &links_;
  const std::vector<Range> &parts_;
  const int64_t rank_;
  const int64_t staleness_;
};

}  // namespace zero
