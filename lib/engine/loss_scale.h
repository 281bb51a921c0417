/// @file LossScale: what the caller multiplies its loss by, so that small gradients survive in 16 bits, and how it follows overflows
/// (Micikevicius et al., "Mixed Precision Training", 2018, section 3.2). Knows no gradients.
#pragma once

#include "core/config.h"
#include "core/status.h"

#include <cstdint>
#include <string>

namespace zero {

class LossScale {
 public:
  /// `skips`: overflows make steps be skipped, which the dynamic scale needs.
  Status read(const Config &config, bool skips);

  double value() const { return value_; }
  Status set(double value);

  /// After a step: it overflowed on some rank, or not.
  void update(bool overflowed);

  /// @name Scalars of the run
  /// @{
  int64_t growth_count() const { return growth_count_; }
  int64_t overflow_count() const { return overflow_count_; }
  void set_growth_count(int64_t count) { growth_count_ = count; }
  void set_overflow_count(int64_t count) { overflow_count_ = count; }
  /// @}

  std::string text() const;

 private:
  bool dynamic_ = false;
  double value_ = 1;
  int64_t window_ = 0;
  int64_t hysteresis_ = 0;
  double backoff_ = 0;
  double growth_ = 0;
  double least_ = 0;
  double most_ = 0;
  int64_t growth_count_ = 0;    ///< steps without overflow since the scale last changed
  int64_t overflow_count_ = 0;  ///< overflows since the scale last grew that hysteresis has swallowed
};

}  // namespace zero
