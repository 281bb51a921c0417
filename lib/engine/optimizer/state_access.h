/// @file StateAccess: first values, and reads and writes of slot ranges on any owner: begin,
/// initialisers, read, write, views, verify. After ranks were lost, a read of this rank's own data
/// still works. Knows slots and owners; never steps.
#pragma once

#include "core/task.h"
#include "engine/optimizer/parts.h"
#include "engine/stats/results.h"

#include <zero/optimizer.h>

#include <cstddef>
#include <cstdint>

namespace zero {

class StateAccess {
 public:
  explicit StateAccess(OptimizerParts &parts) : parts_(parts) {}

  /// @name Bodies of tasks
  /// @{
  Task begin(int32_t source);  // a zero_source
  Task write(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count);
  Task verify(zero_verify_result *out, void *stream);
  Task sync_module_buffers();
  /// @}
  Task read(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count, void *stream);
  Status init_param(int64_t id, int32_t initialiser, double a, double b, int64_t seed);
  Status slot_count(int64_t id, int64_t *out) const;
  Status slot(int64_t id, int64_t index, SlotInfo *out) const;
  Status view_count(int64_t *out) const;
  Status view(int64_t index, int32_t slot, View *out) const;
  Status module_buffer(int64_t id, void **out_data, int64_t *out_count) const;

 private:
  Status find_slot(int32_t number, int64_t id, const Slot **out) const;
  Status check_entries(int64_t id, int32_t slot, int64_t offset, int64_t count, const Slot **out) const;
  Status check_read(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count, const Slot **out) const;
  Task read_body(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count);
  Task write_entries(const Slot &slot, int64_t id, Range range, const void *data, bool *out_any);
  const Slot *unwritten_remainder(int64_t id) const;
  Task any_edited(bool *out);

  /// @name Reads after other ranks were lost (salvage.cpp)
  /// @{
  std::byte *entries_here(const Slot &slot, int64_t id, Range range, bool *out_follows) const;
  Task read_or_salvage(Task reads, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count);
  /// @}

  OptimizerParts &parts_;
};

}  // namespace zero
