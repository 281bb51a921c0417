/// @file Server: one rank's part in parameter servers, as a server or as a worker. Knows phases and
/// roles; never handles.
#pragma once

#include "core/config.h"
#include "core/partition.h"
#include "core/task.h"
#include "engine/server/held_part.h"
#include "engine/server/server_links.h"
#include "engine/server/server_settings.h"
#include "engine/server/serving.h"
#include "engine/server/worker_calls.h"
#include "group/group.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace zero {

/// Tasks run in queue(). The object must outlive them. NULL checks are the caller's.
class Server {
 public:
  static Status create(std::shared_ptr<Group> group, const Config &config, int64_t count, std::shared_ptr<Server> *out);

  const std::shared_ptr<OperationQueue> &queue() const { return queue_; }
  const std::shared_ptr<Group> &group() const { return group_; }
  int64_t count() const { return settings_.count; }

  Task seal();

  /// @name On a server
  /// @{
  struct Shard {
    float *data;
    Range range;
  };
  Status shard(Shard *out) const;
  Status replay(std::span<const uint16_t> record);
  Status record(std::span<const uint16_t> *out) const;
  /// `out` may be nullptr.
  Task run(ServerCounts *out);
  /// @}

  /// @name On a worker
  /// @{
  Task push(const float *values);
  Task pull(float *values);
  Task leave();
  /// @}

 private:
  enum class Phase { created, sealed, ended };

  Server(std::shared_ptr<Group> group, ServerSettings settings) : group_(std::move(group)), settings_(std::move(settings)) {}
  bool serves() const { return group_->rank() < settings_.server_count; }
  Status check_role(const char *function, bool server) const;
  Status check_phase(const char *function, Phase phase) const;
  Task seal_body();
  Status allocate();
  /// Stores an error after which this object cannot be used.
  Status keep(Status status);

  const std::shared_ptr<Group> group_;
  const ServerSettings settings_;
  const std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  Phase phase_ = Phase::created;
  Status failure_;
  std::vector<Range> parts_;  ///< by server
  std::optional<HeldPart> held_;
  ServerLinks links_;
  std::optional<Serving> serving_;
  std::optional<WorkerCalls> calls_;
};

}  // namespace zero
