/// @file The exchange of step flags: the words that all ranks need before any of them applies a
/// step, and the decision that follows.
#include "engine/optimizer/step_flags_exchange.h"

#include "core/default_floats.h"
#include "core/hash.h"
#include "core/number_text.h"
#include "engine/optimizer/config_digest.h"
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

/// There is no sum of weights in fp32 that gradients could be divided by.
bool StepFlagsExchange::weightless() const {
  if (!parts_.settings.weighted() || parts_.step.empty) return false;
  const double sum = parts_.gradients.weight_sum();
  return !(sum > 0 && sum <= kLargestFinite);
}

/// Sets the flags that this rank knows before it looks at its gradients.
void StepFlagsExchange::fill_in_step_flags() {
  step_flags_.mine(StepFlags::hyper_hash) = static_cast<int64_t>(parts_.hyper_hash(true));
  step_flags_.mine(StepFlags::splits) = parts_.step.splits ? 1 : 0;
  step_flags_.mine(StepFlags::edited) = parts_.run.edited() ? 1 : 0;
  stop_seen_ = stop_request_.pending();
  step_flags_.mine(StepFlags::stops) = stop_seen_ > 0 ? 1 : 0;
  step_flags_.set_filled([this](int64_t id) { return parts_.gradients.filled(id); });
}

/// All ranks learn whether any found a non-finite gradient or changed memory, the norm, which ranks
/// filled which parameter, and whether all have the same hyper-parameters.
Task StepFlagsExchange::run(Finding &change) {
  const TraceSpan span(parts_.trace, "vote");
  if (parts_.paths.device_decides()) {
    ZERO_CO_TRY(change.found == ZERO_FINDING_NONE ? decide_on_device() : parts_.verifier.corrupt(change));
    if (step_flags_.sum(StepFlags::weightless) > 0) co_return Status();
    co_return co_await agree_on_stop();
  }
  ZERO_CO_TRY(parts_.run.learn());
  ZERO_CO_TRY(parts_.tell_update_counts());
  fill_in_step_flags();
  step_flags_.mine(StepFlags::nonfinite) = parts_.settings.skips_nonfinite && !parts_.gradients.finite() ? 1 : 0;
  ZERO_CO_TRY(parts_.memory->kernels().status());
  step_flags_.mine(StepFlags::corrupt) = change.found != ZERO_FINDING_NONE ? 1 : 0;
  step_flags_.mine(StepFlags::weightless) = weightless() ? 1 : 0;
  // All replicas have the same sums.
  const bool counts = (!parts_.replica_run.together || parts_.replicas.first()) && !parts_.step.empty;
  if (parts_.settings.grad_norm) (counts ? parts_.gradients.squares() : kernels::ExactSum()).export_limbs(step_flags_.mine_limbs());
  if (parts_.alone()) {
    step_flags_.count_alone();
  } else {
    const std::span<const int64_t> words = step_flags_.words(parts_.settings.grad_norm);
    ZERO_CO_AWAIT(
        all_reduce(*parts_.groups.gather(), words.data(), step_flags_.sums(words).data(), std::ssize(words), DType::i64, ReduceOp::sum));
  }
  ZERO_CO_AWAIT(check_alike());
  ZERO_CO_TRY(check_same_call(step_flags_.sum(StepFlags::splits)));
  if (parts_.replica_run.together) ZERO_CO_AWAIT(exchange_with_replicas());
  if (step_flags_.sum(StepFlags::edited) > 0) ZERO_CO_AWAIT(compare_update_counts());
  parts_.run.compared();
  if (step_flags_.sum(StepFlags::corrupt) > 0) ZERO_CO_AWAIT(parts_.verifier.share(change));
  if (parts_.groups.model() != nullptr) ZERO_CO_AWAIT(exchange_with_model());
  if (step_flags_.sum(StepFlags::corrupt) > 0) co_return parts_.verifier.corrupt(change);
  if (step_flags_.sum(StepFlags::weightless) > 0) co_return Status();
  decide();
  co_return co_await agree_on_stop();
}

