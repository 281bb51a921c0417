/// @file handles: libzero's handles as owners, and its errors as exceptions.
/// Knows nothing of frameworks.
#pragma once

#include <zero/zero.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

#include "memory.h"

namespace embedding {

class Error : public std::runtime_error {
 public:
  Error(int32_t status, const std::string &text) : std::runtime_error(zero_status_name(status) + (": " + text)), status_(status) {}
  int32_t status() const { return status_; }

 private:
  int32_t status_;
};

/// Throws when a call failed. On the thread that made the call, before it makes another.
inline void check(int32_t status) {
  if (status == ZERO_OK) return;
  char text[1024];
  zero_last_error_copy(text, sizeof text);
  throw Error(status, text);
}

template <auto release>
struct Release {
  template <typename T>
  void operator()(T *handle) const {
    release(handle);
  }
};

using GroupHandle = std::unique_ptr<zero_group, Release<zero_group_release>>;
using ConfigHandle = std::unique_ptr<zero_config, Release<zero_config_release>>;
using OptimizerHandle = std::unique_ptr<zero_optimizer, Release<zero_optimizer_release>>;

inline ConfigHandle make_config() {
  zero_config *config = nullptr;
  check(zero_config_create(&config));
  return ConfigHandle(config);
}

inline OptimizerHandle make_optimizer(zero_group *group, const ConfigHandle &config) {
  zero_optimizer *optimizer = nullptr;
  check(zero_optimizer_create(group, config.get(), &optimizer));
  return OptimizerHandle(optimizer);
}

/// Ends the other ranks' waiting when this rank leaves a scope by an exception. Declared after the owners of what is made from the group,
/// so that they are released afterwards: releasing may wait for the other ranks.
class AbortOnThrow {
 public:
  explicit AbortOnThrow(zero_group *group) : group_(group) {}
  ~AbortOnThrow() {
    if (std::uncaught_exceptions() > before_) zero_group_abort(group_, "a rank gave up; see its own message");
  }
  AbortOnThrow(const AbortOnThrow &) = delete;
  AbortOnThrow &operator=(const AbortOnThrow &) = delete;

 private:
  zero_group *group_;
  int before_ = std::uncaught_exceptions();
};

/// What a rank's mean gradient over `samples` counts against the other ranks': 1 when all have as many, so that nothing is rounded then.
/// A collective.
inline double weight_of(zero_group *group, int64_t samples) {
  int64_t ranks = 0;
  int64_t total = 0;
  check(zero_group_size(group, &ranks));
  check(zero_group_all_reduce(group, &samples, 1, &total, 1, ZERO_DTYPE_I64, ZERO_REDUCE_SUM, nullptr));
  return total == 0 ? 1.0 : static_cast<double>(samples * ranks) / static_cast<double>(total);
}

/// What a rank's optimizer keeps; pools at their peak.
inline Memory memory_of(const zero_optimizer *optimizer) {
  const auto stats_of = [optimizer](int32_t category) {
    zero_memory_stats stats;
    check(zero_memory_stats_init(&stats, sizeof stats));
    check(zero_stats_optimizer_memory(optimizer, category, &stats));
    return stats;
  };
  Memory memory;
  memory.parameters = stats_of(ZERO_MEMORY_PARAM).now_nbytes;
  memory.gradients = stats_of(ZERO_MEMORY_GRAD).now_nbytes;
  memory.states = stats_of(ZERO_MEMORY_STATE).now_nbytes;
  memory.pools = stats_of(ZERO_MEMORY_PARAM_POOL).peak_nbytes + stats_of(ZERO_MEMORY_GRAD_POOL).peak_nbytes;
  memory.staging = stats_of(ZERO_MEMORY_STAGING).now_nbytes;
  return memory;
}

}  // namespace embedding
