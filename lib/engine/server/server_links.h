/// @file ServerLinks: a group of two for each pair of a server and a worker, so that one that is lost costs no other; and the words they
/// exchange. Knows ranks; never whose turn it is.
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

/// What a worker asks for. Sent as 64-bit integers.
struct ServerRequest {
  ServerCall call = ServerCall::push;
  int64_t skips = 0;        ///< of a push: it is not finite, so no data follows
  int64_t deadline_ms = 0;  ///< how long the worker waits
  int64_t reserved = 0;
};

/// What a server answers: once to go on, and before that whom the worker waits for.
struct ServerReply {
  int64_t goes = 0;        ///< 1: now the data follows, in the direction of the call
  int64_t rank = 0;        ///< 0 goes: the rank that it waits for
  int64_t rank_clock = 0;  ///< pushes of that rank
  int64_t clock = 0;       ///< pushes of the worker
};

inline constexpr int64_t kServerWords = 4;
static_assert(sizeof(ServerRequest) == kServerWords * sizeof(int64_t) && sizeof(ServerReply) == sizeof(ServerRequest));

/// To one rank of the other role. In the pair, the server is rank 0 and the worker rank 1.
struct ServerLink {
  std::shared_ptr<Group> group;
  int64_t rank;  ///< of the other, in the whole group
  int64_t peer;  ///< of the other, in the pair

  Task send(const void *words) const { return group->send(words, kServerWords, DType::i64, peer); }
  Task recv(void *words) const { return group->recv(words, kServerWords, DType::i64, peer); }
  Task send_values(const float *values, int64_t count) const { return group->send(values, count, DType::f32, peer); }
  Task recv_values(float *values, int64_t count) const { return group->recv(values, count, DType::f32, peer); }
};

class ServerLinks {
 public:
  /// Makes them: of a server one for each worker by rank, of a worker one for each server by rank. A collective.
  Task open(Group &whole, int64_t servers);
  std::span<const ServerLink> all() const { return links_; }
  /// Waits last so long from now on.
  void set_deadline_ms(int64_t milliseconds) const;
  /// Tells all that this rank gives up.
  void fail(const Status &cause) const;

 private:
  std::vector<ServerLink> links_;
};

/// Tasks over several links that go on beside one another. Once one has failed, all links are given up.
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
