/// @file ModuleBuffers: tensors beside the parameters that a model keeps on every rank (statistics of normalisations and the like), and how
/// ranks bring them in line. Knows no gradients and no updates.
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
  int32_t rule;               ///< a zero_sync
  std::byte *data = nullptr;  ///< whole on every rank; nullptr before seal and without elements

  int64_t nbytes() const { return count * dtype_nbytes(dtype); }
};

class ModuleBuffers {
 public:
  Status add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id);
  bool has(std::string_view name) const;
  Status check_id(int64_t id) const;
  const ModuleBuffer &operator[](int64_t id) const { return buffers_[static_cast<size_t>(id)]; }
  int64_t size() const { return static_cast<int64_t>(buffers_.size()); }
  /// One line each.
  std::string text() const;

  /// Makes the memory of all, zero at first.
  Status allocate(const MemorySource &source);
  void release();
  /// Bytes of all without padding.
  int64_t formula_nbytes() const;

  /// Brings all in line, one collective per rule and dtype.
  Task sync(Group &group) const;

 private:
  /// Buffers of one rule and dtype lie end to end.
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
