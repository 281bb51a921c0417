/// @file The vote of a step: what all ranks must know before any applies it, and what it comes to.
#include "engine/optimizer/optimizer.h"

#include "core/default_floats.h"
#include "core/hash.h"
#include "core/number_text.h"
#include "engine/optimizer/sealed_text.h"
#include "engine/storage/host_copy.h"

#include <algorithm>
#include <iterator>
#include <span>

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
  hash.add(replicas_.outer());
  if (with_run) hash.add(run_.known().applied_count);
  if (with_run) hash.add(run_.known().skipped_count);
  if (with_run) hash.add(run_.known().loss_scale);
  return hash.value();
}

/// There is no sum of weights in fp32 that gradients could be divided by.
bool Optimizer::weightless() const {
  if (settings_.divisor != ZERO_DIVISOR_WEIGHTS) return false;
  const double sum = gradients_.weight_sum();
  return !(sum > 0 && sum <= kLargestFinite);
}

/// What this rank knows before it looks at its gradients.
void Optimizer::fill_in_ballot() {
  ballot_.mine(Ballot::hyper_hash) = static_cast<int64_t>(hyper_hash(true));
  ballot_.mine(Ballot::splits) = splits_ ? 1 : 0;
  ballot_.mine(Ballot::edited) = run_.edited() ? 1 : 0;
  stop_seen_ = stop_request_.pending();
  ballot_.mine(Ballot::stops) = stop_seen_ > 0 ? 1 : 0;
  ballot_.set_filled([this](int64_t id) { return gradients_.filled(id); });
}

/// All ranks learn whether any met a non-finite gradient or memory that was changed, the norm, who filled which parameter, and whether all
/// have the same hyper-parameters.
Task Optimizer::vote(Finding &change) {
  const TraceSpan span(trace_, "vote");
  if (paths_.device_decides()) {
    ZERO_CO_TRY(change.found == ZERO_FINDING_NONE ? judge_on_device() : verifier_.corrupt(change));
    if (ballot_.sum(Ballot::weightless) > 0) co_return Status();
    co_return co_await agree_on_stop();
  }
  ZERO_CO_TRY(run_.learn());
  ZERO_CO_TRY(tell_update_counts());
  fill_in_ballot();
  ballot_.mine(Ballot::nonfinite) = settings_.skips_nonfinite && !gradients_.finite() ? 1 : 0;
  ZERO_CO_TRY(kernels_.status());
  ballot_.mine(Ballot::corrupt) = change.found != ZERO_FINDING_NONE ? 1 : 0;
  ballot_.mine(Ballot::weightless) = weightless() ? 1 : 0;
  // All replicas have the same sums.
  const bool counts = !replica_run_.together || replicas_.first();
  if (settings_.grad_norm) (counts ? gradients_.squares() : kernels::ExactSum()).export_limbs(ballot_.mine_limbs());
  if (alone()) {
    ballot_.count_alone();
  } else {
    const std::span<const int64_t> words = ballot_.words(settings_.grad_norm);
    ZERO_CO_AWAIT(all_reduce(*groups_.gather(), words.data(), ballot_.sums(words).data(), std::ssize(words), DType::i64, ReduceOp::sum));
  }
  ZERO_CO_AWAIT(check_alike());
  ZERO_CO_TRY(check_same_call(ballot_.sum(Ballot::splits)));
  if (replica_run_.together) ZERO_CO_AWAIT(vote_of_replicas());
  if (ballot_.sum(Ballot::edited) > 0) ZERO_CO_AWAIT(compare_update_counts());
  run_.compared();
  if (ballot_.sum(Ballot::corrupt) > 0) ZERO_CO_AWAIT(verifier_.share(change));
  if (groups_.model() != nullptr) ZERO_CO_AWAIT(vote_of_model());
  if (ballot_.sum(Ballot::corrupt) > 0) co_return verifier_.corrupt(change);
  if (ballot_.sum(Ballot::weightless) > 0) co_return Status();
  judge();
  co_return co_await agree_on_stop();
}

/// Only the step that reports a stop pays for the largest reason. It is reported by this step, whatever becomes of the gradients.
Task Optimizer::agree_on_stop() {
  stop_reason_ = 0;
  if (ballot_.sum(Ballot::stops) == 0) co_return Status();
  int64_t largest = stop_seen_;
  if (!alone()) ZERO_CO_AWAIT(all_reduce(*groups_.gather(), &stop_seen_, &largest, 1, DType::i64, ReduceOp::max));
  if (replica_run_.together) ZERO_CO_AWAIT(replicas_.largest(&largest));
  const int64_t of_group = largest;
  if (groups_.model() != nullptr) ZERO_CO_AWAIT(all_reduce(*groups_.model(), &of_group, &largest, 1, DType::i64, ReduceOp::max));
  stop_request_.clear(stop_seen_);
  stop_reason_ = largest;
  if (!replica_run_.together) replica_run_.stop = std::max(replica_run_.stop, largest);
  co_return Status();
}

