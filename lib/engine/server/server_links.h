/// @file ServerLinks: a group of two for each pair of a server and a worker, so that a lost rank
/// costs no other; and the messages in it. Knows ranks; never whose turn it is.
#pragma once

#include "core/task.h"
#include "engine/server/push_order.h"
#include "group/group.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace zero {

/// The request of a worker. Sent as 64-bit integers.
struct ServerRequest {
  ServerCall call = ServerCall::push;
  int64_t skips = 0;        ///< for a push: the values are not finite, so no data follows
  int64_t deadline_ms = 0;  ///< how long the worker waits
  int64_t reserved = 0;
};

/// The reply of a server. Replies with goes = 0 name the rank that the worker waits for; the last
/// reply has goes = 1.
struct ServerReply {
  int64_t goes = 0;        ///< 1: the data follows now, in the direction of the call
  int64_t rank = 0;        ///< with goes = 0: the rank that the worker waits for
  int64_t rank_clock = 0;  ///< pushes of that rank
  int64_t clock = 0;       ///< pushes of the worker
};

inline constexpr int64_t kServerWords = 4;
static_assert(sizeof(ServerRequest) == kServerWords * sizeof(int64_t) && sizeof(ServerReply) == sizeof(ServerRequest));

/// A link to one rank of the other role. In the pair, the server is rank 0 and the worker rank 1.
struct ServerLink {
  std::shared_ptr<Group> group;
  int64_t rank;  ///< the other rank, in the whole group
  int64_t peer;  ///< the other rank, in the pair

  Task send(const void *words) const { return group->send(words, kServerWords, DType::i64, peer); }
  Task recv(void *words) const { return group->recv(words, kServerWords, DType::i64, peer); }
  Task send_values(const float *values, int64_t count) const { return group->send(values, count, DType::f32, peer); }
  Task recv_values(float *values, int64_t count) const { return group->recv(values, count, DType::f32, peer); }
};

class ServerLinks {
 public:
  /// Makes the links, ordered by rank: a server has one for each worker, a worker one for each
  /// server. A collective.
  Task open(Group &whole, int64_t servers);
  std::span<const ServerLink> all() const { return links_; }
  /// Sets the deadline of all later waits.
  void set_deadline_ms(int64_t milliseconds) const;
  /// Reports to all peers that this rank gives up.
  void fail(const Status &cause) const;

 private:
  std::vector<ServerLink> links_;
};

/// Tasks over several links that make progress in parallel. Once one has failed, all links fail.
class OverLinks final : public Waitable {
 public:
  explicit OverLinks(const ServerLinks &links) : links_(links) {}
  void add(Task task) { operations_.emplace_back(std::move(task)); }
  Status poll(bool *out_ready) override;
  /// The first error, once ready.
  const Status &failure() const { return failure_; }

 private:
  const ServerLinks &links_;
  std::deque<Operation> operations_;
  Status failure_;
};

}  // namespace zero
