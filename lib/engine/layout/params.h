/// @file Params: the registered tensors and the order in which their gradients are expected. Knows
/// no memory and no ranks.
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

/// Limit for all tensors of a kind together. The bytes of all their slots then fit in 63 bits.
inline constexpr int64_t kMostElements = int64_t{1} << 56;

/// Options of a tensor beside its name and shape.
struct ParamOptions {
  int64_t set = 0;
  bool frozen = false;
  bool replicated = false;  ///< every rank of the model group holds the same
  bool by_rows = false;     ///< gradients are given and reduced by rows
  int64_t tied_to = -1;     ///< the parameter whose memory this one shares
  Precision precision;
};

struct Param {
  std::string name;  ///< as quoted_name returns it
  DType dtype;
  std::vector<int64_t> shape;
  int64_t count;
  ParamOptions options;
  std::string given_name;  ///< as given, UTF-8, not escaped

  bool tied() const { return options.tied_to >= 0; }
  /// Elements per row; the first dimension counts the rows. Requires a first dimension above 0.
  int64_t row_width() const { return count / shape[0]; }
  /// "\"fc1.weight\" f32[10, 4]"
  std::string text() const;
};

/// A tensor's name for texts: in quotes, control characters as "\x0a", a backslash before quotes
/// and backslashes.
std::string quoted_name(std::string_view name);

/// @name Checks of every registered tensor
/// @{
Status check_tensor_name(const char *name);
/// `name` is for error texts, as quoted_name returns it.
Status check_tensor_shape(const char *name, const int64_t *shape, int64_t ndim, int64_t *out_count);
/// @}

class Params {
 public:
  Status add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, const ParamOptions &options, int64_t *out_id);
  /// `ids` must hold every parameter exactly once.
  Status set_order(std::span<const int64_t> ids);
  /// Checks that the order, if one was set, holds all parameters.
  Status check_order() const;

  int64_t size() const { return static_cast<int64_t>(params_.size()); }
  const Param &operator[](int64_t id) const { return params_[static_cast<size_t>(id)]; }
  Status check_id(int64_t id) const;
  bool has(const char *name) const { return names_.contains(name); }
  /// The parameter that owns the memory: `id`, or the parameter it is tied to.
  int64_t holder(int64_t id) const { return (*this)[id].tied() ? (*this)[id].options.tied_to : id; }

  /// Ids in the order in which gradients become ready: as set, or from the last registered to the
  /// first.
  std::vector<int64_t> order() const;

 private:
  Status check_tie(const char *name, DType dtype, std::span<const int64_t> shape, const ParamOptions &options) const;

  std::vector<Param> params_;
  int64_t element_count_ = 0;  ///< sum over all parameters
  std::unordered_set<std::string> names_;
  std::vector<int64_t> order_;
};

}  // namespace zero
