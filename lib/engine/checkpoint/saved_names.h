/// @file Names in a save: finds them, and lists those that do not match.
#pragma once

#include "checkpoint/description.h"
#include "core/dtype.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// The place of a tensor in a save.
struct SavedPlace {
  int64_t section = -1;
  int64_t tensor = -1;
};

/// Names with the same fault. Messages show the first of them.
class WrongNames {
 public:
  void add(std::string name) { names_.push_back(std::move(name)); }
  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  std::string text() const;
  /// Adds one line for each name: `what` and the name.
  void list(const char *what, std::string *out) const;

 private:
  std::vector<std::string> names_;
};

/// Finds the dtype of a slot in the save. Returns false if this library has no such dtype.
bool dtype_in(const checkpoint::SavedSlot &slot, DType *out);

/// Returns nullptr if the tensor has no such slot.
const checkpoint::SavedSlot *find_slot(const checkpoint::SavedTensor &tensor, const char *name, int64_t *out_index);

/// The shape for messages: "[2, 3]".
std::string shape_text(const std::vector<int64_t> &shape);

/// Returns "" if the save does not have the fact.
std::string fact(const checkpoint::Facts &facts, const std::string &key);

}  // namespace zero
