/// @file Kernels: the interface of an optimizer's computations, for arenas on the host or on a
/// device. Results are the same on both. Knows no ranks and no tensors.
#pragma once

#include "core/dtype.h"
#include "core/status.h"
#include "kernels/touched_rows.h"
#include "kernels/update.h"

#include <cstdint>
#include <limits>
#include <span>

namespace zero {

/// The largest fp32 value. In every dtype whose elements fit in fp32, only infinity is larger.
inline constexpr float kLargestFinite = std::numeric_limits<float>::max();

/// One piece of an update.
struct UpdateJob {
  const kernels::Algorithm *algorithm;
  kernels::UpdateSegment piece;
  kernels::UpdateScalars scalars;
  int64_t set = 0;     ///< the parameter set whose scalars these are
  bool skips = false;  ///< the step does not update it; only its average moves
  /// The number of updates of the piece's tensor, if tensors may have no gradient in a step.
  const int64_t *updates = nullptr;
  /// Layerwise algorithms: kernels::kNormWords words for the sums of squares of its tensor. Each
  /// tensor has only one piece here.
  int64_t *norms = nullptr;
  /// @name Matrix algorithms
  /// @{
  int64_t rows = 0;
  int64_t columns = 0;
  /// kernels::muon_workspace elements. The workspaces of matrices that are updated at the same time
  /// follow.
  float *workspace = nullptr;
  int64_t workspace_apart = 0;
  /// @}
  /// With marks: the job updates these rows only, and moves no average of others. On the host.
  kernels::TouchedRows touched = {};
};

/// The side that keeps its values where masters and 8-bit codes disagree.
enum class Lead { masters, codes };

/// Addresses are those of arenas. On a device, functions may return before their work has ended;
/// later work runs after it, and status() returns errors.
class Kernels {
 public:
  virtual ~Kernels() = default;

  /// @name Elements of f32, f16 or bf16
  /// Arithmetic is in fp32; results are rounded to nearest even.
  /// @{
  /// True if no element is NaN or has a magnitude above the limit; by default, if all are finite.
  /// On a device it returns true, and passed() has the answer.
  virtual bool all_within(const void *values, DType dtype, int64_t count, float limit = kLargestFinite) const = 0;
  /// `total_nbytes` as in Reduction.
  virtual void copy(void *out, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const = 0;
  /// copy and all_within in one pass over memory.
  virtual bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t total_nbytes) const = 0;
  virtual void clear(void *out, int64_t nbytes) const = 0;
  /// out = values in another dtype. `total_nbytes`, of `out`, as in Reduction.
  virtual void convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const = 0;
  /// out = values * factor, in f32; out may equal values.
  virtual void scale(float *out, const float *values, int64_t count, float factor) const = 0;
  /// sum += values * factor. The product is rounded to fp32, so that an fp32 sum of two values does
  /// not depend on their order.
  virtual void add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const = 0;
  /// `values` begins on a line of the flat space. On a device, finish_squares() adds the result to
  /// `sum`.
  virtual void add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const = 0;
  /// @}

  /// @name Masters and 8-bit parameters
  /// Values are f32, f16 or bf16; ranges with scales begin on a line.
  /// @{
  /// Sets each master that does not round to its value to that value.
  virtual void follow(float *masters, const void *values, DType dtype, int64_t count) const = 0;
  /// codes = values with a scale per line. `may_skip`: on a device, does nothing if the step of its
  /// run is skipped.
  virtual void encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool may_skip = false) const = 0;
  /// out = codes * scales.
  virtual void decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const = 0;
  /// A line agrees if its codes are those of its masters, or its masters are the values of its
  /// codes. Otherwise the side that does not lead is set from the other.
  virtual void agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const = 0;
  /// @}

  /// Number of matrices, of `matrices` jobs, that update() works on at the same time. Each needs a
  /// workspace.
  virtual int64_t workspace_count(int64_t matrices) const = 0;
  /// Allocates the memory that update() needs for these jobs.
  virtual Status prepare(std::span<const UpdateJob>) { return {}; }
  /// @name Updates
  /// As many jobs as were prepared, with the same counts and algorithms. On a device, the step and
  /// the gradient factor are those of its run.
  /// @{
  /// Runs all passes but the last of layerwise algorithms (kernels/lamb.h); ignores other jobs.
  /// Adds to UpdateJob::norms, which must be 0.
  virtual void add_norms(std::span<const UpdateJob> jobs) = 0;
  /// For layerwise algorithms this is the last pass, with norms of whole tensors.
  virtual void update(std::span<const UpdateJob> jobs) = 0;
  /// @}

  /// @name Counts of updates, by tensor
  /// @{
  virtual void set_counts(int64_t *counts, int64_t count, int64_t value) const = 0;
  /// Adds 1 to each count whose `filled` is above 0. On a device, does nothing if the step of its
  /// run is skipped.
  virtual void count_updates(int64_t *counts, std::span<const int64_t> filled) const = 0;
  /// @}

  /// @name Hashes, comparable with hashes of memory in the same layout
  /// @{
  /// Allocates memory for that many hashes at once.
  virtual Status prepare_hashes(int64_t /*count*/) const { return {}; }
  /// out[i] = the hash of ranges[i]. Waits for it.
  virtual Status hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const = 0;
  /// @}

  /// @name Results that are available later
  /// @{
  /// True if all_within, copy_within and reductions since the last call found no value beyond the
  /// limit. Waits for them.
  virtual bool passed() const { return true; }
  /// Adds the pending results of add_squares(). Waits for them.
  virtual void finish_squares(kernels::ExactSum &) const {}
  /// The first error so far.
  virtual Status status() const { return {}; }
  /// @}
};

}  // namespace zero
