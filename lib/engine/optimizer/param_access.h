/// @file ParamAccess: whole parameters for the caller: acquired, copied, released. Knows who holds what; never how parts become whole.
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
  /// How a parameter is held by the caller.
  struct Access {
    int64_t count = 0;                 ///< acquires without release
    std::byte *data = nullptr;         ///< what was handed out; of what is gathered or decoded, valid while count > 0
    bool pooled = false;               ///< data belongs to the pool
    std::vector<void *> streams = {};  ///< of a device, on which it is used
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
