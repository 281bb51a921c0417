/// @file Kernel table for CUDA devices: C functions in libzero_cuda.so that libzero calls. They
/// give the host's results, bit for bit, from the same source (kernels/reference). Knows no ranks,
/// no tensors and no allocations.
#pragma once

#include "kernels/kernels.h"
#include "kernels/lamb.h"
#include "kernels/step_decision.h"

#include <cstdint>

namespace zero::kernels::cuda {

/// Elements of one slot. data nullptr: the slot is not kept.
struct Elements {
  void *data = nullptr;
  float *scales = nullptr;  ///< f8 dtypes: one per kLine elements, from the line of element 0 on
  int64_t dtype = 0;        ///< a DType
};

/// The scalars of a parameter set's updates (kernels/update.h, UpdateScalars). Steps are not read.
struct Recipe {
  HyperParameters hyper;
  uint64_t seed;
  int64_t algorithm;
  float clip_value;
  int32_t stochastic;
};

/// The scalars of one update: those of a recipe, and the state of the run.
struct Scalars {
  Constants constants;  ///< made once per step and parameter set, or piece
  uint64_t seed;
  uint64_t step;
  float grad_factor;
  float clip_value;
  float average_weight;  ///< 1 - average_decay
  int32_t stochastic;
  int64_t skips;  ///< not 0: the step is skipped
};

/// Frequent storage formats of a piece, whose loads are issued together. `general` takes all
/// formats. `_of_ranks`: with 2 or 4 sources, with replicas, or with both.
enum class Form : int64_t { general, f32, f16, bf16, remainder, bf16_states, bf16_alone, f8_states, f32_of_ranks, bf16_of_ranks };

/// One piece of an update, as in kernels/update.h. All addresses, also those of the arrays, are the
/// device's.
struct UpdateSegment {
  Elements param;
  Elements master;
  Elements grad;
  Elements state[kMaxStates];
  Elements average;
  int64_t count = 0;  ///< 0: not updated in this step
  uint64_t first = 0;
  const void *const *sources = nullptr;
  int64_t source_count = 0;  ///< 0: grad is the gradient
  double divisor = 1;
  const Elements *replicas = nullptr;
  int64_t replica_count = 0;
  int64_t peers_offset = 0;
  int64_t scalars = 0;        ///< index into Update::scalars
  Form form = Form::general;  ///< form_of(piece), or general
  /// @name For steps that update only some tensors
  /// @{
  const int64_t *updates = nullptr;  ///< number of updates of the piece's tensor before this step
  int64_t recipe = 0;                ///< index of the recipe for the piece's own scalars
  int64_t average_count = 0;         ///< elements whose average moves although count is 0
  /// @}
  /// @name For layerwise algorithms, of the piece's tensor
  /// @{
  int64_t *norms = nullptr;       ///< kNormWords words
  double *trust_ratio = nullptr;  ///< the current step's
  /// @}
};

/// Returns the form of a piece: `general` if a slot is not aligned to quads or no other form fits.
inline Form form_of(const UpdateSegment &piece) {
  const auto is = [](const Elements &elements, DType dtype) {
    const auto place = reinterpret_cast<uintptr_t>(elements.data);
    return elements.dtype == static_cast<int64_t>(dtype) && place % static_cast<uintptr_t>(4 * dtype_nbytes(dtype)) == 0;
  };
  const auto kept = [&](const Elements &elements, DType dtype) { return elements.data != nullptr && is(elements, dtype); };
  const auto states = [&](DType first, DType second) {
    const auto may_be = [&](const Elements &state, DType dtype) {
      return dtype == DType::f32 ? state.data == nullptr || is(state, dtype) : kept(state, dtype);
    };
    return may_be(piece.state[0], first) && (piece.state[1].data == nullptr || may_be(piece.state[1], second));
  };
  const bool of_ranks = piece.source_count != 0 || piece.replica_count != 0;
  const bool of_few = piece.source_count == 0 || piece.source_count == 2 || piece.source_count == 4;
  if (piece.average.data != nullptr || !of_few) return Form::general;
  if (piece.grad.dtype != piece.param.dtype) return Form::general;
  const bool wide = kept(piece.master, DType::f32);
  const bool plain = states(DType::f32, DType::f32);
  if (is(piece.param, DType::f32) && is(piece.grad, DType::f32) && piece.master.data == nullptr && plain) {
    return of_ranks ? Form::f32_of_ranks : Form::f32;
  }
  if (of_ranks) {
    const bool is_bf16 = is(piece.param, DType::bf16) && is(piece.grad, DType::bf16) && wide && plain;
    return is_bf16 ? Form::bf16_of_ranks : Form::general;
  }
  if (is(piece.param, DType::f16) && is(piece.grad, DType::f16) && wide) return plain ? Form::f16 : Form::general;
  if (!is(piece.param, DType::bf16) || !is(piece.grad, DType::bf16)) return Form::general;
  if (wide && plain) return Form::bf16;
  if (wide && states(DType::bf16, DType::bf16)) return Form::bf16_states;
  if (wide && states(DType::f8e4m3, DType::f8ue5m3)) return Form::f8_states;
  if (kept(piece.master, DType::u16) && plain) return Form::remainder;
  if (piece.master.data == nullptr && states(DType::bf16, DType::bf16)) return Form::bf16_alone;
  return Form::general;
}

/// The work of one block of threads: kChunk elements of a piece, fewer at its end. Begins on a line
/// of the piece.
inline constexpr int64_t kChunk = 1024;
struct Chunk {
  int64_t begin;
  int64_t piece;  ///< index into Update::pieces
};

/// One update of many pieces by one algorithm, in one launch. All addresses are the device's.
struct Update {
  const UpdateSegment *pieces;
  const Chunk *chunks;
  int64_t chunk_count;
  const Scalars *scalars;
};

/// Words of a sum of squares in device memory: the limbs of an ExactSum, as import_limbs takes
/// them. All are 0 before the first use.
inline constexpr int64_t kSquareWords = ExactSum::kExported;

/// The results of checks and sums of squares for a decision, in device memory. All are 0 before the
/// first of them and after end_step.
struct Found {
  int64_t squares[kSquareWords];
  int32_t flag;
  int32_t reserved;
};

/// A product of fp32 matrices, row-major, as Table::multiply of kernels.h makes it. `out` overlaps
/// neither.
struct Product {
  float *out;
  const float *a;
  const float *b;
  int64_t rows;
  int64_t inner;
  int64_t columns;
  /// If not nullptr, as large as out: out = fma(weight, addend, a * b * factor).
  const float *addend = nullptr;
  float factor = 1;
  float weight = 0;
  /// `out` is its own transpose bit by bit, and so is the addend (Table::multiply_symmetric).
  bool symmetric = false;
  const int64_t *skips = nullptr;  ///< in device memory; not 0: nothing is computed
};

/// The sum of the squares of one matrix's direction, and its normalising factor.
struct DirectionSum {
  int64_t words[kSquareWords];  ///< 0 before and after an update
  float factor;
};

/// One update of a matrix by Muon.
struct Matrix {
  Update update;           ///< holds one piece: the matrix, row-major
  const Scalars *scalars;  ///< the piece's
  int64_t rows;
  int64_t columns;
  int64_t newton_schulz_steps;
  float *workspace;  ///< muon_workspace(rows, columns) elements from a multiple of 64 bytes on
  DirectionSum *sum;
};

/// Most sources of one reduction or update.
inline constexpr int64_t kMostSources = 64;

/// A Reduction (core/reduction.h, kernels/reduce.h). `sources` is an array on the host that holds
/// device addresses, `weights` one that holds numbers.
struct Reduce {
  void *out;          ///< may equal any source
  int64_t out_dtype;  ///< a DType that a Reduction may be stored in
  const void *const *sources;
  int64_t source_count;  ///< 1 to kMostSources
  int64_t dtype;
  int64_t count;
  int64_t op;  ///< a ReduceOp
  double divisor;
  const float *weights = nullptr;  ///< nullptr: none; otherwise sums of f16 or bf16
};

/// Most bytes of one put.
inline constexpr int64_t kMostPut = 1024;

/// Most tensors of one count_updates.
inline constexpr int64_t kMostCounted = 8 * kMostPut;

/// Functions enqueue their work on a stream of `device`, and return 0 or a CUDA error code for
/// zero_cuda_table::error_text. They do not wait, and keep the calling thread's current device and
/// last error. Addresses are the device's; memory of its peers may be read, and written as
/// replicas. If `flag` is not nullptr, it is set to 1 when an element is not finite or beyond the
/// given limit; it is never cleared. Counts of 0 do nothing. Dtypes are f32, f16 or bf16 unless
/// stated otherwise.
struct Table {
  uint64_t struct_size;

