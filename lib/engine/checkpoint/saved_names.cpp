/// @file Finds slots, dtypes and facts, and lists names.
#include "engine/checkpoint/saved_names.h"

#include <algorithm>

namespace zero {
namespace {

constexpr size_t kMostNames = 20;

}  // namespace

std::string WrongNames::text() const {
  std::string text;
  for (size_t i = 0; i < std::min(names_.size(), kMostNames); ++i) text += (i > 0 ? ", " : "") + names_[i];
  return names_.size() > kMostNames ? text + " ..." : text;
}

void WrongNames::list(const char *what, std::string *out) const {
  for (const std::string &name : names_) *out += std::string(what) + " " + name + "\n";
}

bool dtype_in(const checkpoint::SavedSlot &slot, DType *out) {
  if (!slot.true_type.empty()) {
    *out = DType::f8ue5m3;
    return slot.true_type == dtype_name(DType::f8ue5m3);
  }
  const auto dtype = checkpoint::dtype_of(slot.type);
  if (dtype.has_value()) *out = *dtype;
  return dtype.has_value();
}

const checkpoint::SavedSlot *find_slot(const checkpoint::SavedTensor &tensor, const char *name, int64_t *out_index) {
  for (size_t index = 0; index < tensor.slots.size(); ++index) {
    if (tensor.slots[index].name != name) continue;
    *out_index = static_cast<int64_t>(index);
    return &tensor.slots[index];
  }
  return nullptr;
}

std::string shape_text(const std::vector<int64_t> &shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string fact(const checkpoint::Facts &facts, const std::string &key) {
  const auto found = facts.find(key);
  return found != facts.end() ? found->second : "";
}

}  // namespace zero
