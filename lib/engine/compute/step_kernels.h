/// @file Kernels: what an optimizer computes, wherever its arenas lie. Results do not depend on where. Knows no ranks and no tensors.
#pragma once

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/update.h"

#include <cstdint>
#include <limits>
#include <span>

namespace zero {

/// Of every dtype that has elements in fp32, infinity is above it.
inline constexpr float kLargestFinite = std::numeric_limits<float>::max();

/// One piece of an update.
struct UpdateJob {
  const kernels::Algorithm *algorithm;
  kernels::UpdateSegment piece;
  kernels::UpdateScalars scalars;
  int64_t set = 0;     ///< the parameter set whose scalars these are
  bool skips = false;  ///< nothing becomes of it in this step, but its average moves
  /// Where tensors may stay untouched: how many updates the piece's tensor has had.
  const int64_t *updates = nullptr;
  /// Layerwise algorithms: kernels::kNormWords words of the sums of squares of its tensor, of which it is the only piece here.
  int64_t *norms = nullptr;
  /// @name Matrix algorithms
  /// @{
  int64_t rows = 0;
  int64_t columns = 0;
  float *workspace = nullptr;  ///< kernels::muon_workspace elements; those of matrices that are updated at the same time follow
  int64_t workspace_apart = 0;
  /// @}
};

/// Whose values stay where masters and 8-bit codes do not agree.
enum class Lead { masters, codes };

/// Addresses are those of arenas. On a device work may go on when a function has returned; what is asked for later comes after it, and
/// errors are told by status().
class Kernels {
 public:
  virtual ~Kernels() = default;

  /// @name Elements of f32, f16 or bf16. Arithmetic is in fp32; results are rounded to nearest even.
  /// @{
  /// No element is NaN or has a magnitude above the limit; by default: all are finite. On a device the answer is true, and passed() tells.
  virtual bool all_within(const void *values, DType dtype, int64_t count, float limit = kLargestFinite) const = 0;
  /// `total_nbytes` as in Reduction.
  virtual void copy(void *out, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const = 0;
  /// copy and all_within in one pass over memory.
  virtual bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t total_nbytes) const = 0;
  virtual void clear(void *out, int64_t nbytes) const = 0;
  /// out = values in another dtype. `total_nbytes`, of `out`, as in Reduction.
  virtual void convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const = 0;
  /// Of f32: out = values * factor; out may equal values.
  virtual void scale(float *out, const float *values, int64_t count, float factor) const = 0;
  /// sum += values * factor. The product is rounded to fp32, so that sums in it do not depend on which of two values came first.
  virtual void add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const = 0;
  /// `values` begins on a line of the flat space. On a device finish_squares() adds.
  virtual void add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const = 0;
  /// @}

  /// @name Masters and 8-bit parameters. Values are f32, f16 or bf16; what has scales begins on a line.
  /// @{
  /// Each master that does not round to its value takes that value.
  virtual void follow(float *masters, const void *values, DType dtype, int64_t count) const = 0;
  /// codes = values with a scale per line. `may_skip`: on a device, not if the step of its run is skipped.
  virtual void encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool may_skip = false) const = 0;
  /// out = codes * scales.
  virtual void decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const = 0;
  /// A line's codes are those of its masters, or the masters are its codes' values. Where neither is so one of the two follows the other.
  virtual void agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const = 0;
  /// @}

  /// How many of `matrices` jobs of matrix algorithms update() works on at the same time, each in a workspace.
  virtual int64_t workspace_count(int64_t matrices) const = 0;
  /// Makes what update() needs for these jobs.
  virtual Status prepare(std::span<const UpdateJob>) { return {}; }
  /// @name As many jobs as were prepared, of the same counts and algorithms. On a device the step and what gradients are multiplied by are
  /// those of its run.
  /// @{
  /// Of layerwise algorithms (kernels/lamb.h) all but the last pass; others are left alone. Adds to UpdateJob::norms, which are 0.
  virtual void add_norms(std::span<const UpdateJob> jobs) = 0;
  /// Layerwise algorithms: the last pass, with norms of whole tensors.
  virtual void update(std::span<const UpdateJob> jobs) = 0;
  /// @}

  /// @name Counts of updates, by tensor
  /// @{
  virtual void set_counts(int64_t *counts, int64_t count, int64_t value) const = 0;
  /// One more where `filled` is above 0; on a device not if the step of its run is skipped.
  virtual void count_updates(int64_t *counts, std::span<const int64_t> filled) const = 0;
  /// @}

  /// @name Hashes, to be compared with others that were made where memory lies alike
  /// @{
  /// Makes room for so many at once.
  virtual Status prepare_hashes(int64_t /*count*/) const { return {}; }
  /// out[i] = the hash of ranges[i]. Waits.
  virtual Status hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const = 0;
  /// @}

  /// @name What is not told at once
  /// @{
  /// Nothing that all_within, copy_within or a reduction looked at since the last call was beyond its limit. Waits for it.
  virtual bool passed() const { return true; }
  /// Adds what add_squares() has not added yet. Waits for it.
  virtual void finish_squares(kernels::ExactSum &) const {}
  /// The first error that has come up so far.
  virtual Status status() const { return {}; }
  /// @}
};

}  // namespace zero
