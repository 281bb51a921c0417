/// @file Registering tensors.
#include "engine/layout/params.h"

#include "core/number_text.h"
#include "core/utf8.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace zero {
namespace {

constexpr size_t kLongestName = 255;
constexpr int64_t kMostDimensions = 16;

}  // namespace

std::string quoted_name(std::string_view name) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "\"";
  for (const char byte : name) {
    const auto number = static_cast<unsigned char>(byte);
    if (number < 0x20 || number == 0x7f) {
      text += {'\\', 'x', kDigits[number >> 4], kDigits[number & 15]};
      continue;
    }
    if (byte == '"' || byte == '\\') text += '\\';
    text += byte;
  }
  return text + "\"";
}

Status check_tensor_name(const char *name) {
  ZERO_CHECK(name != nullptr, ZERO_E_INVALID_ARGUMENT, "name is NULL, but must be a text of 1 to %zu bytes", kLongestName);
  const size_t length = ::strnlen(name, kLongestName + 1);
  ZERO_CHECK(length >= 1 && length <= kLongestName, ZERO_E_INVALID_ARGUMENT, "name has %s bytes, but must have 1 to %zu",
             length == 0 ? "no" : "too many", kLongestName);
  const size_t valid = valid_nbytes(name, length);
  ZERO_CHECK(valid == length, ZERO_E_INVALID_ARGUMENT, "name %s is not UTF-8: byte %zu is %#x; give names as UTF-8",
             quoted_name(name).c_str(), valid, static_cast<unsigned>(static_cast<unsigned char>(name[valid])));
  return {};
}

Status check_tensor_shape(const char *name, const int64_t *shape, int64_t ndim, int64_t *out_count) {
  ZERO_CHECK(ndim >= 0 && ndim <= kMostDimensions, ZERO_E_INVALID_ARGUMENT, "%s: ndim is %lld, but must be in 0 .. %lld", name, lld(ndim),
             lld(kMostDimensions));
  ZERO_CHECK(shape != nullptr || ndim == 0, ZERO_E_INVALID_ARGUMENT, "%s: shape is NULL, but ndim is %lld", name, lld(ndim));
  bool empty = false;
  for (int64_t i = 0; i < ndim; ++i) {
    ZERO_CHECK(shape[i] >= 0, ZERO_E_INVALID_ARGUMENT, "%s: shape[%lld] is %lld, but must not be negative", name, lld(i), lld(shape[i]));
    empty = empty || shape[i] == 0;
  }
  int64_t count = empty ? 0 : 1;
  for (int64_t i = 0; i < ndim && !empty; ++i) {
    ZERO_CHECK(shape[i] <= kMostElements / count, ZERO_E_INVALID_ARGUMENT, "%s: the shape has more than %s elements", name,
               bound_text(kMostElements).c_str());
    count *= shape[i];
  }
  *out_count = count;
  return {};
}

std::string Param::text() const {
  std::string text = name + " " + dtype_name(dtype) + "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  text += "]";
  if (options.set != 0) text += " set " + std::to_string(options.set);
  if (options.frozen) text += " frozen";
  if (options.replicated) text += " replicated";
  if (options.by_rows) text += " by rows";
  if (tied()) text += " tied to " + std::to_string(options.tied_to);
  const Precision &precision = options.precision;
  if (precision.param != 0) text += std::string(" stored as ") + dtype_name(static_cast<DType>(precision.param));
  if (precision.grad != 0) text += std::string(" gradient ") + dtype_name(static_cast<DType>(precision.grad));
  if (dtype != DType::f32) text += std::string(" ") + choice_name(ZERO_KEY_MASTER, static_cast<int64_t>(precision.master));
  if (precision.first_moment != DType::f32) text += std::string(" first moment ") + dtype_name(precision.first_moment);
  if (precision.second_moment != DType::f32) text += std::string(" second moment ") + dtype_name(precision.second_moment);
  return text;
}

