/// @file Two sums of packed factors per bucket.
#include "engine/gradients/low_rank_sums.h"

#include "core/default_floats.h"
#include "kernels/initialise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace zero {
namespace {

constexpr auto kFloat = static_cast<int64_t>(sizeof(float));

/// The same bits as all_reduce. `what` as in ReduceScatter.
Task sum_over(Group &group, float *values, int64_t count, uint64_t what) {
  const Cuts parts = even_cuts(count, group.size());
  float *part = values + parts[static_cast<size_t>(group.rank())].begin;
  ReduceScatter call{values, part, &parts, DType::f32, ReduceOp::sum};
  call.what = what;
  ZERO_CO_AWAIT(reduce_scatter(group, call));
  co_return co_await all_gather(group, part, values, parts, DType::f32, what);
}

bool all_finite(const float *values, int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

}  // namespace

struct LowRankSums::Needs {
  std::vector<int64_t> losses;   ///< elements, by matrix
  std::vector<int64_t> factors;  ///< elements, by matrix
  int64_t packed = 0;            ///< elements
  int64_t column = 0;            ///< elements

  int64_t nbytes() const {
    return CarriedState::nbytes(losses) + CarriedState::nbytes(factors) + Arena::view_nbytes(packed * kFloat) +
           Arena::view_nbytes(column * static_cast<int64_t>(sizeof(double)));
  }
};

kernels::LowRank LowRankSums::sizes_of(const Plan &plan, int64_t id, int64_t rank) {
  const PlannedParam &param = plan.param(id);
  return {param.height, param.height > 0 ? param.flat.count() / param.height : 0, rank};
}

/// Values travel of matrices that factors do not shorten enough, and of all other tensors.
LowRankSums::Bucket LowRankSums::bucket_of(const Plan &plan, int64_t index, int64_t rank) {
  Bucket bucket;
  const PlannedBucket &planned = plan.bucket(index);
  for (const int64_t id : planned.params) {
    const PlannedParam &param = plan.param(id);
    const int64_t begin = param.flat.begin - planned.flat.begin;
    const int64_t count = param.flat.count();
    const kernels::LowRank sizes = sizes_of(plan, id, rank);
    if (sizes.shortens()) {
      bucket.matrices.push_back({.param = id, .begin = begin, .sizes = sizes});
      bucket.left_count += sizes.left_count();
      bucket.right_count += sizes.right_count();
      bucket.longest = std::max(bucket.longest, sizes.rows);
    } else {
      bucket.others.push_back({begin, begin + count});
      bucket.other_count += count;
    }
  }
  return bucket;
}

int64_t LowRankSums::given_count(const Plan &plan, int64_t rank) {
  int64_t count = 0;
  for (const int64_t index : plan.order()) {
    const Bucket bucket = bucket_of(plan, index, rank);
    count += bucket.matrices.empty() ? plan.bucket(index).own.count() : bucket.given_count();
  }
  return count;
}

LowRankSums::Needs LowRankSums::needs() const {
  Needs needs;
  for (const int64_t index : plan_.order()) {
    const Bucket bucket = bucket_of(plan_, index, rank_);
    if (bucket.matrices.empty()) continue;
    needs.packed = std::max(needs.packed, bucket.given_count());
    needs.column = std::max(needs.column, bucket.longest);
    for (const Matrix &matrix : bucket.matrices) {
      needs.losses.push_back(matrix.sizes.count());
      needs.factors.push_back(matrix.sizes.right_count());
    }
  }
  return needs;
}

int64_t LowRankSums::workspace_nbytes() const { return needs().nbytes(); }

Status LowRankSums::open(const MemorySource &source) {
  buckets_.resize(plan_.buckets().size());
  int64_t number = 0;
  for (const int64_t index : plan_.order()) {
    Bucket &bucket = buckets_[static_cast<size_t>(index)];
    bucket = bucket_of(plan_, index, rank_);
    for (Matrix &matrix : bucket.matrices) matrix.number = number++;
  }
  const Needs needed = needs();
  if (needed.packed == 0) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, needed.nbytes(), &memory_));
  const auto take = [&](int64_t nbytes) { return memory_.take(Arena::view_nbytes(nbytes)); };
  packed_ = reinterpret_cast<float *>(take(needed.packed * kFloat));
  column_ = reinterpret_cast<double *>(take(needed.column * static_cast<int64_t>(sizeof(double))));
  losses_.open(needed.losses, memory_);
  factors_.open(needed.factors, memory_);
  forget();
  return {};
}

void LowRankSums::close() {
  losses_.close();
  factors_.close();
  memory_.release();
  buckets_.clear();
}

/// Lengths of Q do not follow: only the directions of its columns count.
void LowRankSums::begin_step(const StepTerms &terms) {
  terms_ = terms;
  losses_.follow_loss_scale(terms.loss_scale);
}

/// A step in full leaves Q as it was.
void LowRankSums::end_step(bool applied) {
  const bool keep = applied && terms_.across;
  losses_.end_step(keep, terms_.in_full);
  factors_.end_step(keep, terms_.in_full && factors_.initial());
}