/// Only the step that reports a stop pays for the largest reason. It is reported by this step,
/// whatever becomes of the gradients.
Task StepFlagsExchange::agree_on_stop() {
  parts_.step.stop_reason = 0;
  if (step_flags_.sum(StepFlags::stops) == 0) co_return Status();
  int64_t largest = stop_seen_;
  if (!parts_.alone()) ZERO_CO_AWAIT(all_reduce(*parts_.groups.gather(), &stop_seen_, &largest, 1, DType::i64, ReduceOp::max));
  if (parts_.replica_run.together) ZERO_CO_AWAIT(parts_.replicas.largest(&largest));
  const int64_t of_group = largest;
  if (parts_.groups.model() != nullptr)
    ZERO_CO_AWAIT(all_reduce(*parts_.groups.model(), &of_group, &largest, 1, DType::i64, ReduceOp::max));
  stop_request_.clear(stop_seen_);
  parts_.step.stop_reason = largest;
  if (!parts_.replica_run.together) parts_.replica_run.stop = std::max(parts_.replica_run.stop, largest);
  co_return Status();
}

/// Ranks that all have come to the same vote add theirs up with those of the model's other groups:
/// each of them counts once as often.
Task StepFlagsExchange::exchange_with_model() {
  Group &model = *parts_.groups.model();
  step_flags_.pass_on();
  step_flags_.mine(StepFlags::hyper_hash) = static_cast<int64_t>(hash_of_scale(parts_.run.known().loss_scale));
  const std::span<const int64_t> words = step_flags_.shared_words();
  ZERO_CO_AWAIT(all_reduce(model, words.data(), step_flags_.sums(words).data(), std::ssize(words), DType::i64, ReduceOp::sum));
  ZERO_CO_CHECK(step_flags_.alike(StepFlags::hyper_hash, model.size()), ZERO_E_MISMATCH,
                "loss scales differ between the ranks of the model group: rank %lld has %s (steps without overflow: %lld, overflows: %lld)",
                lld(model.rank()), number_text(parts_.run.known().loss_scale.value).c_str(),
                lld(parts_.run.known().loss_scale.growth_count), lld(parts_.run.known().loss_scale.overflow_count));
  co_return Status();
}

/// Counts differ if some ranks set the step count to what the others have counted themselves.
Task StepFlagsExchange::compare_update_counts() {
  if (!parts_.state.update_counts.kept() || parts_.alone()) co_return Status();
  HostCopy copy;
  ZERO_CO_TRY(
      copy.open(parts_.memory_source(), parts_.state.update_counts.data(), parts_.state.update_counts.size() * dtype_nbytes(DType::i64)));
  const auto *counts = reinterpret_cast<const int64_t *>(copy.data());
  std::string text;
  for (int64_t id = 0; id < parts_.registry.params.size(); ++id)
    text += "update count " + std::to_string(counts[parts_.registry.params.holder(id)]) + " of " + parts_.registry.params[id].name + "\n";
  co_return co_await compare_texts(*parts_.groups.gather(), "update counts differ between ranks", text);
}

/// Texts travel only where hashes differ.
Task StepFlagsExchange::check_alike() {
  if (step_flags_.alike(StepFlags::hyper_hash, parts_.ranks())) co_return Status();
  const std::string mine = run_text(parts_.registry.sets, &parts_.run.known()) + parts_.replicas.outer_text();
  ZERO_CO_AWAIT(compare_texts(*parts_.groups.gather(), "hyper-parameters, loss scales or step counts differ between ranks", mine));
  co_return Status::error(ZERO_E_INTERNAL, "hashes of hyper-parameters differ between ranks, but nothing that they are made from");
}

