/// @file verify: the call that compares replicas, and shards with their checksums.
#include "engine/optimizer/state_access.h"

#include "group/collectives/agreement.h"

#include <algorithm>
#include <vector>

namespace zero {

Task StateAccess::verify(zero_verify_result *out, void *stream) {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_verify", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_CO_TRY(parts_.memory->check_not_captured("zero_optimizer_verify", stream));
  ZERO_CO_TRY(parts_.memory->wait_for(stream));
  bool edited = false;
  ZERO_CO_AWAIT(any_edited(&edited));
  ZERO_CO_CHECK(!edited, ZERO_E_STATE,
                "parameters were written since the last begin, so that replicas may differ; zero_optimizer_begin comes before verify");
  ZERO_CO_TRY(parts_.tell_update_counts());
  Finding finding;
  ZERO_CO_TRY(parts_.verifier.find_change(&finding));
  ZERO_CO_AWAIT(parts_.verifier.share(finding));
  int64_t replica_nbytes = 0;
  if (finding.found == ZERO_FINDING_NONE)
    ZERO_CO_AWAIT(parts_.verifier.compare_replicas(!parts_.replicas.differ(), finding, &replica_nbytes));
  *out = {};
  out->struct_size = sizeof *out;
  out->found = finding.found;
  out->chunk_count = finding.chunk_count;
  out->rank = finding.rank;
  out->other_rank = finding.other_rank;
  out->param = finding.param;
  out->slot = finding.slot;
  out->offset = finding.offset;
  out->count = finding.count;
  out->replica_nbytes = replica_nbytes;
  out->shard_nbytes = parts_.verifier.shard_nbytes();
  co_return parts_.memory->kernels().status();
}

/// Finds whether any rank wrote parameters that begin has not adopted. Initialisers are no
/// collectives, so each rank knows only its own calls.
Task StateAccess::any_edited(bool *out) {
  *out = parts_.first_values.edited();
  if (parts_.alone()) co_return Status();
  const int64_t mine = parts_.first_values.edited() ? 1 : 0;
  std::vector<int64_t> all(static_cast<size_t>(parts_.ranks()));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.count = 1;
  ZERO_CO_AWAIT(all_gather_words(*parts_.groups.gather(), fingerprint, {&mine, 1}, all));
  *out = std::any_of(all.begin(), all.end(), [](int64_t word) { return word != 0; });
  co_return Status();
}

}  // namespace zero
