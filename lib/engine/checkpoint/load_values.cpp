/// @file Converts bytes to values, and stores them.
#include "engine/checkpoint/load_values.h"

#include "kernels/convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace zero {
namespace {

using checkpoint::Wanted;

/// Collects the bytes of a slot, and those of its scales or remainder.
class ValueSink final : public checkpoint::BlockSink {
 public:
  explicit ValueSink(const ValueSource &source) : source_(source) {
    bytes_[0].resize(static_cast<size_t>(source.values.entries.count() * dtype_nbytes(source.dtype)));
    if (source.has_second) bytes_[1].resize(static_cast<size_t>(source.second.entries.count() * dtype_nbytes(source.second_dtype)));
  }
  std::vector<Wanted> wanted() const {
    std::vector<Wanted> wanted = {source_.values};
    wanted[0].user = 0;
    if (!source_.has_second) return wanted;
    wanted.push_back(source_.second);
    wanted[1].user = 1;
    return wanted;
  }
  Status take(const Wanted &wanted, int64_t offset, std::span<const std::byte> data) override {
    std::vector<std::byte> &to = bytes_[static_cast<size_t>(wanted.user)];
    if (!data.empty()) std::memcpy(to.data() + offset, data.data(), data.size());
    return {};
  }
  void widen(std::vector<float> *out) const { widen_values(source_, bytes_[0], bytes_[1], out); }

 private:
  const ValueSource &source_;
  std::array<std::vector<std::byte>, 2> bytes_;
};

/// Rounds to nearest, or to odd. In an inexact result the last bit 1 shows the next rounding on
/// which side of a tie the exact value is.
float narrow_f64(double value, bool to_odd) {
  const auto nearest = static_cast<float>(value);
  if (!to_odd || static_cast<double>(nearest) == value || !std::isfinite(value)) return nearest;
  const bool away = std::abs(static_cast<double>(nearest)) > std::abs(value);
  const float toward_zero = away ? std::nextafter(nearest, 0.0F) : nearest;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(toward_zero) | 1U);
}

}  // namespace

void widen_values(const ValueSource &source, std::span<const std::byte> values, std::span<const std::byte> second, std::vector<float> *out) {
  const kernels::Table &table = kernels::active();
  const int64_t count = source.values.entries.count();
  out->resize(static_cast<size_t>(count));
  if (source.dtype == DType::f8e4m3 || source.dtype == DType::f8ue5m3) {
    table.decode(out->data(), reinterpret_cast<const uint8_t *>(values.data()), reinterpret_cast<const float *>(second.data()), source.dtype,
                 count);
  } else if (source.has_second) {
    table.join(out->data(), reinterpret_cast<const uint16_t *>(values.data()), reinterpret_cast<const uint16_t *>(second.data()), count);
  } else if (source.dtype == DType::f64) {
    const auto *const wide = reinterpret_cast<const double *>(values.data());
    std::transform(wide, wide + count, out->begin(), [&source](double value) { return narrow_f64(value, source.to_odd); });
  } else {
    kernels::widen(table, out->data(), values.data(), source.dtype, count);
  }
}

Status read_values(const ReadWanted &read, const ValueSource &source, std::vector<float> *out) {
  ValueSink sink(source);
  ZERO_TRY(read(sink.wanted(), sink));
  sink.widen(out);
  return {};
}

ValueSource part_of(const ValueSource &source, Range part) {
  ValueSource cut = source;
  const int64_t begin = source.values.entries.begin;
  cut.values.entries = {begin + part.begin, begin + part.end};
  if (!source.has_second) return cut;
  const int64_t per = source.second_dtype == DType::f32 ? kLine : 1;  // scales, or the remainder
  const int64_t second = source.second.entries.begin;
  cut.second.entries = {second + part.begin / per, second + (part.end + per - 1) / per};
  return cut;
}

Status check_equal(const ReadWanted &read, const EqualValues &equal, const std::string &from) {
  const int64_t count = equal.first.values.entries.count();
  std::vector<float> first;
  std::vector<float> second;
  for (int64_t begin = 0; begin < count; begin += kValuePiece) {
    const Range part = {begin, std::min(begin + kValuePiece, count)};
    ZERO_TRY(read_values(read, part_of(equal.first, part), &first));
    ZERO_TRY(read_values(read, part_of(equal.second, part), &second));
    ZERO_CHECK(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0, ZERO_E_CHECKPOINT,
               "tensors %s of %s differ, but the names are tied here; register two parameters, or rename one of them", equal.names.c_str(),
               from.c_str());
  }
  return {};
}

Status load_values(const ReadWanted &read, const LoadedValues &values) {
  const int64_t first = values.source.values.entries.begin;
  const int64_t count = values.source.values.entries.count();
  std::vector<float> made;
  for (int64_t begin = 0; begin < count; begin += kValuePiece) {
    ZERO_TRY(read_values(read, part_of(values.source, {begin, std::min(begin + kValuePiece, count)}), &made));
    if (values.slot != 0) {
      ZERO_TRY(values.state->store_state(values.id, values.slot, first + begin, made));
      continue;
    }
    ZERO_TRY(values.state->store_values(values.id, first + begin, made));
    if (values.sets_average) ZERO_TRY(values.state->store_state(values.id, ZERO_SLOT_AVERAGE, first + begin, made));
  }
  return {};
}

}  // namespace zero