  /// Returns the number of an algorithm for update, or -1 if it has no kernel.
  int32_t (*algorithm)(const char *name);
  /// Makes out[i] from recipes[i] for the next step of the run, or for the step that its decision
  /// is about.
  int32_t (*prepare)(int64_t device, const StepState *run, const Recipe *recipes, int64_t count, Scalars *out, void *stream);
  /// The same for pieces with scalars of their own. Makes out[i] from recipes[pieces[i].recipe],
  /// for the update after *pieces[i].updates others.
  int32_t (*prepare_each)(int64_t device, const StepState *run, const Recipe *recipes, const UpdateSegment *pieces, int64_t count,
                          Scalars *out, void *stream);
  /// For layerwise algorithms only the last pass, as in kernels/update.h. No matrix algorithms.
  int32_t (*update)(int64_t device, int32_t algorithm, const Update *call, void *stream);
  /// Moves the averages of the first UpdateSegment::average_count elements of pieces.
  int32_t (*move_averages)(int64_t device, const Update *call, void *stream);
  /// The passes of LAMB before update (kernels/lamb.h). lamb_norms updates the moments and adds the
  /// squares of parameters and directions to UpdateSegment::norms. lamb_trust_ratios computes
  /// UpdateSegment::trust_ratio of all pieces that have norms.
  int32_t (*lamb_norms)(int64_t device, const Update *call, void *stream);
  int32_t (*lamb_trust_ratios)(int64_t device, const UpdateSegment *pieces, int64_t count, void *stream);
  /// Replaces update for matrices. The host passes newton_schulz_steps; the other hyper-parameters
  /// are read on the device.
  int32_t (*muon)(int64_t device, const Matrix *call, void *stream);

