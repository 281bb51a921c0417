/// @file Params: the registered tensors and the order in which their gradients are expected. Knows no memory and no ranks.
#pragma once

#include "core/dtype.h"
#include "core/status.h"

#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace zero {

struct Param {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  int64_t count;

  /// "fc1.weight f32[10, 4]".
  std::string text() const;
};

class Params {
 public:
  Status add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id);
  /// `ids` must hold every parameter exactly once.
  Status set_order(std::span<const int64_t> ids);

  int64_t size() const { return static_cast<int64_t>(params_.size()); }
  const Param &operator[](int64_t id) const { return params_[static_cast<size_t>(id)]; }
  Status check_id(int64_t id) const;

  /// Ids in the order in which gradients become ready: the one that was set, or last registered first.
  std::vector<int64_t> order() const;

 private:
  std::vector<Param> params_;
  std::unordered_set<std::string> names_;
  std::vector<int64_t> order_;
};

}  // namespace zero