/// A tied parameter is another name for the memory of one that was registered before.
Status Params::check_tie(const char *name, DType dtype, std::span<const int64_t> shape, const ParamOptions &options) const {
  if (options.tied_to < 0) return {};
  ZERO_TRY(check_index(options.tied_to, size(), (std::string(name) + ": ZERO_KEY_TIED_TO").c_str(), "parameters registered before"));
  const Param &other = (*this)[options.tied_to];
  ZERO_CHECK(!other.tied(), ZERO_E_INVALID_ARGUMENT, "%s: ZERO_KEY_TIED_TO names %s, which is itself tied to parameter %lld; name that one",
             name, other.name.c_str(), lld(other.options.tied_to));
  const bool same = other.dtype == dtype && std::equal(shape.begin(), shape.end(), other.shape.begin(), other.shape.end());
  ZERO_CHECK(same, ZERO_E_INVALID_ARGUMENT, "%s: dtype and shape differ from those of %s, to which it is tied", name, other.text().c_str());
  return {};
}

Status Params::add(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, const ParamOptions &options, int64_t *out_id) {
  ZERO_TRY(check_tensor_name(name));
  std::string shown = quoted_name(name);
  const auto type = static_cast<DType>(dtype);
  ZERO_CHECK(find_choice(kArrayDtypes, dtype) != nullptr, ZERO_E_INVALID_ARGUMENT, "%s: dtype is %d, but must be %s", shown.c_str(), dtype,
             choices_text(kRegisteredDtypes).c_str());
  ZERO_TRY(check_precision(shown.c_str(), type, options.precision));
  int64_t count = 0;
  ZERO_TRY(check_tensor_shape(shown.c_str(), shape, ndim, &count));
  ZERO_CHECK(!options.by_rows || ndim > 0, ZERO_E_INVALID_ARGUMENT,
             "%s: ZERO_KEY_ROWS is 1, but the shape has no dimension; the first one counts rows", shown.c_str());
  ZERO_TRY(check_tie(shown.c_str(), type, {shape, static_cast<size_t>(ndim)}, options));
  ZERO_CHECK(count <= kMostElements - element_count_, ZERO_E_INVALID_ARGUMENT, "%s: all parameters together have more than %s elements",
             shown.c_str(), bound_text(kMostElements).c_str());
  ZERO_CHECK(!names_.contains(name), ZERO_E_INVALID_ARGUMENT, "a parameter with the name %s was added before; names must be unique",
             shown.c_str());
  params_.push_back({std::move(shown), type, std::vector<int64_t>(shape, shape + ndim), count, options, name});
  try {
    names_.insert(name);
  } catch (...) {
    params_.pop_back();
    throw;
  }
  element_count_ += count;
  *out_id = size() - 1;
  return {};
}

Status Params::set_order(std::span<const int64_t> ids) {
  ZERO_CHECK(static_cast<int64_t>(ids.size()) == size(), ZERO_E_INVALID_ARGUMENT, "the order has %s, but the optimizer has %s",
             count_text(static_cast<int64_t>(ids.size()), "id").c_str(), count_text(size(), "parameter").c_str());
  std::vector<bool> seen(ids.size());
  for (const int64_t id : ids) {
    ZERO_TRY(check_id(id));
    ZERO_CHECK(!seen[static_cast<size_t>(id)], ZERO_E_INVALID_ARGUMENT, "the order holds id %lld twice", lld(id));
    seen[static_cast<size_t>(id)] = true;
  }
  order_.assign(ids.begin(), ids.end());
  return {};
}

Status Params::check_order() const {
  ZERO_CHECK(order_.empty() || static_cast<int64_t>(order_.size()) == size(), ZERO_E_STATE,
             "zero_optimizer_set_order gave the order of %s, but the optimizer has %lld now; give it again after the last "
             "zero_optimizer_add_param",
             count_text(static_cast<int64_t>(order_.size()), "parameter").c_str(), lld(size()));
  return {};
}

Status Params::check_id(int64_t id) const { return check_index(id, size(), "id", "parameters"); }

std::vector<int64_t> Params::order() const {
  if (!order_.empty()) return order_;
  std::vector<int64_t> ids(params_.size());
  std::iota(ids.rbegin(), ids.rend(), 0);
  return ids;
}

}  // namespace zero
