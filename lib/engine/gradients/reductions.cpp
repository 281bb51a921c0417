/// @file The operations of the reduction queue.
#include "engine/gradients/reductions.h"

#include "core/default_floats.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace zero {
namespace {

/// What such a sum is compared by: a rank that reduces the step's only micro-step must not meet it.
constexpr uint64_t kMicroSums = 1;

}  // namespace

Status Reductions::open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, const MemorySource &source,
                        std::vector<bool> counted) {
  group_ = std::move(group);
  across_ = std::move(across);
  source_ = source;
  counted_ = std::move(counted);
  summed_.resize(plan_.buckets().size());
  entries_.reserve(2 * plan_.buckets().size() + 1);
  weight_bits_.resize(static_cast<size_t>(group_->size()));
  weights_.resize(weight_bits_.size());
  gathers_ = settings_.stage == 0;
  row_sums_.open(source_);
  if (!settings_.replicas.sum_gradients()) return {};
  all_weight_bits_.resize(weight_bits_.size() * static_cast<size_t>(across_->size()));
  ZERO_TRY(open_codes());
  int64_t largest = 0;
  for (const int64_t index : plan_.order()) {
    if (slots_.place(slots_.grad(), index).dtype != DType::f32) largest = std::max(largest, plan_.bucket(index).own.count());
  }
  if (largest == 0) return {};
  const int64_t nbytes = largest * static_cast<int64_t>(sizeof(float));
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_WORKSPACE, nbytes, &replica_arena_));
  replica_sum_ = reinterpret_cast<float *>(replica_arena_.data());
  return {};
}

int64_t Reductions::workspace_nbytes(std::span<const Format> formats) const {
  if (!settings_.replicas.sum_gradients()) return 0;
  int64_t largest = 0;
  int64_t largest_of_16_bits = 0;
  for (const int64_t index : plan_.order()) {
    const PlannedBucket &bucket = plan_.bucket(index);
    largest = std::max(largest, bucket.own.count());
    const bool is_fp32 = formats[static_cast<size_t>(bucket.space)].grad == DType::f32;
    if (!is_fp32) largest_of_16_bits = std::max(largest_of_16_bits, bucket.own.count());
  }
  const ReplicaSettings &replicas = settings_.replicas;
  const bool codes = replicas.grad_code != nullptr && largest > 0;
  const int64_t sums_nbytes = largest_of_16_bits * static_cast<int64_t>(sizeof(float));
  const int64_t codes_nbytes = codes ? CodedMean::nbytes(*replicas.grad_code, largest, replicas.count) : 0;
  return sums_nbytes + codes_nbytes + (replicas.residual ? Residuals::nbytes(plan_, replicas.count) : 0);
}

Status Reductions::open_codes() {
  const kernels::Coder *coder = settings_.replicas.grad_code;
  if (coder == nullptr) return {};
  int64_t largest = 0;
  full_lines_.resize(plan_.buckets().size());
  for (const int64_t index : plan_.order()) {
    const Range own = plan_.bucket(index).own;
    const std::vector<uint8_t> all = plan_.shared_lines(index);
    if (own.empty()) continue;
    full_lines_[static_cast<size_t>(index)].assign(all.begin() + own.begin / kLine, all.begin() + (own.end + kLine - 1) / kLine);
    largest = std::max(largest, own.count());
  }
  all_lines_.assign(static_cast<size_t>((largest + kLine - 1) / kLine), 1);
  if (settings_.replicas.residual) ZERO_TRY(residuals_.open(plan_, across_->size(), source_));
  return coded_.open(*coder, largest, across_->size(), source_);
}

double Reductions::divisor() const {
  if (settings_.divisor == ZERO_DIVISOR_WEIGHTS) return weight_divisor_;
  if (settings_.divisor == ZERO_DIVISOR_ONE) return 1;
  return static_cast<double>(group_->size() * (sums_across_ ? across_->size() : 1));
}

void Reductions::stop() {
  if (under_way()) {
    group_->fail(
        Status::error(ZERO_E_PEER_LEFT, "rank %lld released its optimizer while gradients were being reduced", lld(group_->rank())));
    for (; under_way(); ++next_ended_) (void)queue_->wait(entries_[next_ended_].operation);
  }
  // The thread may be asleep on the group's doorbell, which goes with the group.
  if (group_ != nullptr) watch_.off(queue_, group_->place().local_rank);
  group_.reset();
  across_.reset();
  replica_arena_.release();
  coded_.close();
  residuals_.close();
  row_sums_.close();
}

Status Reductions::keep_sums() {
  if (!sums_.empty()) return {};
  const auto nbytes_of = [](int64_t elements) { return Arena::view_nbytes(elements * static_cast<int64_t>(sizeof(float))); };
  int64_t nbytes = 0;
  int64_t largest = 0;
  for (const int64_t index : plan_.order()) {
    nbytes += nbytes_of(plan_.bucket(index).own.count());
    largest = std::max(largest, plan_.bucket(index).own.count());
  }
  std::vector<float *> sums(plan_.buckets().size());
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_ACCUMULATED, nbytes + nbytes_of(largest), &sums_arena_));
  const auto take = [&](int64_t elements) { return reinterpret_cast<float *>(sums_arena_.take(nbytes_of(elements))); };
  for (const int64_t index : plan_.order()) sums[static_cast<size_t>(index)] = take(plan_.bucket(index).own.count());
  arrived_ = take(largest);
  sums_ = std::move(sums);
  sums_nbytes_.store(sums_arena_.nbytes(), std::memory_order_relaxed);
  return {};
}

