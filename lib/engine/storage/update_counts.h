/// @file UpdateCounts: how many steps have updated each tensor, if tensors may stay untouched
/// (ZERO_SLOT_UPDATE_COUNT). Knows the memory of the counts; never which tensors a step updates,
/// nor the use of the counts.
#pragma once

#include "engine/compute/step_kernels.h"

#include <cstdint>
#include <optional>
#include <span>

namespace zero {

class UpdateCounts {
 public:
  /// `kernels` run on the memory of the counts.
  explicit UpdateCounts(const Kernels &kernels) : kernels_(kernels) {}

  /// `counts` has one entry per parameter, all 0; nullptr: no counts are kept. Sets all counts to
  /// `first`.
  void open(int64_t *counts, int64_t size, int64_t first);
  void close() { counts_ = nullptr; }

  bool kept() const { return counts_ != nullptr; }
  int64_t *data() const { return counts_; }
  int64_t size() const { return size_; }

  /// The next tell() sets all counts to `value`.
  void set_all(int64_t value) {
    if (kept()) set_to_ = value;
  }
  bool untold() const { return set_to_.has_value(); }
  void tell();

  /// Adds 1 for each tensor that the step has updated; `filled` as in StepFlags. A device adds
  /// nothing if it skips the step.
  void count(std::span<const int64_t> filled) const;

 private:
  const Kernels &kernels_;
  int64_t *counts_ = nullptr;
  int64_t size_ = 0;
  /// Pending value; a device may still compute with the old counts.
  std::optional<int64_t> set_to_;
};

}  // namespace zero
