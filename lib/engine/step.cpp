/// @file Steps: reduce, vote, apply, gather.
#include "engine/optimizer.h"

#include "core/clock.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cmath>

namespace zero {
namespace {

/// Adds the time since it was made to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(std::atomic<int64_t> &total_ns) : total_ns_(total_ns) {}
  Stopwatch(const Stopwatch &) = delete;
  ~Stopwatch() { total_ns_.fetch_add(now_ns() - begin_ns_, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> &total_ns_;
  const int64_t begin_ns_ = now_ns();
};

/// Words of the vote, which are added over ranks.
constexpr size_t kNonfinite = 0;
constexpr size_t kHyperHash = 1;
constexpr size_t kLimbs = 2;

}  // namespace

Status Optimizer::grad_acquire(int64_t id, void **out_data, int64_t *out_accumulate) {
  ZERO_TRY(check_call("zero_optimizer_grad_acquire", Phase::running, Phase::running));
  ZERO_TRY(params_.check_id(id));
  Status status = gradients_.acquire(id, out_data, out_accumulate);
  if (status.code() <= ZERO_E_REPLICAS_DIFFER) lose(status);
  return status;
}

Status Optimizer::grad_ready(int64_t id, const void *grad, int64_t offset, int64_t count) {
  ZERO_TRY(check_call("zero_optimizer_grad_ready", Phase::running, Phase::running));
  ZERO_TRY(check_range(id, offset, count));
  Status status = gradients_.ready(id, params_[id].name.c_str(), grad, offset, count);
  if (status.code() <= ZERO_E_REPLICAS_DIFFER) lose(status);
  return status;
}

Task Optimizer::step(zero_step_result *out) { return run(step_body(out)); }
Task Optimizer::reduce(zero_step_result *out) { return run(reduce_body(out)); }
Task Optimizer::gather() { return run(gather_body()); }

Task Optimizer::step_body(zero_step_result *out) {
  ZERO_CO_CHECK(settings_.algorithm != nullptr, ZERO_E_STATE,
                "algorithm \"custom\" has no step; call zero_optimizer_reduce, update the views, and call zero_optimizer_gather");
  ZERO_CO_TRY(reduce_body(nullptr));
  if (!skips_) update();
  ZERO_CO_TRY(gather_body());
  write_result(out);
  co_return Status();
}

Task Optimizer::reduce_body(zero_step_result *out) {
  ZERO_CO_RETURN_IF_ERROR(check_phase("zero_optimizer_step", Phase::running, Phase::running));
  ZERO_CO_CHECK(acquired_count_ == 0 || !shards_params(), ZERO_E_STATE,
                "%lld parameters are acquired; in stage 3 zero_optimizer_param_release comes before the step",
                static_cast<long long>(acquired_count_));
  const Stopwatch stopwatch(times_.reduce_ns);
  ZERO_CO_TRY(gradients_.finish());
  unfilled_count_ = gradients_.unfilled_count();
  times_.steps.fetch_add(1, std::memory_order_relaxed);
  if (settings_.divisor == ZERO_DIVISOR_WEIGHTS && !(gradients_.weight_sum() > 0)) {
    end_step();
    co_return Status::error(ZERO_E_INVALID_ARGUMENT,
                            "the weights of all ranks add up to 0 in this step, so that there is no gradient; nothing was applied");
  }
  ZERO_CO_TRY(vote());
  phase_ = Phase::reduced;
  applied_ = false;
  if (skips_) ++skipped_count_;
  write_result(out);
  co_return Status();
}

/// All ranks learn whether any met a non-finite gradient, the norm, and whether all have the same hyper-parameters: with a sum over ranks
/// equal to N times each rank's own hash, hashes are equal.
Task Optimizer::vote() {
  kernels::HyperParameters hyper = hyper_.values();
  hyper.step = applied_count_;
  votes_[kNonfinite] = settings_.skips_nonfinite && !gradients_.finite() ? 1 : 0;
  votes_[kHyperHash] = static_cast<int64_t>(XXH3_64bits(&hyper, sizeof hyper));
  if (settings_.grad_norm) gradients_.squares().export_limbs(&votes_[kLimbs]);
  if (alone()) {
    vote_sums_ = votes_;
  } else {
    const int64_t words = settings_.grad_norm ? static_cast<int64_t>(votes_.size()) : static_cast<int64_t>(kLimbs);
    ZERO_CO_TRY(all_reduce(*gather_group_, votes_.data(), vote_sums_.data(), words, DType::i64, ReduceOp::sum));
  }
  const auto expected = static_cast<uint64_t>(votes_[kHyperHash]) * static_cast<uint64_t>(group_->size());
  ZERO_CO_CHECK(static_cast<uint64_t>(vote_sums_[kHyperHash]) == expected, ZERO_E_MISMATCH,
                "hyper-parameters or step counts differ between ranks: rank %lld has step count %lld, %s",
                static_cast<long long>(group_->rank()), static_cast<long long>(applied_count_), hyper_.text().c_str());
  skips_ = vote_sums_[kNonfinite] > 0;
  grad_norm_ = settings_.grad_norm ? std::sqrt(kernels::ExactSum::import_limbs(&vote_sums_[kLimbs]).total()) : 0;
  co_return Status();
}

Status Optimizer::apply() {
  ZERO_TRY(check_call("zero_optimizer_apply", Phase::reduced, Phase::reduced));
  ZERO_CHECK(settings_.algorithm != nullptr, ZERO_E_STATE, "algorithm \"custom\" has no update of its own; update the views instead");
  ZERO_CHECK(!applied_, ZERO_E_STATE, "zero_optimizer_apply was called already in this step; zero_optimizer_gather comes next");
  if (!skips_) update();
  return {};
}

void Optimizer::update() {
  const Stopwatch stopwatch(times_.apply_ns);
  kernels::HyperParameters hyper = hyper_.values();
  hyper.step = applied_count_ + 1;
  kernels_.update(kernels::active().*settings_.algorithm->update, updates_, hyper);
  applied_ = true;
}

Task Optimizer::gather_body() {
  ZERO_CO_RETURN_IF_ERROR(check_phase("zero_optimizer_gather", Phase::reduced, Phase::reduced));
  const Stopwatch stopwatch(times_.gather_ns);
  if (!skips_ && settings_.stage > 0 && !shards_params()) ZERO_CO_TRY(gather_params());
  if (!skips_ && (applied_ || settings_.algorithm == nullptr)) ++applied_count_;
  end_step();
  co_return Status();
}

/// Every rank's cut of every bucket goes to all ranks.
Task Optimizer::gather_params() {
  if (alone()) co_return Status();
  const Slot &param = slots_.param();
  for (const PlannedBucket &bucket : plan_.buckets()) {
    std::byte *own = slots_.at(param, bucket, bucket.own.begin);
    ZERO_CO_TRY(all_gather(*gather_group_, own, slots_.at(param, bucket, 0), bucket.cuts, param.dtype));
  }
  co_return Status();
}

void Optimizer::end_step() {
  gradients_.reset();
  phase_ = Phase::running;
}

void Optimizer::write_result(zero_step_result *out) const {
  if (out == nullptr) return;
  const bool to_be_applied = phase_ == Phase::reduced && !skips_;
  out->step = applied_count_ + (to_be_applied ? 1 : 0);
  out->skipped = skips_ ? 1 : 0;
  out->skipped_total = skipped_count_;
  out->unfilled_count = unfilled_count_;
  out->grad_norm = grad_norm_;
}

}  // namespace zero
