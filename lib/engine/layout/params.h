/// @file Params: the registered tensors and the order in which their gradients are expected. Knows no memory and no ranks.
#pragma once

#include "core/dtype.h"
#include "core/status.h"
#include "engine/config/precision.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace zero {

/// Of all tensors of a kind together: the bytes of all their slots stay within 63 bits.
inline constexpr int64_t kMostElements = int64_t{1} << 56;

/// What a tensor is registered with beside its name and shape.
struct ParamOptions {
  int64_t set = 0;
  bool frozen = false;
  bool replicated = false;  ///< every rank of the model group holds the same
  bool by_rows = false;     ///< gradients are given and reduced by rows
  int64_t tied_to = -1;     ///< the parameter whose memory this one shares
  Precision precision;
};

struct Param {
  std::string name;  ///< as texts tell it (quoted_name)
  DType dtype;
  std::vector<int64_t> shape;
  int64_t count;
  ParamOptions options;
  std::string given_name;  ///< any bytes

  bool tied() const { return options.tied_to >= 0; }
  /// Elements of a row, of which the first dimension counts the number. Only where there is one that is not 0.
  int64_t row_width() const { return count / shape[0]; }
  /// "\"fc1.weight\" f32[10, 4]"
  std::string text() const;
};

/// A tensor's name as texts tell it: in quotes, control characters as "\x0a", quotes and backslashes behind a backslash.
std::string quoted_name(std::string_view name);

/// @name What every registered tensor must satisfy
/// @{
Status check_tensor_name(const char *name);
/// `name` is for the text, as quoted_name has it.
Status check_tensor_shape(const char *name, const int64_t *shape, int64_t ndim, int64_t *out_count);
/// @}

class Params {
 public:
  Status add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, const ParamOptions &options, int64_t *out_id);
  /// `ids` must hold every parameter exactly once.
  Status set_order(std::span<const int64_t> ids);
  /// Whether an order that was given holds all parameters.
  Status check_order() const;

  int64_t size() const { return static_cast<int64_t>(params_.size()); }
  const Param &operator[](int64_t id) const { return params_[static_cast<size_t>(id)]; }
  Status check_id(int64_t id) const;
  bool has(const char *name) const { return names_.contains(name); }
  /// The parameter that holds the memory: itself, or the one it is tied to.
  int64_t holder(int64_t id) const { return (*this)[id].tied() ? (*this)[id].options.tied_to : id; }

  /// Ids in the order in which gradients become ready: the one that was set, or last registered first.
  std::vector<int64_t> order() const;

 private:
  Status check_tie(const char *name, DType dtype, std::span<const int64_t> shape, const ParamOptions &options) const;

  std::vector<Param> params_;
  int64_t element_count_ = 0;  ///< of all of them
  std::unordered_set<std::string> names_;
  std::vector<int64_t> order_;
};

}  // namespace zero
