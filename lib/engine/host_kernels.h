/// @file Host kernels on several threads: cuts work on lines, runs the pieces on the pool and keeps the caller's floating-point environment
/// out of the numbers. Knows no ranks.
#pragma once

#include "core/config.h"
#include "core/reduction.h"
#include "group/transport.h"
#include "kernels/kernels.h"

#include <cfenv>
#include <cstdint>
#include <span>

namespace zero {

/// Threads a rank may use: ZERO_KEY_THREADS, else the variable ZERO_THREADS, else max(1, usable cores / ranks of this host).
int64_t host_threads(const Config &config, const Place &place);

/// The default floating-point environment while it lives: a caller's rounding mode or flushing of subnormals must not change bits.
class DefaultFloats {
 public:
  DefaultFloats() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  DefaultFloats(const DefaultFloats &) = delete;
  ~DefaultFloats() { std::fesetenv(&before_); }

 private:
  std::fenv_t before_;
};

/// The reduce function that groups are given.
class HostReducer final : public Reducer {
 public:
  explicit HostReducer(int64_t threads) : threads_(threads) {}
  bool reduce(const Reduction &reduction) const override;

 private:
  int64_t threads_;
};

/// What an optimizer computes. Results do not depend on the number of threads.
class HostKernels {
 public:
  explicit HostKernels(int64_t threads) : threads_(threads) {}

  int64_t threads() const { return threads_; }
  /// One update of all pieces; they count as one piece of work.
  void update(kernels::UpdateKernel kernel, std::span<const kernels::Slots> pieces, const kernels::HyperParameters &hyper) const;
  bool all_finite(const float *values, int64_t count) const;
  void copy(float *out, const float *values, int64_t count) const;
  /// copy and all_finite in one pass over memory.
  bool copy_finite(float *out, const float *values, int64_t count) const;
  /// out = values * factor; out may equal values.
  void scale(float *out, const float *values, int64_t count, float factor) const;
  /// `values` begins on a line of the flat space.
  void add_squares(const float *values, int64_t count, kernels::ExactSum &sum) const;

 private:
  int64_t threads_;
};

}  // namespace zero
