/// @file Format: the storage of a parameter's elements, slot by slot. Parameters of one format
/// share one flat space, whatever the stage. Knows no memory, no ranks.
#pragma once

#include "core/dtype.h"
#include "engine/layout/params.h"
#include "kernels/kernels.h"

#include <zero/optimizer.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero {

struct Settings;

/// Elements per entry of a slot that has one entry per tensor: more than any tensor has.
inline constexpr int64_t kPerTensor = int64_t{1} << 62;

/// A slot beside parameter and gradient.
struct SlotFormat {
  int32_t number;  ///< a zero_slot
  DType dtype;
  int64_t per = 1;  ///< elements of the parameter per entry of the slot

  friend bool operator==(const SlotFormat &, const SlotFormat &) = default;
};

struct Format {
  DType value;  ///< dtype that the caller sees
  DType param;  ///< dtype of the stored elements
  DType grad;
  bool trains;                          ///< has a gradient and an update
  bool kept_whole;                      ///< small: stays whole on every rank in stage 3
  bool replicated;                      ///< the same on all ranks of the model group
  const kernels::Algorithm *algorithm;  ///< nullptr: the caller's own, or none
  std::vector<SlotFormat> states;       ///< master, average, the algorithm's
  bool counts_updates;                  ///< keeps ZERO_SLOT_UPDATE_COUNT per tensor, on every rank

  /// Parameters are stored quantized with a scale per line, and dequantized for the caller.
  bool coded() const { return param != value; }
  /// Tensors are not cut, because the algorithm needs each one whole on one rank.
  bool whole_tensors() const { return trains && algorithm != nullptr && algorithm->matrix; }
  friend bool operator==(const Format &, const Format &) = default;
};

/// The format of a parameter whose set has `algorithm` and `momentum`.
Format make_format(const Param &param, const Settings &settings, const kernels::Algorithm *algorithm, double momentum);

/// Slots of the outer step, which no update reads or writes.
constexpr bool is_common(int32_t slot) { return slot == ZERO_SLOT_ANCHOR || slot == ZERO_SLOT_OUTER_MOMENT; }

/// Slots that have equal bits in all replicas while the replicas are in sync.
constexpr bool is_alike_together(int32_t slot) {
  return slot == ZERO_SLOT_PARAM || slot == ZERO_SLOT_PARAM_SCALE || slot == ZERO_SLOT_MASTER || slot == ZERO_SLOT_AVERAGE;
}

/// Returns nullptr if no slot has this number.
const SlotFormat *find_format(std::span<const SlotFormat> formats, int32_t number);

/// The name in texts, such as "first moment".
std::string slot_name(int32_t number);

/// The slot that holds the scales of a block-scaled slot.
constexpr int32_t scale_slot(int32_t number) { return number + (ZERO_SLOT_FIRST_SCALE - ZERO_SLOT_FIRST_MOMENT); }

}  // namespace zero
