/// @file GatherStrategy: how the parts of parameters that ranks hold or have updated reach the
/// ranks that need them whole. Knows where parts lie; never when they change.
#pragma once

#include "core/task.h"
#include "group/group.h"
#include "memory/arena.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace zero {

/// An optimizer picks its strategies once, in ParamGatherer. Used by one thread at a time.
class GatherStrategy {
 public:
  virtual ~GatherStrategy() = default;

  /// @name Whole parameters, everywhere. Collectives, one at a time.
  /// @{
  /// A bucket that all ranks hold and of which each has updated its cut, or cuts that the ranks of
  /// `group` hold alike and of which each has updated one.
  virtual Task bucket(Group &group, int64_t index) = 0;
  /// Gathers into `whole` a tensor of which each rank keeps a shard, or decodes one that this rank
  /// has as 8-bit codes.
  virtual Task tensor(Group &group, int64_t id, std::byte *whole) = 0;
  /// @}

  /// This rank's cut of parameters, too, changes in bucket() and not before.
  virtual bool changes_own() const { return false; }
  /// For people, if there is anything to say beside what the stage says. `ranks`: of the group of
  /// gathers.
  virtual std::string text(int64_t /*ranks*/) const { return {}; }

  /// @name Seal
  /// @{
  /// Whether all parameters can be gathered in this way.
  virtual Status check_formats() const { return {}; }
  /// Bytes that open() takes.
  virtual int64_t workspace_nbytes() const { return 0; }
  /// Once slots have memory; `source` is that of slots.
  virtual Status open(const MemorySource &) { return {}; }
  virtual void close() {}
  /// @}
};

}  // namespace zero