void Reductions::submit_task(int64_t bucket, Task task) {
  entries_.push_back({bucket, queue_->submit(std::move(task))});
  const bool watched = settings_.overlaps_in(*group_) && watch_.on(queue_, group_->place().local_rank);
  overlapping_.store(watched, std::memory_order_relaxed);
  if (!watched) queue_->progress();
}

void Reductions::submit_weight(double weight) { submit_task(-1, exchange_weights(weight)); }

void Reductions::submit(int64_t bucket, Contribution contribution, Goal goal) {
  submit_task(bucket, reduce_bucket(bucket, contribution, goal));
}

Task Reductions::exchange_weights(double weight) {
  const auto bits = std::bit_cast<int64_t>(weight);
  group_->set_caller(Caller::gradients);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.dtype = static_cast<int32_t>(DType::f64);
  fingerprint.count = 1;
  ZERO_CO_AWAIT(all_gather_words(*group_, fingerprint, {&bits, 1}, weight_bits_));
  std::span<const int64_t> all = weight_bits_;
  if (sums_across_) {
    const auto ranks = std::ssize(weight_bits_);
    Cuts cuts;
    for (int64_t replica = 0; replica < across_->size(); ++replica) cuts.push_back({replica * ranks, (replica + 1) * ranks});
    ZERO_CO_AWAIT(over_replicas(all_gather(*across_, weight_bits_.data(), all_weight_bits_.data(), cuts, DType::i64)));
    all = all_weight_bits_;
  }
  const DefaultFloats floats;
  for (size_t rank = 0; rank < weights_.size(); ++rank) weights_[rank] = static_cast<float>(std::bit_cast<double>(weight_bits_[rank]));
  for (const int64_t bits_of_one : all) weight_sum_ += std::bit_cast<double>(bits_of_one);
  weighs_ = std::any_of(weights_.begin(), weights_.end(), [](float other) { return other != 1; });
  // All contributions are zero when the sum is: the step then ends with an error on every rank.
  weight_divisor_ = weight_sum_ > 0 ? static_cast<double>(static_cast<float>(weight_sum_)) : 1.0;
  co_return Status();
}

/// Those of f32 have been multiplied where they came in, in the same arithmetic.
const float *Reductions::weights_of(DType contributions) const {
  return weighs_ && contributions != DType::f32 ? weights_.data() : nullptr;
}

Task Reductions::reduce_bucket(int64_t index, Contribution contribution, Goal goal) {
  const TraceSpan span(trace_, "reduce bucket", Trace::Track::reductions, Trace::About::bucket, index);
  const PlannedBucket &bucket = plan_.bucket(index);
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  std::byte *own = place.at(bucket.own.begin);
  bool finite = true;
  group_->set_caller(goal == Goal::slot ? Caller::gradients : Caller::micro_sums);
  if (goal == Goal::slot) {
    ZERO_CO_AWAIT(sum_to_slot(index, contribution, &finite));
  } else {
    if (goal != Goal::finish) ZERO_CO_AWAIT(add_to_sums(index, contribution));
    if (goal == Goal::sum) co_return Status();
    finite = sums_to_slot(index);
  }
  finite_ = finite_ && finite;
  if (settings_.grad_norm && counts(index)) kernels_.add_squares(own, place.dtype, bucket.own.count(), squares_);
  if (gathers_) ZERO_CO_AWAIT(gather_bucket(index));
  co_return Status();
}

/// `call` lacks the contribution.
Task Reductions::sum_over_ranks(int64_t index, Contribution contribution, ReduceScatter call) {
  call.whole = contribution.data;
  return row_sums_.reduces(index) ? row_sums_.sum(*group_, index, contribution.rows, call) : reduce_scatter(*group_, call);
}

Task Reductions::sum_to_slot(int64_t index, Contribution contribution, bool *finite) {
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  std::byte *own = place.at(plan_.bucket(index).own.begin);
  const Cuts cuts = plan_.bucket_cuts(index);
  ReduceScatter call{nullptr, own, &cuts, place.dtype, ReduceOp::sum, divisor(), finite};
  call.weights = weights_of(place.dtype);
  if (!sums_across_) co_return co_await sum_over_ranks(index, contribution, call);
  float *sum = place.dtype == DType::f32 ? reinterpret_cast<float *>(own) : replica_sum_;
  call.out = sum;
  call.divisor = 1;
  call.out_finite = nullptr;
  call.out_dtype = DType::f32;
  ZERO_CO_AWAIT(sum_over_ranks(index, contribution, call));
  co_return co_await over_replicas(sum_over_replicas(index, sum, finite));
}

