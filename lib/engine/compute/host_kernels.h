/// @file HostKernels: kernels on several threads. Cuts work on lines, runs the pieces on the pool,
/// and makes results independent of the caller's floating-point environment. Knows no ranks.
#pragma once

#include "core/config.h"
#include "core/default_floats.h"
#include "core/partition.h"
#include "core/reduction.h"
#include "core/thread_pool.h"
#include "engine/compute/step_kernels.h"
#include "group/transport.h"

#include <algorithm>
#include <cstdint>

namespace zero {

/// Number of threads that a rank may use: ZERO_KEY_THREADS, else the variable ZERO_THREADS, else
/// max(1, usable cores / Place::core_sharers).
int64_t host_threads(const Config &config, const Place &place);

/// The default reducer of groups.
class HostReducer final : public Reducer {
 public:
  explicit HostReducer(int64_t threads) : threads_(threads) {}
  bool reduce(const Reduction &reduction) const override;
  void copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const override;

 private:
  int64_t threads_;
};

/// Kernels for host memory. Results do not depend on the number of threads.
class HostKernels final : public Kernels {
 public:
  explicit HostKernels(int64_t threads) : threads_(threads) {}

  bool all_within(const void *values, DType dtype, int64_t count, float limit = kLargestFinite) const override;
  void copy(void *out, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const override;
  bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t total_nbytes) const override;
  void clear(void *out, int64_t nbytes) const override;
  void convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const override;
  void scale(float *out, const float *values, int64_t count, float factor) const override;
  void add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const override;
  void add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const override;
  void follow(float *masters, const void *values, DType dtype, int64_t count) const override;
  void encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool may_skip = false) const override;
  void decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const override;
  void agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const override;
  Status hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const override;
  /// At most one workspace per thread.
  int64_t workspace_count(int64_t matrices) const override { return std::min(threads_, matrices); }
  void add_norms(std::span<const UpdateJob> jobs) override;
  /// All jobs without a matrix are distributed over the threads together.
  void update(std::span<const UpdateJob> jobs) override;
  void set_counts(int64_t *counts, int64_t count, int64_t value) const override;
  void count_updates(int64_t *counts, std::span<const int64_t> filled) const override;

  /// Runs function(range) over pieces of [0, count), cut on lines, on the threads.
  template <class Function>
  void over_lines(int64_t count, Function &&function) const {
    const int64_t pieces = piece_count(count);
    const DefaultFloats floats;
    parallel_pieces(pieces, threads_, [&](int64_t index) {
      const Range piece = piece_of(count, index, pieces);
      if (!piece.empty()) function(piece);
    });
  }

  /// Piece `index` of `pieces` of [0, count), cut on lines.
  static Range piece_of(int64_t count, int64_t index, int64_t pieces);

 private:
  int64_t piece_count(int64_t count) const;
  void update_matrices(std::span<const UpdateJob> jobs) const;

  int64_t threads_;
};

}  // namespace zero
