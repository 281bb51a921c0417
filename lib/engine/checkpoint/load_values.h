/// @file LoadedValues: tensors whose values a load converts from bytes of files. Knows dtypes and
/// this rank's cuts; never names.
#pragma once

#include "checkpoint/save_reader.h"
#include "core/dtype.h"
#include "core/partition.h"
#include "engine/checkpoint/saved_things.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// The most elements of a value that are in memory at once: 4 MiB in fp32.
inline constexpr int64_t kValuePiece = int64_t{1} << 20;
static_assert(kValuePiece % kLine == 0);

/// A slot of a save, read as fp32 values. 8-bit codes need their scales as well, and a bf16
/// parameter with a remainder needs the remainder.
struct ValueSource {
  checkpoint::Wanted values;
  DType dtype = DType::f32;
  /// Rounds f64 to odd, so that the value is correct after the second rounding to 16 bits.
  bool to_odd = false;
  bool has_second = false;
  checkpoint::Wanted second;  ///< scales, or the remainder
  DType second_dtype = DType::f32;
};

/// A tensor whose values are computed from slots of a save.
struct LoadedValues {
  const SavedState *state;
  int64_t id;
  ValueSource source;
  /// 0: the parameter in its stored format; otherwise a state or the average.
  int32_t slot;
  bool sets_average = false;  ///< sets the average together with the parameter
};

/// Two tensors of the save whose names are tied here. Their values must be equal.
struct EqualValues {
  std::string names;
  ValueSource first;
  ValueSource second;
};

/// Converts bytes of a source to fp32. `second` is the scales or the remainder.
void widen_values(const ValueSource &source, std::span<const std::byte> values, std::span<const std::byte> second, std::vector<float> *out);

/// Reads wanted ranges of a save or of plain files.
using ReadWanted = std::function<Status(std::span<const checkpoint::Wanted>, checkpoint::BlockSink &)>;

/// Returns the part of a source that has these elements, counted from its first one. `part` begins
/// on a line.
ValueSource part_of(const ValueSource &source, Range part);
/// Reads the values of a source.
Status read_values(const ReadWanted &read, const ValueSource &source, std::vector<float> *out);
/// Returns ZERO_E_CHECKPOINT if they differ; `from` names the source.
Status check_equal(const ReadWanted &read, const EqualValues &equal, const std::string &from);
/// Reads values and stores them, piece by piece.
Status load_values(const ReadWanted &read, const LoadedValues &values);

}  // namespace zero
