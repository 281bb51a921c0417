/// @file ParamAccess: whole parameters for the caller: acquire, copy, release. Knows the acquired
/// parameters; never how shards are gathered.
#pragma once

#include "core/task.h"
#include "engine/optimizer/parts.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

class ParamAccess {
 public:
  explicit ParamAccess(OptimizerParts &parts) : parts_(parts) {}

  void open(size_t params) { access_.resize(params); }
  void close() { access_.clear(); }
  Task acquire(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream);
  Status release(int64_t id);

 private:
  /// The state of a parameter that the caller has acquired.
  struct Access {
    int64_t count = 0;  ///< acquires that were not released
    /// The address that acquire returned. If gathered or decoded, it is valid while count > 0.
    std::byte *data = nullptr;
    bool pooled = false;               ///< the pool owns data
    std::vector<void *> streams = {};  ///< device streams on which the parameter is used
  };

  Task acquire_counted(Task body, int64_t id, CallGuard::Counted queued);
  Task acquire_body(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream);
  bool holds_param(int64_t id) const;
  Status follow_user(void *stream) const;
  Status follow_one_of_users(void *stream) const;

  OptimizerParts &parts_;
  std::vector<Access> access_;  ///< by parameter
};

}  // namespace zero
