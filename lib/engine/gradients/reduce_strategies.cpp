/// @file Sums as they are, the choice of strategies, and running one after the other.
#include "engine/gradients/reduce_strategies.h"

#include "engine/gradients/coded_sums.h"
#include "engine/gradients/low_rank_sums.h"
#include "engine/gradients/row_sums.h"

#include <algorithm>
#include <utility>

namespace zero {
namespace {

/// Within a replica.
class PlainSums final : public ReduceStrategy {
 public:
  explicit PlainSums(const Plan &plan) : plan_(plan) {}

  Task sum(Group &group, int64_t /*bucket*/, Contribution given, ReduceScatter call) override {
    call.whole = given.data;
    return reduce_scatter(group, call);
  }

  Task gather(Group &group, int64_t bucket, const SlotPlace &place) override {
    const Cuts cuts = plan_.bucket_cuts(bucket);
    co_return co_await all_gather(group, place.at(plan_.bucket(bucket).own.begin), place.at(0), cuts, place.dtype);
  }

 private:
  const Plan &plan_;
};

/// A replica's ranks are a complete subtree of the fixed tree, whose upper part is that over
/// replicas: the sum is that of one group. Each part is divided and rounded once, by the rank that
/// makes it and sends it to the others.
class ReplicaSums final : public ReduceStrategy {
 public:
  ReplicaSums(const Plan &plan, const ReplicaSettings &) : plan_(plan) {}

  Task sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) override {
    const int64_t count = plan_.bucket(bucket).own.count();
    if (call.what == kMicroSums) co_return co_await all_reduce(group, given.data, call.out, count, DType::f32, ReduceOp::sum);
    const DType dtype = result_dtype(call);
    const Cuts parts = even_cuts(count, group.size());
    std::byte *part = static_cast<std::byte *>(call.out) + parts[static_cast<size_t>(group.rank())].begin * dtype_nbytes(dtype);
    ReduceScatter mine{given.data, part, &parts, DType::f32, ReduceOp::sum, call.divisor, call.out_finite};
    if (dtype != DType::f32) mine.out_dtype = dtype;
    ZERO_CO_AWAIT(reduce_scatter(group, mine));
    co_return co_await all_gather(group, part, call.out, parts, dtype);
  }

 private:
  const Plan &plan_;
};

template <class Strategy>
std::unique_ptr<ReduceStrategy> make(const Plan &plan, const ReplicaSettings &replicas) {
  return std::make_unique<Strategy>(plan, replicas);
}

/// Over replicas the first row that fits is taken.
constexpr struct {
  bool (*fits)(const ReplicaSettings &);
  std::unique_ptr<ReduceStrategy> (*make)(const Plan &, const ReplicaSettings &);
} kOverReplicas[] = {
    {[](const ReplicaSettings &replicas) { return replicas.grad_code != nullptr; }, make<CodedSums>},
    {[](const ReplicaSettings &replicas) { return replicas.low_rank > 0; }, make<LowRankSums>},
    {[](const ReplicaSettings &replicas) { return replicas.sum_gradients(); }, make<ReplicaSums>},
};

/// For the fp32 sum of the largest cut of 16-bit gradients. `dtype_of`: of a bucket's gradients.
template <class DTypeOf>
int64_t sum_nbytes(const Plan &plan, DTypeOf &&dtype_of) {
  int64_t largest = 0;
  for (const int64_t index : plan.order()) {
    if (dtype_of(index) != DType::f32) largest = std::max(largest, plan.bucket(index).own.count());
  }
  return largest * static_cast<int64_t>(sizeof(float));
}

}  // namespace

ReduceStrategies::ReduceStrategies(const Plan &plan, const Settings &settings, const SlotMemory &slots, GivenRows &rows)
    : plan_(plan), slots_(slots) {
  strategies_.push_back(std::make_unique<PlainSums>(plan));
  strategies_.push_back(std::make_unique<RowSums>(plan, rows));
  const auto fits = [&](const auto &row) { return row.fits(settings.replicas); };
  const auto *row = std::find_if(std::begin(kOverReplicas), std::end(kOverReplicas), fits);
  if (row != std::end(kOverReplicas)) strategies_.push_back(row->make(plan, settings.replicas));
}

int64_t ReduceStrategies::workspace_nbytes(std::span<const Format> formats) const {
  if (over_replicas() == nullptr) return 0;
  const auto dtype_of = [&](int64_t index) { return formats[static_cast<size_t>(plan_.bucket(index).space)].grad; };
  return sum_nbytes(plan_, dtype_of) + over_replicas()->workspace_nbytes();
}

Status ReduceStrategies::open(std::shared_ptr<Group> within, std::shared_ptr<Group> across, const MemorySource &source) {
  within_ = std::move(within);
  across_ = std::move(across);
  for (const auto &strategy : strategies_) ZERO_TRY(strategy->open(source));
  if (over_replicas() == nullptr) return {};
  const int64_t nbytes = sum_nbytes(plan_, [this](int64_t index) { return slots_.place(slots_.grad(), index).dtype; });
  return nbytes > 0 ? Arena::create_private(source, ZERO_MEMORY_WORKSPACE, nbytes, &sum_) : Status();
}

void ReduceStrategies::close() {
  within_.reset();
  across_.reset();
  sum_.release();
  for (const auto &strategy : strategies_) strategy->close();
}

Task ReduceStrategies::sum(int64_t bucket, Contribution given, ReduceScatter call) {
  ReduceStrategy &strategy = strategy_within(bucket);
  if (!sums_across_) co_return co_await strategy.sum(*within_, bucket, given, call);
  ReduceScatter part = call;
  if (result_dtype(call) != DType::f32) part.out = sum_.data();
  part.divisor = 1;
  part.out_finite = nullptr;
  part.out_dtype = DType::f32;
  ZERO_CO_AWAIT(strategy.sum(*within_, bucket, given, part));
  if (call.what != kMicroSums) across_->set_caller(Caller::gradients);
  const Status status = co_await over_replicas()->sum(*across_, bucket, {static_cast<std::byte *>(part.out)}, call);
  // After an error this rank goes on to its next bucket. Ranks of its replica that met no error may
  // still wait in this one: they get the cause before the calls of the two buckets meet.
  if (!status.ok()) within_->fail(status);
  co_return status;
}

void ReduceStrategies::begin_step(const StepTerms &terms) {
  const bool summed_across = std::exchange(sums_across_, terms.across && over_replicas() != nullptr);
  // Nothing sends the losses of a last common step that was skipped.
  if (summed_across && !sums_across_) over_replicas()->forget();
  for (const auto &strategy : strategies_) strategy->begin_step(terms);
}

void ReduceStrategies::end_step(bool applied) {
  for (const auto &strategy : strategies_) strategy->end_step(applied);
}

void ReduceStrategies::forget() {
  for (const auto &strategy : strategies_) strategy->forget();
}

}  // namespace zero
