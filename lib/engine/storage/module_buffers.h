/// @file ModuleBuffers: tensors beside the parameters that a model keeps on every rank, such as
/// statistics of normalisations, and their synchronisation between ranks. Knows no gradients and no
/// updates.
#pragma once

#include "core/dtype.h"
#include "core/task.h"
#include "group/group.h"
#include "memory/arena.h"

#include <zero/optimizer.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zero {

struct ModuleBuffer {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t count;
  int32_t rule;  ///< a zero_sync
  /// Full tensor on every rank; nullptr before seal and without elements.
  std::byte *data = nullptr;

  int64_t nbytes() const { return count * dtype_nbytes(dtype); }
};

class ModuleBuffers {
 public:
  Status add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id);
  bool has(std::string_view name) const;
  Status check_id(int64_t id) const;
  const ModuleBuffer &operator[](int64_t id) const { return buffers_[static_cast<size_t>(id)]; }
  int64_t size() const { return static_cast<int64_t>(buffers_.size()); }
  /// One line per buffer.
  std::string text() const;

  /// Allocates all buffers, filled with zero.
  Status allocate(const MemorySource &source);
  void release();
  /// Bytes of all buffers without padding.
  int64_t formula_nbytes() const;

  /// Synchronises all buffers by their rules, with one collective per rule and dtype.
  Task sync(Group &group) const;

 private:
  /// Contiguous buffers of one rule and dtype.
  struct Run {
    int32_t rule;
    DType dtype;
    std::byte *data;
    int64_t nbytes;
  };

  std::vector<ModuleBuffer> buffers_;
  std::vector<Run> runs_;
  Arena arena_;
};

}  // namespace zero