/// The first Q is the same on all ranks and in all runs.
void LowRankSums::forget() {
  losses_.forget();
  factors_.forget();
  for (const Bucket &bucket : buckets_) {
    for (const Matrix &matrix : bucket.matrices) {
      kernels::initialise(factors_.values(matrix.number), matrix.sizes.right_count(), kernels::Initialiser::uniform, -1, 1, 0,
                          static_cast<uint64_t>(matrix.param), 0);
    }
  }
}

CarriedState *LowRankSums::carried(Carried kind) {
  if (kind == Carried::factors) return &factors_;
  return kind == Carried::residual_sums ? &losses_ : nullptr;
}

CarriedPart LowRankSums::carried_of(Carried kind, int64_t id, int64_t /*replica*/) {
  const int64_t home = plan_.param(id).bucket;
  if (home < 0) return {};
  for (const Matrix &matrix : buckets_[static_cast<size_t>(home)].matrices) {
    if (matrix.param == id) return {{0, carried(kind)->count(matrix.number)}, carried(kind)->values(matrix.number)};
  }
  return {};
}

/// A later sum of the same step begins with what the one before has left.
void LowRankSums::add_lost(Bucket &bucket, float *values) {
  const DefaultFloats floats;
  for (Matrix &matrix : bucket.matrices) {
    matrix.lost = losses_.edit(matrix.number);
    matrix.factor = factors_.edit(matrix.number);
    float *of_matrix = values + matrix.begin;
    for (int64_t i = 0; i < matrix.sizes.count(); ++i) of_matrix[i] += matrix.lost[i];
    if (terms_.in_full) std::fill_n(matrix.lost, matrix.sizes.count(), 0.0F);
  }
}

void LowRankSums::make_left(const Bucket &bucket, const float *values) {
  const DefaultFloats floats;
  float *to = packed_;
  for (const Matrix &matrix : bucket.matrices) {
    kernels::low_rank_left(matrix.sizes, to, values + matrix.begin, matrix.factor);
    to += matrix.sizes.left_count();
  }
  for (const Range &other : bucket.others) to = std::copy_n(values + other.begin, other.count(), to);
}

/// Nothing is sent of a matrix that is not finite on some rank, and its losses stay.
void LowRankSums::make_right(Bucket &bucket, float *values) {
  const DefaultFloats floats;
  float *left = packed_;
  float *right = packed_ + bucket.left_count + bucket.other_count;
  for (Matrix &matrix : bucket.matrices) {
    matrix.finite = all_finite(left, matrix.sizes.left_count());
    if (matrix.finite) {
      kernels::orthonormalise(left, matrix.sizes.rows, rank_, column_);
      kernels::low_rank_right(matrix.sizes, right, values + matrix.begin, left);
      kernels::low_rank_loss(matrix.sizes, matrix.lost, values + matrix.begin, left, right);
    } else {
      std::fill_n(right, matrix.sizes.right_count(), 0.0F);
    }
    left += matrix.sizes.left_count();
    right += matrix.sizes.right_count();
  }
  for (const Range &other : bucket.others) {
    std::copy_n(left, other.count(), values + other.begin);
    left += other.count();
  }
}

void LowRankSums::make_sums(const Bucket &bucket, float *values) {
  const DefaultFloats floats;
  const float *left = packed_;
  const float *right = packed_ + bucket.left_count + bucket.other_count;
  for (const Matrix &matrix : bucket.matrices) {
    if (matrix.finite) {
      kernels::low_rank_product(matrix.sizes, values + matrix.begin, left, right);
      kernels::keep_columns(matrix.factor, right, matrix.sizes.columns, rank_);
    } else {
      std::fill_n(values + matrix.begin, matrix.sizes.count(), std::numeric_limits<float>::quiet_NaN());
    }
    left += matrix.sizes.left_count();
    right += matrix.sizes.right_count();
  }
}

Task LowRankSums::sum_factors(Group &group, Bucket &bucket, float *values, uint64_t what) {
  make_left(bucket, values);
  ZERO_CO_AWAIT(sum_over(group, packed_, bucket.left_count + bucket.other_count, what));
  make_right(bucket, values);
  ZERO_CO_AWAIT(sum_over(group, packed_ + bucket.left_count + bucket.other_count, bucket.right_count, what));
  make_sums(bucket, values);
  co_return Status();
}

Task LowRankSums::sum(Group &group, int64_t index, Contribution given, ReduceScatter call) {
  auto *values = reinterpret_cast<float *>(given.data);
  const int64_t count = plan_.bucket(index).own.count();
  Bucket &bucket = buckets_[static_cast<size_t>(index)];
  add_lost(bucket, values);
  if (terms_.in_full || bucket.matrices.empty()) {
    ZERO_CO_AWAIT(sum_over(group, values, count, call.what));
  } else {
    ZERO_CO_AWAIT(sum_factors(group, bucket, values, call.what));
  }
  const DType dtype = result_dtype(call);
  const void *source = values;
  const bool finite = group.reducer()->reduce(
      {call.out, &source, 1, count, DType::f32, ReduceOp::sum, call.divisor, dtype == DType::f32 ? DType{} : dtype});
  if (!finite && call.out_finite != nullptr) *call.out_finite = false;
  co_return Status();
}

}  // namespace zero
