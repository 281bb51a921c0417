/// @file The vote of a step: what all ranks must know before any applies it, and what it comes to.
#include "engine/optimizer.h"

#include "core/default_floats.h"
#include "core/hash.h"
#include "engine/sealed_text.h"

#include <algorithm>

namespace zero {
namespace {

/// No variable of a task: hashes are aligned to more than its memory is.
uint64_t hash_of_scale(const kernels::LossScaleState &scale) {
  Hash hash;
  hash.add(scale);
  return hash.value();
}

}  // namespace

uint64_t Optimizer::hyper_hash(bool with_run) const {
  Hash hash;
  for (const HyperSet &set : sets_) hash.add(set.values());
  if (with_run) hash.add(run_.applied_count);
  if (with_run) hash.add(run_.skipped_count);
  if (with_run) hash.add(run_.loss_scale);
  return hash.value();
}

/// All ranks learn whether any met a non-finite gradient or memory that was changed, the norm, who filled which parameter, and whether all
/// have the same hyper-parameters: with a sum over ranks equal to N times each rank's own hash, hashes are equal.
Task Optimizer::vote(Finding &change) {
  const TraceSpan span(trace_, "vote");
  if (device_judges_ && !alone()) co_return co_await vote_on_devices();
  if (device_judges_) co_return change.found == ZERO_FINDING_NONE ? judge_on_device() : corrupt(change);
  ZERO_CO_TRY(learn_run());
  votes_[kNonfinite] = settings_.skips_nonfinite && !gradients_.finite() ? 1 : 0;
  ZERO_CO_TRY(kernels_.status());
  votes_[kHyperHash] = static_cast<int64_t>(hyper_hash(true));
  votes_[kCorrupt] = change.found != ZERO_FINDING_NONE ? 1 : 0;
  votes_[kWeightless] = settings_.divisor == ZERO_DIVISOR_WEIGHTS && !(gradients_.weight_sum() > 0) ? 1 : 0;
  if (settings_.grad_norm) gradients_.squares().export_limbs(&votes_[kLimbs]);
  for (size_t id = 0; id < touched_.size(); ++id) votes_[kVoteWords + id] = gradients_.filled(static_cast<int64_t>(id)) ? 1 : 0;
  if (alone()) {
    vote_sums_ = votes_;
  } else {
    const size_t words = !touched_.empty() ? votes_.size() : settings_.grad_norm ? kVoteWords : kLimbs;
    ZERO_CO_AWAIT(all_reduce(*gather_group_, votes_.data(), vote_sums_.data(), static_cast<int64_t>(words), DType::i64, ReduceOp::sum));
  }
  ZERO_CO_AWAIT(check_alike(true));
  run_edited_ = false;
  std::copy(vote_sums_.begin() + kVoteWords, vote_sums_.end(), touched_.begin());
  if (vote_sums_[kCorrupt] > 0) ZERO_CO_AWAIT(share_finding(change));
  if (model_group_ != nullptr) {
    ZERO_CO_AWAIT(vote_of_model());
  }
  if (vote_sums_[kCorrupt] > 0) co_return corrupt(change);
  if (vote_sums_[kWeightless] == 0) judge();
  co_return Status();
}

/// Ranks that all have come to the same vote add theirs up with those of the model's other groups: each of them counts once as often.
Task Optimizer::vote_of_model() {
  const uint64_t mine = hash_of_scale(run_.loss_scale);
  votes_ = vote_sums_;
  votes_[kHyperHash] = static_cast<int64_t>(mine);
  ZERO_CO_AWAIT(all_reduce(*model_group_, votes_.data(), vote_sums_.data(), kVoteWords, DType::i64, ReduceOp::sum));
  const uint64_t expected = mine * static_cast<uint64_t>(model_group_->size());
  ZERO_CO_CHECK(
      static_cast<uint64_t>(vote_sums_[kHyperHash]) == expected, ZERO_E_MISMATCH,
      "loss scales differ between the ranks of the model group: rank %lld has %.17g (%lld steps without overflow, %lld overflows)",
      lld(model_group_->rank()), run_.loss_scale.value, lld(run_.loss_scale.growth_count), lld(run_.loss_scale.overflow_count));
  co_return Status();
}

/// Texts travel only where hashes differ.
Task Optimizer::check_alike(bool with_run) {
  const auto expected = static_cast<uint64_t>(votes_[kHyperHash]) * static_cast<uint64_t>(group_->size());
  if (static_cast<uint64_t>(vote_sums_[kHyperHash]) == expected) co_return Status();
  const std::string mine = run_text(sets_, with_run ? &run_ : nullptr);
  ZERO_CO_AWAIT(compare_texts(*gather_group_, "hyper-parameters, loss scales or step counts differ between ranks", mine));
  co_return Status::error(ZERO_E_INTERNAL, "hashes of hyper-parameters differ between ranks, but nothing that they are made from");
}

kernels::VerdictRules Optimizer::verdict_rules() const {
  return {settings_.skips_nonfinite ? 1 : 0, settings_.grad_norm ? 1 : 0, settings_.clipping.norm, loss_scale_.rules()};
}

void Optimizer::judge() {
  const DefaultFloats floats;
  const double squares = settings_.grad_norm ? kernels::ExactSum::import_limbs(&vote_sums_[kLimbs]).total() : 0;
  kernels::judge(verdict_rules(), vote_sums_[kNonfinite] > 0, squares, run_);
  skips_ = run_.skips != 0;
  run_told_ = false;
  if (settings_.on_device) tell_run();
}

/// In a world of one what the device finds concerns nobody else.
Status Optimizer::judge_on_device() {
  bool captured = false;
  ZERO_TRY(device_->captures(device_->stream(), &captured));
  captured_ = captured_ || captured;
  if (!captured) tell_run();
  for (size_t id = 0; id < touched_.size(); ++id) touched_[id] = gradients_.filled(static_cast<int64_t>(id)) ? 1 : 0;
  vote_sums_[kWeightless] = settings_.divisor == ZERO_DIVISOR_WEIGHTS && !(gradients_.weight_sum() > 0) ? 1 : 0;
  if (vote_sums_[kWeightless] > 0) {
    (void)kernels_.passed();  // what was found is not the next step's
    return kernels_.status();
  }
  kernels::ExactSum none;
  if (settings_.grad_norm) gradients_.add_squares(none);
  device_kernels_->judge(verdict_rules());
  ++judged_count_;
  return kernels_.status();
}

/// What the device is to go on from.
void Optimizer::tell_run() {
  if (!run_told_) device_kernels_->set_run(run_);
  run_told_ = true;
}

/// What the device has judged and the host does not know. What the caller has set is newer until the device is told.
Status Optimizer::learn_run() const {
  if (!run_told_ || (judged_count_ == 0 && !captured_)) return {};
  ZERO_TRY(device_kernels_->read_run(&run_));
  judged_count_ = 0;
  return {};
}

}  // namespace zero