  /// Decides a step (kernels/step_decision.h) from the results of kernels.
  int32_t (*decide)(int64_t device, const DecisionRules *rules, const Found *found, StepState *run, void *stream);
  /// Ends a step after the update. Counts it as applied if `counts` is not 0 and it is not skipped,
  /// and sets `word_count` words to 0.
  int32_t (*end_step)(int64_t device, StepState *run, int64_t counts, int64_t *words, int64_t word_count, void *stream);
  /// Copies `nbytes` bytes from the host to the device, at most kMostPut and a multiple of 8. Both
  /// addresses are aligned to 8. `from` is free on return.
  int32_t (*put)(int64_t device, void *out, const void *from, int64_t nbytes, void *stream);
  /// Adds 1 to counts[i] if bit i % 64 of updated[i / 64] is set, unless the step is skipped.
  /// `updated` is on the host and free on return; at most kMostCounted counts.
  int32_t (*count_updates)(int64_t device, const StepState *run, int64_t *counts, const uint64_t *updated, int64_t count, void *stream);

  /// All dtypes of arrays. Other dtypes do nothing, as on the host.
  int32_t (*reduce)(int64_t device, const Reduce *call, int32_t *flag, void *stream);
  int32_t (*all_within)(int64_t device, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream);
  int32_t (*copy_within)(int64_t device, void *out, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag,
                         void *stream);
  /// out = values in another dtype, to nearest even.
  int32_t (*convert)(int64_t device, void *out, int64_t out_dtype, const void *values, int64_t dtype, int64_t count, void *stream);
  /// f32 only: out = values * factor; out may equal values.
  int32_t (*scale)(int64_t device, float *out, const float *values, int64_t count, float factor, void *stream);
  /// sum += values * factor, the product rounded to fp32.
  int32_t (*add)(int64_t device, void *sum, int64_t sum_dtype, const void *values, int64_t dtype, int64_t count, float factor,
                 void *stream);
  int32_t (*multiply)(int64_t device, const Product *call, void *stream);
  /// Adds the squares of each line as kernels/reference/add_squares.cpp does, and the lines to
  /// `words`. `values` begins on a line.
  int32_t (*add_squares)(int64_t device, const void *values, int64_t dtype, int64_t count, int64_t *words, void *stream);

  /// Each master that does not round to its value takes that value.
  int32_t (*follow)(int64_t device, float *masters, const void *values, int64_t dtype, int64_t count, void *stream);
  /// Encodes values with a scale per line, to nearest even, from a line on
  /// (kernels/block_scaled.h). If `run` is not nullptr and its step is skipped, does nothing.
  int32_t (*encode)(int64_t device, const Elements *codes, const void *values, int64_t dtype, int64_t count, const StepState *run,
                    void *stream);
  int32_t (*decode)(int64_t device, void *out, int64_t dtype, const Elements *codes, int64_t count, void *stream);
  /// Reconciles each line in which masters do not encode to the codes and codes do not decode to
  /// the masters. Codes follow masters if `masters_lead` is not 0, otherwise masters follow codes.
  int32_t (*agree)(int64_t device, float *masters, const Elements *codes, int64_t count, int32_t masters_lead, void *stream);

  /// out[i] = a hash of ranges[i] (hash.cu). Equal bytes have equal hashes at any address. Both
  /// arrays are in device memory.
  int32_t (*hash)(int64_t device, const Bytes *ranges, int64_t count, uint64_t *out, void *stream);
};

}  // namespace zero::kernels::cuda
