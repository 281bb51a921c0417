/// @file SavedThings: the optimizers, buffers, tensors and texts of the program that are saved and
/// loaded together. Knows their names and the places of their bytes; never files, nor how ranks
/// agree.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/file_plan.h"
#include "engine/buffer/buffer.h"
#include "engine/optimizer/saved_state.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

class SavedThings {
 public:
  struct SavedOptimizer {
    std::string prefix;
    SavedState state;
  };
  struct SavedBuffer {
    std::string name;
    std::shared_ptr<Buffer> buffer;
  };
  /// A tensor of the program, or a module buffer.
  struct Extra {
    std::string name;  ///< in files
    DType dtype;
    std::vector<int64_t> shape;
    int64_t count;
    checkpoint::Scope scope;
    std::byte *data;
  };

  explicit SavedThings(std::shared_ptr<Group> group) : group_(std::move(group)) {}

  /// @name Registration
  /// @{
  Status add_optimizer(const std::string &prefix, std::shared_ptr<Optimizer> optimizer);
  Status add_buffer(const char *name, std::shared_ptr<Buffer> buffer);
  Status add_tensor(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, void *data, int32_t scope);
  /// nullptr removes the text.
  Status set_text(const char *key, const char *text);
  Status get_text(const char *key, std::string *out) const;
  /// @}

  const std::shared_ptr<Group> &group() const { return group_; }
  const std::vector<SavedOptimizer> &optimizers() const { return optimizers_; }
  const std::vector<SavedBuffer> &buffers() const { return buffers_; }
  checkpoint::Facts &texts() { return texts_; }
  /// Steps that the first optimizer has applied.
  int64_t step() const { return optimizers_.empty() ? 0 : optimizers_.front().state.applied_count(); }
  /// Module buffers of all optimizers, then the program's tensors.
  std::vector<Extra> extras() const;
  /// The properties that must be equal on all ranks, one line each.
  std::string text() const;

  /// Sections, optimizers first and carried values last, and extras.
  void describe(bool model_files, checkpoint::SaveDescription *out) const;

  /// @name By a section's number
  /// @{
  /// The optimizer whose slots it has; nullptr: it has none.
  const SavedState *state(int64_t section) const;
  /// True if this rank has all elements of an entry of a file.
  bool has(const checkpoint::SaveDescription &description, const checkpoint::EntrySource &entry) const;
  /// Copies entries of a slot from `first` on. This rank must have them.
  Status copy(const checkpoint::SaveDescription &description, int64_t section, int64_t tensor, int64_t slot, int64_t first,
              std::span<std::byte> out) const;
  /// @}

 private:
  Status check_name(const char *what, const std::string &name) const;
  Status check_group(const char *what, const Group &group) const;

  const std::shared_ptr<Group> group_;
  std::vector<SavedOptimizer> optimizers_;
  std::vector<SavedBuffer> buffers_;
  std::vector<Extra> tensors_;
  checkpoint::Facts texts_;
};

}  // namespace zero