/// Ranks that all have come to the same vote add theirs up with those of the model's other groups: each of them counts once as often.
Task Optimizer::vote_of_model() {
  Group &model = *groups_.model();
  ballot_.pass_on();
  ballot_.mine(Ballot::hyper_hash) = static_cast<int64_t>(hash_of_scale(run_.known().loss_scale));
  const std::span<const int64_t> words = ballot_.shared_words();
  ZERO_CO_AWAIT(all_reduce(model, words.data(), ballot_.sums(words).data(), std::ssize(words), DType::i64, ReduceOp::sum));
  ZERO_CO_CHECK(ballot_.alike(Ballot::hyper_hash, model.size()), ZERO_E_MISMATCH,
                "loss scales differ between the ranks of the model group: rank %lld has %s (steps without overflow: %lld, overflows: %lld)",
                lld(model.rank()), number_text(run_.known().loss_scale.value).c_str(), lld(run_.known().loss_scale.growth_count),
                lld(run_.known().loss_scale.overflow_count));
  co_return Status();
}

/// From now on memory has the counts that the caller has set, and so have checksums taken before.
Status Optimizer::tell_update_counts() {
  if (!update_counts_.untold()) return {};
  update_counts_.tell();
  return verifier_.note_writes(ZERO_SLOT_UPDATE_COUNT);
}

/// Captured steps that run from now on compute with the scalars and counts as they are now.
Status Optimizer::tell_run() {
  run_.tell();
  return tell_update_counts();
}

/// Counts differ if some ranks set the step count to what the others have counted themselves.
Task Optimizer::compare_update_counts() {
  if (!update_counts_.kept() || alone()) co_return Status();
  HostCopy copy;
  ZERO_CO_TRY(copy.open(memory_source(), update_counts_.data(), update_counts_.size() * dtype_nbytes(DType::i64)));
  const auto *counts = reinterpret_cast<const int64_t *>(copy.data());
  std::string text;
  for (int64_t id = 0; id < params_.size(); ++id)
    text += "update count " + std::to_string(counts[params_.holder(id)]) + " of " + params_[id].name + "\n";
  co_return co_await compare_texts(*groups_.gather(), "update counts differ between ranks", text);
}

/// Texts travel only where hashes differ.
Task Optimizer::check_alike() {
  if (ballot_.alike(Ballot::hyper_hash, ranks())) co_return Status();
  const std::string mine = run_text(sets_, &run_.known()) + replicas_.outer_text();
  ZERO_CO_AWAIT(compare_texts(*groups_.gather(), "hyper-parameters, loss scales or step counts differ between ranks", mine));
  co_return Status::error(ZERO_E_INTERNAL, "hashes of hyper-parameters differ between ranks, but nothing that they are made from");
}

kernels::VerdictRules Optimizer::verdict_rules() const {
  return {settings_.skips_nonfinite ? 1 : 0, settings_.grad_norm ? 1 : 0, settings_.clipping.norm, loss_scale_.rules()};
}

void Optimizer::judge() {
  const DefaultFloats floats;
  const double squares = settings_.grad_norm ? kernels::ExactSum::import_limbs(ballot_.sum_limbs()).total() : 0;
  run_.judge(verdict_rules(), ballot_.sum(Ballot::nonfinite) > 0, squares);
  skips_ = run_.known().skips != 0;
}

/// In a world of one what the device finds concerns nobody else.
Status Optimizer::judge_on_device() {
  bool captured = false;
  ZERO_TRY(device_->captures(device_->stream(), &captured));
  if (!captured) ZERO_TRY(tell_update_counts());
  if (captured) stop_request_.refuse();
  ballot_.set_filled([this](int64_t id) { return gradients_.filled(id); });
  ballot_.mine(Ballot::weightless) = weightless() ? 1 : 0;
  stop_seen_ = stop_request_.pending();
  ballot_.mine(Ballot::stops) = stop_seen_ > 0 ? 1 : 0;
  ballot_.count_alone();
  if (weightless()) {
    (void)kernels_.passed();  // what was found is not the next step's
    return kernels_.status();
  }
  kernels::ExactSum none;
  if (settings_.grad_norm) gradients_.add_squares(none);
  run_.judge_on_device(verdict_rules(), captured);
  return kernels_.status();
}

}  // namespace zero
