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
  if (with_run) hash.add(run_.known().applied_count);
  if (with_run) hash.add(run_.known().skipped_count);
  if (with_run) hash.add(run_.known().loss_scale);
  return hash.value();
}

/// All ranks learn whether any met a non-finite gradient or memory that was changed, the norm, who filled which parameter, and whether all
/// have the same hyper-parameters: with a sum over ranks equal to N times each rank's own hash, hashes are equal.
Task Optimizer::vote(Finding &change) {
  const TraceSpan span(trace_, "vote");
  if (device_judges_ && !alone()) co_return co_await vote_on_devices();
  if (device_judges_) co_return change.found == ZERO_FINDING_NONE ? judge_on_device() : verifier_.corrupt(change);
  ZERO_CO_TRY(run_.learn());
  votes_[kNonfinite] = settings_.skips_nonfinite && !gradients_.finite() ? 1 : 0;
  ZERO_CO_TRY(kernels_.status());
  votes_[kHyperHash] = static_cast<int64_t>(hyper_hash(true));
  votes_[kCorrupt] = change.found != ZERO_FINDING_NONE ? 1 : 0;
  votes_[kWeightless] = settings_.divisor == ZERO_DIVISOR_WEIGHTS && !(gradients_.weight_sum() > 0) ? 1 : 0;
  votes_[kSplits] = splits_ ? 1 : 0;
  if (settings_.grad_norm) gradients_.squares().export_limbs(&votes_[kLimbs]);
  for (size_t id = 0; id < touched_.size(); ++id) votes_[kVoteWords + id] = gradients_.filled(static_cast<int64_t>(id)) ? 1 : 0;
  if (alone()) {
    vote_sums_ = votes_;
  } else {
    const size_t words = !touched_.empty() ? votes_.size() : settings_.grad_norm ? kVoteWords : kLimbs;
    ZERO_CO_AWAIT(all_reduce(*gather_group_, votes_.data(), vote_sums_.data(), static_cast<int64_t>(words), DType::i64, ReduceOp::sum));
  }
  ZERO_CO_AWAIT(check_alike(true));
  ZERO_CO_TRY(check_same_call(vote_sums_[kSplits]));
  run_.compared();
  std::copy(vote_sums_.begin() + kVoteWords, vote_sums_.end(), touched_.begin());
  if (vote_sums_[kCorrupt] > 0) ZERO_CO_AWAIT(verifier_.share(change));
  if (model_group_ != nullptr) {
    ZERO_CO_AWAIT(vote_of_model());
  }
  if (vote_sums_[kCorrupt] > 0) co_return verifier_.corrupt(change);
  if (vote_sums_[kWeightless] == 0) judge();
  co_return Status();
}

/// Ranks that all have come to the same vote add theirs up with those of the model's other groups: each of them counts once as often.
Task Optimizer::vote_of_model() {
  const uint64_t mine = hash_of_scale(run_.known().loss_scale);
  votes_ = vote_sums_;
  votes_[kHyperHash] = static_cast<int64_t>(mine);
  ZERO_CO_AWAIT(all_reduce(*model_group_, votes_.data(), vote_sums_.data(), kVoteWords, DType::i64, ReduceOp::sum));
  const uint64_t expected = mine * static_cast<uint64_t>(model_group_->size());
  ZERO_CO_CHECK(
      static_cast<uint64_t>(vote_sums_[kHyperHash]) == expected, ZERO_E_MISMATCH,
      "loss scales differ between the ranks of the model group: rank %lld has %.17g (%lld steps without overflow, %lld overflows)",
      lld(model_group_->rank()), run_.known().loss_scale.value, lld(run_.known().loss_scale.growth_count),
      lld(run_.known().loss_scale.overflow_count));
  co_return Status();
}

/// Texts travel only where hashes differ.
Task Optimizer::check_alike(bool with_run) {
  const auto expected = static_cast<uint64_t>(votes_[kHyperHash]) * static_cast<uint64_t>(group_->size());
  if (static_cast<uint64_t>(vote_sums_[kHyperHash]) == expected) co_return Status();
  const std::string mine = run_text(sets_, with_run ? &run_.known() : nullptr);
  ZERO_CO_AWAIT(compare_texts(*gather_group_, "hyper-parameters, loss scales or step counts differ between ranks", mine));
  co_return Status::error(ZERO_E_INTERNAL, "hashes of hyper-parameters differ between ranks, but nothing that they are made from");
}

kernels::VerdictRules Optimizer::verdict_rules() const {
  return {settings_.skips_nonfinite ? 1 : 0, settings_.grad_norm ? 1 : 0, settings_.clipping.norm, loss_scale_.rules()};
}

void Optimizer::judge() {
  const DefaultFloats floats;
  const double squares = settings_.grad_norm ? kernels::ExactSum::import_limbs(&vote_sums_[kLimbs]).total() : 0;
  run_.judge(verdict_rules(), vote_sums_[kNonfinite] > 0, squares);
  skips_ = run_.known().skips != 0;
}

/// In a world of one what the device finds concerns nobody else.
Status Optimizer::judge_on_device() {
  bool captured = false;
  ZERO_TRY(device_->captures(device_->stream(), &captured));
  for (size_t id = 0; id < touched_.size(); ++id) touched_[id] = gradients_.filled(static_cast<int64_t>(id)) ? 1 : 0;
  vote_sums_[kWeightless] = settings_.divisor == ZERO_DIVISOR_WEIGHTS && !(gradients_.weight_sum() > 0) ? 1 : 0;
  if (vote_sums_[kWeightless] > 0) {
    (void)kernels_.passed();  // what was found is not the next step's
    return kernels_.status();
  }
  kernels::ExactSum none;
  if (settings_.grad_norm) gradients_.add_squares(none);
  run_.judge_on_device(verdict_rules(), captured);
  return kernels_.status();
}

}  // namespace zero
