/// @file Steps: the steps of several replicas, both those that all replicas make together and the
/// synchronisation of those that each makes by itself.
#include "engine/optimizer/steps.h"

#include "engine/optimizer/config_digest.h"
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

/// From here on all replicas have the smallest loss scale of any, and the largest reason to stop.
Task Steps::compare_runs_of_replicas() {
  Group &across = *parts_.groups.across();
  const kernels::LossScaleState scale = parts_.run.known().loss_scale;
  const bool applies = parts_.guard.phase() == CallGuard::Phase::reduced && !parts_.step.skips &&
                       (parts_.step.applied || parts_.settings.algorithm == nullptr);
  const std::array<int64_t, kWordCount> mine = {parts_.replica_run.calls,
                                                parts_.run.known().applied_count + (applies ? 1 : 0),
                                                static_cast<int64_t>(parts_.hyper_hash(false)),
                                                std::bit_cast<int64_t>(scale.value),
                                                scale.growth_count,
                                                scale.overflow_count,
                                                parts_.replica_run.stop};
  std::vector<int64_t> all(kWordCount * static_cast<size_t>(across.size()));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.count = kWordCount;
  ZERO_CO_AWAIT(all_gather_words(across, fingerprint, mine, all));
  const auto word = [&all](int64_t replica, Word which) { return all[static_cast<size_t>(replica) * kWordCount + which]; };
  int64_t least = 0;
  bool alike = true;
  for (int64_t replica = 0; replica < across.size(); ++replica) {
    ZERO_CO_CHECK(word(replica, kCalls) == parts_.replica_run.calls, ZERO_E_MISMATCH,
                  "rank %lld came to the synchronisation of replicas after %lld steps, but rank %lld after %lld; all replicas make equally "
                  "many steps between two",
                  lld(parts_.group->rank()), lld(parts_.replica_run.calls), lld(replica * parts_.ranks() + parts_.rank()),
                  lld(word(replica, kCalls)));
    parts_.replica_run.applied_ahead[static_cast<size_t>(replica)] = word(replica, kApplied) - mine[kApplied];
    alike = alike && word(replica, kHyperHash) == word(0, kHyperHash);
    const auto value = [&](int64_t of) { return std::bit_cast<double>(word(of, kScale)); };
    if (value(replica) < value(least)) least = replica;
    parts_.step.stop_reason = std::max(parts_.step.stop_reason, word(replica, kStop));
  }
  if (!alike)
    ZERO_CO_AWAIT(compare_texts(across, "hyper-parameters differ between replicas",
                                run_text(parts_.registry.sets, nullptr) + parts_.replicas.outer_text()));
  parts_.replica_run.stop = 0;
  if (word(least, kScale) == mine[kScale] && word(least, kGrowth) == mine[kGrowth] && word(least, kOverflow) == mine[kOverflow])
    co_return Status();
  kernels::LossScaleState &taken = parts_.run.edit().loss_scale;
  taken.value = std::bit_cast<double>(word(least, kScale));
  taken.growth_count = word(least, kGrowth);
  taken.overflow_count = word(least, kOverflow);
  co_return Status();
}

/// Changes the elements that this rank updates. The caller gathers them.
Task Steps::sync_replicas(Replicas::Meeting meeting) {
  const TraceSpan span(parts_.trace, "synchronise replicas");
  parts_.groups.across()->set_caller(Caller::sync);
  ZERO_CO_AWAIT(compare_runs_of_replicas());
  ZERO_CO_AWAIT(parts_.replicas.await_exchange());
  ZERO_CO_TRY(parts_.guard.begin_change(parts_.paths.writes() || parts_.one_copy()));
  ZERO_CO_AWAIT(parts_.replicas.bring_together(meeting, parts_.replica_run.calls, &parts_.replica_run.spread));
  parts_.replica_run.synced = true;
  co_return Status();
}

/// All ranks know alike whether replicas differ: they have made the same calls.
Task Steps::sync(zero_step_result *out) {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_sync", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_CO_TRY(parts_.check_taken_over());
  ZERO_CO_CHECK(parts_.acquired_count == 0 || !parts_.buffers_params(), ZERO_E_STATE,
                "acquired parameters: %lld; in stage 3 and with 8-bit parameters zero_optimizer_param_release comes before "
                "zero_optimizer_sync",
                lld(parts_.acquired_count));
  ZERO_CO_CHECK(!parts_.gradients.any_acquired() && !parts_.gradients.started(), ZERO_E_STATE,
                "gradients of a step were acquired or given; zero_optimizer_step comes before zero_optimizer_sync");
  if (!parts_.replicas.differ()) co_return write_result(out);
  ZERO_CO_AWAIT(parts_.await_readers());
  ZERO_CO_AWAIT(sync_replicas(Replicas::Meeting::all));
  if (parts_.settings.stage > 0) ZERO_CO_AWAIT(parts_.gathers.gather(ParamGatherer::Buckets::trained));
  parts_.guard.end_change();
  ZERO_CO_TRY(parts_.memory->kernels().status());
  ZERO_CO_TRY(parts_.verifier.move_window());
  co_return write_result(out);
}

}  // namespace zero
