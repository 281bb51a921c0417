/// @file Coded lines of this rank's cuts.
#include "engine/gradients/coded_sums.h"

#include "engine/gradients/moment_freeze.h"

#include <algorithm>
#include <span>

namespace zero {

int64_t CodedSums::largest_cut() const {
  int64_t largest = 0;
  for (const int64_t index : plan_.order()) largest = std::max(largest, plan_.bucket(index).own.count());
  return largest;
}

int64_t CodedSums::workspace_nbytes() const {
  const int64_t largest = largest_cut();
  return (largest > 0 ? CodedMean::nbytes(*replicas_.grad_code, largest, replicas_.count) : 0) + carried_nbytes();
}

int64_t CodedSums::carried_nbytes() const {
  return (replicas_.residual ? Residuals::nbytes(plan_, replicas_.count) : 0) +
         (replicas_.code_momentum > 0 ? MomentumCorrection::nbytes(plan_) : 0);
}

Status CodedSums::open(const MemorySource &source) {
  full_lines_.resize(plan_.buckets().size());
  for (const int64_t index : plan_.order()) {
    const Range own = plan_.bucket(index).own;
    const std::vector<uint8_t> all = plan_.shared_lines(index, replicas_.grad_code->fills);
    if (!own.empty())
      full_lines_[static_cast<size_t>(index)].assign(all.begin() + own.begin / kLine, all.begin() + round_up(own.end, kLine) / kLine);
  }
  all_lines_.assign(static_cast<size_t>(round_up(largest_cut(), kLine) / kLine), 1);
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, carried_nbytes(), &memory_));
  if (replicas_.residual) residuals_.open(plan_, replicas_.count, memory_);
  if (replicas_.code_momentum > 0) momentum_.open(plan_, replicas_.code_momentum, memory_);
  return coded_.open(*replicas_.grad_code, largest_cut(), replicas_.count, source);
}

void CodedSums::close() {
  coded_.close();
  residuals_.close();
  momentum_.close();
  memory_.release();
}

void CodedSums::begin_step(const StepTerms &terms) {
  across_ = terms.across;
  in_full_ = terms.in_full;
  carried_ = terms.carried;
  residuals_.follow_loss_scale(terms.loss_scale);
  momentum_.follow_loss_scale(terms.loss_scale);
}

void CodedSums::end_step(bool applied) {
  residuals_.end_step(applied && across_, in_full_);
  momentum_.end_step(applied && across_, false);
}

void CodedSums::forget() {
  residuals_.forget();
  momentum_.forget();
}

CarriedState *CodedSums::carried(Carried kind) {
  if (kind == Carried::velocities) return replicas_.code_momentum > 0 ? &momentum_ : nullptr;
  return replicas_.residual && kind != Carried::factors ? &residuals_ : nullptr;
}

CarriedPart CodedSums::carried_of(Carried kind, int64_t id, int64_t replica) {
  if (kind == Carried::residual_results) return residuals_.results_of(plan_, id, replica, replicas_.count);
  return carried(kind)->of_own_cut(plan_, id);
}

/// A line that is sent in full loses nothing, so that its residual ends as zero.
Task CodedSums::sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) {
  auto *values = reinterpret_cast<float *>(given.data);
  const int64_t count = plan_.bucket(bucket).own.count();
  const std::vector<uint8_t> &shared = full_lines_[static_cast<size_t>(bucket)];
  const std::span<const uint8_t> full = in_full_ ? std::span<const uint8_t>(all_lines_).first(shared.size()) : shared;
  CodingLoss loss = residuals_.of(bucket, count);
  loss.velocity = momentum_.add(bucket, values);
  bool finite = true;
  // Replicas have the same moments, so that each adds its share of what all then take off.
  if (carried_ != nullptr) carried_->add(bucket, full, call.divisor / static_cast<double>(group.size()), values);
  ZERO_CO_AWAIT(coded_.run(group, values, count, full, call.divisor, &finite, loss));
  if (carried_ != nullptr && !carried_->take_off(bucket, full, values)) finite = false;
  if (const DType dtype = result_dtype(call); dtype != DType::f32) {
    const void *source = values;
    finite = group.reducer()->reduce({call.out, &source, 1, count, DType::f32, ReduceOp::sum, 1, dtype}) && finite;
  }
  if (!finite && call.out_finite != nullptr) *call.out_finite = false;
  co_return Status();
}

}  // namespace zero
