/// @file LoadedValues: tensors whose values a load makes from bytes of files. Knows dtypes and this rank's cuts; never names.
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

/// Elements of a value that are in memory at once: 4 MiB in fp32.
inline constexpr int64_t kValuePiece = int64_t{1} << 20;
static_assert(kValuePiece % kLine == 0);

/// A slot of a save in fp32: its codes and, of 8-bit ones, their scales; of a bf16 parameter what completes it.
struct ValueSource {
  checkpoint::Wanted values;
  DType dtype = DType::f32;
  bool to_odd = false;  ///< f64 is rounded to odd, so that the rounding to 16 bits that follows is the only one
  bool has_second = false;
  checkpoint::Wanted second;  ///< scales, or the remainder
  DType second_dtype = DType::f32;
};

/// A tensor whose values are worked out from what a save holds.
struct LoadedValues {
  const SavedState *state;
  int64_t id;
  ValueSource source;
  int32_t slot;           ///< 0: the parameter, as the optimizer keeps it; otherwise a state, or the average
  bool sets_average = false;  ///< with the parameter
};

/// Two tensors of what is loaded whose names are tied here, so that their values must be equal.
struct EqualValues {
  std::string names;
  ValueSource first;
  ValueSource second;
};

/// The values of a source, given its bytes and those of what completes it.
void widen_values(const ValueSource &source, std::span<const std::byte> values, std::span<const std::byte> second, std::vector<float> *out);

/// Reads wanted ranges of a save or of plain files.
using ReadWanted = std::function<Status(std::span<const checkpoint::Wanted>, checkpoint::BlockSink &)>;

/// The part of a source that has these of its elements, counted from its first one: `part` begins with a line.
ValueSource part_of(const ValueSource &source, Range part);
/// Reads the values of a source.
Status read_values(const ReadWanted &read, const ValueSource &source, std::vector<float> *out);
/// ZERO_E_CHECKPOINT if they differ; `from` names the source.
Status check_equal(const ReadWanted &read, const EqualValues &equal, const std::string &from);
/// Reads values and stores them, piece by piece.
Status load_values(const ReadWanted &read, const LoadedValues &values);

}  // namespace zero
