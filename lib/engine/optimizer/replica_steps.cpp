/// @file Steps of several replicas: those that all make together, and the synchronisation of those that each makes by itself.
#include "engine/optimizer/optimizer.h"

#include "engine/optimizer/sealed_text.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace zero {
namespace {

/// Words that a replica tells the others when they are brought together.
enum Word : size_t { kCalls, kApplied, kHyperHash, kScale, kGrowth, kOverflow, kStop, kWordCount };

}  // namespace

/// Before a step's first gradient.
void Optimizer::plan_next_step() {
  replica_run_.calls = call_count();
  replica_run_.together = replicas_.together(replica_run_.calls);
  gradients_.sum_across(replica_run_.together);
  gradients_.send_in_full(settings_.replicas.in_full(replica_run_.calls));
  gradients_.residuals().follow_loss_scale(run_.known().loss_scale.value);
}

/// The sums of each replica's votes are added up over all of them.
Task Optimizer::vote_of_replicas() {
  Group &across = *groups_.across();
  across.set_caller(splits_ ? Caller::reduce : Caller::step);
  ballot_.pass_all_on();
  const std::span<const int64_t> words = ballot_.words(settings_.grad_norm);
  ZERO_CO_AWAIT(all_reduce(across, words.data(), ballot_.sums(words).data(), std::ssize(words), DType::i64, ReduceOp::sum));
  if (!ballot_.alike(Ballot::hyper_hash, across.size())) {
    const std::string mine = run_text(sets_, &run_.known()) + replicas_.outer_text();
    ZERO_CO_AWAIT(compare_texts(across, "hyper-parameters, loss scales or step counts differ between replicas", mine));
  }
  const int64_t splitting = ballot_.sum(Ballot::splits);
  ZERO_CO_CHECK(splitting == (splits_ ? group_->size() : 0), ZERO_E_MISMATCH,
                "rank %lld called %s, but ranks of another replica called %s; all ranks make the same call", lld(group_->rank()),
                splits_ ? "zero_optimizer_reduce" : "zero_optimizer_step", splits_ ? "zero_optimizer_step" : "zero_optimizer_reduce");
  co_return Status();
}

/// From here on all replicas have the smallest loss scale of any, and the largest reason to stop.
Task Optimizer::compare_runs_of_replicas() {
  Group &across = *groups_.across();
  const kernels::LossScaleState scale = run_.known().loss_scale;
  const bool applies = guard_.phase() == Phase::reduced && !skips_ && (applied_ || settings_.algorithm == nullptr);
  const std::array<int64_t, kWordCount> mine = {replica_run_.calls,
                                                run_.known().applied_count + (applies ? 1 : 0),
                                                static_cast<int64_t>(hyper_hash(false)),
                                                std::bit_cast<int64_t>(scale.value),
                                                scale.growth_count,
                                                scale.overflow_count,
                                                replica_run_.stop};
  std::vector<int64_t> all(kWordCount * static_cast<size_t>(across.size()));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.count = kWordCount;
  ZERO_CO_AWAIT(tell_all(across, fingerprint, mine, all));
  const auto word = [&all](int64_t replica, Word which) { return all[static_cast<size_t>(replica) * kWordCount + which]; };
  int64_t least = 0;
  bool alike = true;
  for (int64_t replica = 0; replica < across.size(); ++replica) {
    ZERO_CO_CHECK(word(replica, kCalls) == replica_run_.calls, ZERO_E_MISMATCH,
                  "rank %lld came to the synchronisation of replicas after %lld steps, but rank %lld after %lld; all replicas make equally "
                  "many steps between two",
                  lld(group_->rank()), lld(replica_run_.calls), lld(replica * ranks() + rank()), lld(word(replica, kCalls)));
    replica_run_.applied_ahead[static_cast<size_t>(replica)] = word(replica, kApplied) - mine[kApplied];
    alike = alike && word(replica, kHyperHash) == word(0, kHyperHash);
    const auto value = [&](int64_t of) { return std::bit_cast<double>(word(of, kScale)); };
    if (value(replica) < value(least)) least = replica;
    stop_reason_ = std::max(stop_reason_, word(replica, kStop));
  }
  if (!alike)
    ZERO_CO_AWAIT(compare_texts(across, "hyper-parameters differ between replicas", run_text(sets_, nullptr) + replicas_.outer_text()));
  replica_run_.stop = 0;
  if (word(least, kScale) == mine[kScale] && word(least, kGrowth) == mine[kGrowth] && word(least, kOverflow) == mine[kOverflow])
    co_return Status();
  kernels::LossScaleState &taken = run_.edit().loss_scale;
  taken.value = std::bit_cast<double>(word(least, kScale));
  taken.growth_count = word(least, kGrowth);
  taken.overflow_count = word(least, kOverflow);
  co_return Status();
}

/// Changes the elements that this rank updates. The caller gathers them.
Task Optimizer::sync_replicas() {
  const TraceSpan span(trace_, "synchronise replicas");
  groups_.across()->set_caller(Caller::sync);
  ZERO_CO_AWAIT(compare_runs_of_replicas());
  ZERO_CO_TRY(guard_.begin_change(paths_.writes() || one_copy()));
  ZERO_CO_AWAIT(replicas_.bring_together(&replica_run_.spread));
  replica_run_.synced = true;
  co_return Status();
}

Task Optimizer::sync(zero_step_result *out, void *stream) { return guard_.run(in_order(sync_replicas_body(out), stream), Caller::sync); }

/// All ranks know alike whether replicas differ: they have made the same calls.
Task Optimizer::sync_replicas_body(zero_step_result *out) {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_sync", Phase::running, Phase::running));
  ZERO_CO_TRY(check_taken_over());
  ZERO_CO_CHECK(acquired_count_ == 0 || !buffers_params(), ZERO_E_STATE,
                "acquired parameters: %lld; in stage 3 and with 8-bit parameters zero_optimizer_param_release comes before "
                "zero_optimizer_sync",
                lld(acquired_count_));
  ZERO_CO_CHECK(!gradients_.any_acquired() && !gradients_.started(), ZERO_E_STATE,
                "gradients of a step were acquired or given; zero_optimizer_step comes before zero_optimizer_sync");
  if (!replicas_.differ()) co_return write_result(out);
  ZERO_CO_AWAIT(await_readers());
  ZERO_CO_AWAIT(sync_replicas());
  if (settings_.stage > 0) ZERO_CO_AWAIT(gathers_.gather(ParamGathers::Buckets::trained));
  guard_.end_change();
  ZERO_CO_TRY(kernels_.status());
  ZERO_CO_TRY(verifier_.move_window());
  co_return write_result(out);
}

}  // namespace zero