kernels::DecisionRules StepFlagsExchange::decision_rules() const {
  return {parts_.settings.skips_nonfinite ? 1 : 0, parts_.settings.grad_norm ? 1 : 0, parts_.settings.clipping.norm,
          parts_.loss_scale.rules(), parts_.gradients.loss_scale()};
}

void StepFlagsExchange::decide() {
  if (parts_.step.empty) {
    parts_.run.leave_out();
    parts_.step.skips = true;
    return;
  }
  const DefaultFloats floats;
  const double squares = parts_.settings.grad_norm ? kernels::ExactSum::import_limbs(step_flags_.sum_limbs()).total() : 0;
  parts_.run.decide(decision_rules(), step_flags_.sum(StepFlags::nonfinite) > 0, squares);
  parts_.step.skips = parts_.run.known().skips != 0;
}

/// With one rank, the device's findings need not be exchanged.
Status StepFlagsExchange::decide_on_device() {
  bool captured = false;
  ZERO_TRY(parts_.memory->device->captures(parts_.memory->device->stream(), &captured));
  if (!captured) ZERO_TRY(parts_.tell_update_counts());
  if (captured) stop_request_.refuse();
  step_flags_.set_filled([this](int64_t id) { return parts_.gradients.accumulator().filled(id); });
  step_flags_.mine(StepFlags::weightless) = weightless() ? 1 : 0;
  stop_seen_ = stop_request_.pending();
  step_flags_.mine(StepFlags::stops) = stop_seen_ > 0 ? 1 : 0;
  step_flags_.count_alone();
  if (weightless()) {
    (void)parts_.memory->kernels().passed();  // clears findings, which the next step must not see
    return parts_.memory->kernels().status();
  }
  kernels::ExactSum none;
  if (parts_.settings.grad_norm) parts_.gradients.add_squares(none);
  parts_.run.decide_on_device(decision_rules(), captured);
  return parts_.memory->kernels().status();
}

/// The sums of each replica's votes are added up over all of them.
Task StepFlagsExchange::exchange_with_replicas() {
  Group &across = *parts_.groups.across();
  across.set_caller(parts_.step.splits ? Caller::reduce : Caller::step);
  step_flags_.pass_all_on();
  const std::span<const int64_t> words = step_flags_.words(parts_.settings.grad_norm);
  ZERO_CO_AWAIT(all_reduce(across, words.data(), step_flags_.sums(words).data(), std::ssize(words), DType::i64, ReduceOp::sum));
  if (!step_flags_.alike(StepFlags::hyper_hash, across.size())) {
    const std::string mine = run_text(parts_.registry.sets, &parts_.run.known()) + parts_.replicas.outer_text();
    ZERO_CO_AWAIT(compare_texts(across, "hyper-parameters, loss scales or step counts differ between replicas", mine));
  }
  const int64_t splitting = step_flags_.sum(StepFlags::splits);
  ZERO_CO_CHECK(splitting == (parts_.step.splits ? parts_.group->size() : 0), ZERO_E_MISMATCH,
                "rank %lld called %s, but ranks of another replica called %s; all ranks make the same call", lld(parts_.group->rank()),
                parts_.step.splits ? "zero_optimizer_reduce" : "zero_optimizer_step",
                parts_.step.splits ? "zero_optimizer_step" : "zero_optimizer_reduce");
  co_return Status();
}

/// `splitting`: ranks that called reduce.
Status StepFlagsExchange::check_same_call(int64_t splitting) const {
  const int64_t others = parts_.step.splits ? parts_.ranks() - splitting : splitting;
  ZERO_CHECK(others == 0, ZERO_E_MISMATCH, "rank %lld called %s, but %lld of %lld ranks called %s; all ranks make the same call",
             lld(parts_.group->rank()), parts_.step.splits ? "zero_optimizer_reduce" : "zero_optimizer_step", lld(others),
             lld(parts_.ranks()), parts_.step.splits ? "zero_optimizer_step" : "zero_optimizer_reduce");
  return {};
}

}  // namespace zero