/// After an error this rank goes on to the next bucket. Ranks of its replica that have lost nobody may still be at this one: the group
/// within the replica fails, so that they are told the cause before the two buckets meet.
Task Reductions::over_replicas(Task task) {
  const Status status = co_await std::move(task);
  if (!status.ok()) group_->fail(status);
  co_return status;
}

/// A replica's ranks are a complete subtree of the fixed tree, whose upper part is that over replicas: the sum is that of one group. It is
/// divided and rounded once, by the rank that makes a part of it, which sends that to the others.
Task Reductions::sum_over_replicas(int64_t index, float *sum, bool *finite) {
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  const Range own = plan_.bucket(index).own;
  const Cuts parts = even_cuts(own.count(), across_->size());
  std::byte *whole = place.at(own.begin);
  std::byte *part = whole + parts[static_cast<size_t>(across_->rank())].begin * dtype_nbytes(place.dtype);
  across_->set_caller(Caller::gradients);
  if (coded_.codes()) {
    ZERO_CO_AWAIT(sum_codes(index, sum, divisor(), finite));
    if (place.dtype != DType::f32 && !to_slot(index, sum, 1)) *finite = false;
    co_return Status();
  }
  ReduceScatter call{sum, part, &parts, DType::f32, ReduceOp::sum, divisor(), finite};
  call.out_dtype = place.dtype == DType::f32 ? DType{} : place.dtype;
  ZERO_CO_AWAIT(reduce_scatter(*across_, call));
  co_return co_await all_gather(*across_, part, whole, parts, place.dtype);
}

/// A line that is sent in full loses nothing, so that its residual ends as zero.
Task Reductions::sum_codes(int64_t index, float *sum, double divisor, bool *finite) {
  const std::vector<uint8_t> &shared = full_lines_[static_cast<size_t>(index)];
  const std::span<const uint8_t> full = in_full_ ? std::span<const uint8_t>(all_lines_).first(shared.size()) : shared;
  co_return co_await coded_.run(*across_, sum, plan_.bucket(index).own.count(), full, divisor, finite, residuals_.of(index));
}

Task Reductions::gather_bucket(int64_t index) {
  const PlannedBucket &bucket = plan_.bucket(index);
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  if (row_sums_.reduces(index)) co_return co_await row_sums_.gather(*group_, index, place);
  const Cuts cuts = plan_.bucket_cuts(index);
  co_return co_await all_gather(*group_, place.at(bucket.own.begin), place.at(0), cuts, place.dtype);
}

Task Reductions::gather() {
  for (const int64_t index : plan_.order()) ZERO_CO_AWAIT(gather_bucket(index));
  co_return Status();
}

/// The sum over ranks of this micro-step arrives in fp32 and is added as a whole, so that it does not matter how buckets are cut.
Task Reductions::add_to_sums(int64_t index, Contribution contribution) {
  const PlannedBucket &bucket = plan_.bucket(index);
  const bool first = !summed_[static_cast<size_t>(index)];
  float *to = first ? sums_of(index) : arrived_;
  const DType dtype = slots_.place(slots_.grad(), index).dtype;
  const Cuts cuts = plan_.bucket_cuts(index);
  ReduceScatter call{nullptr, to, &cuts, dtype, ReduceOp::sum, 1, nullptr, DType::f32};
  call.what = kMicroSums;
  call.weights = weights_of(dtype);
  ZERO_CO_AWAIT(sum_over_ranks(index, contribution, call));
  bool finite = true;  // of the slot, in the end
  if (sums_across_ && coded_.codes()) {
    ZERO_CO_AWAIT(over_replicas(sum_codes(index, to, 1, &finite)));
  } else if (sums_across_) {
    ZERO_CO_AWAIT(over_replicas(all_reduce(*across_, to, to, bucket.own.count(), DType::f32, ReduceOp::sum)));
  }
  if (!first) kernels_.add(sums_of(index), DType::f32, arrived_, DType::f32, bucket.own.count(), 1);
  summed_[static_cast<size_t>(index)] = true;
  co_return Status();
}

/// False when an element of the slot is not finite.
bool Reductions::sums_to_slot(int64_t index) const { return to_slot(index, sums_of(index), divisor()); }

bool Reductions::to_slot(int64_t index, const float *sum, double divisor) const {
  const PlannedBucket &bucket = plan_.bucket(index);
  const SlotPlace &place = slots_.place(slots_.grad(), index);
  const void *source = sum;
  const DType out_dtype = place.dtype == DType::f32 ? DType{} : place.dtype;
  return group_->reducer()->reduce(
      {place.at(bucket.own.begin), &source, 1, bucket.own.count(), DType::f32, ReduceOp::sum, divisor, out_dtype});
}

void Reductions::end_micro_step() {
  entries_.clear();
  next_ended_ = 0;
}

void Reductions::end_step() {
  end_micro_step();
  summed_.assign(summed_.size(), false);
  row_sums_.end_step();
  finite_ = true;
  weight_sum_ = 0;
  squares_ = {};
}

}  // namespace zero
