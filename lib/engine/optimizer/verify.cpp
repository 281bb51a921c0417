/// @file verify: the call that compares replicas, and shards with their checksums.
#include "engine/optimizer/optimizer.h"

#include "group/collectives/agreement.h"

#include <algorithm>
#include <vector>

namespace zero {

Task Optimizer::verify(zero_verify_result *out, void *stream) { return guard_.run(verify_body(out, stream), Caller::verify); }

Task Optimizer::verify_body(zero_verify_result *out, void *stream) {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_verify", Phase::running, Phase::running));
  ZERO_CO_TRY(check_not_captured("zero_optimizer_verify", stream));
  if (settings_.on_device) ZERO_CO_TRY(device_->follow(stream));
  bool edited = false;
  ZERO_CO_AWAIT(any_edited(&edited));
  ZERO_CO_CHECK(!edited, ZERO_E_STATE,
                "parameters were written since the last begin, so that replicas may differ; zero_optimizer_begin comes before verify");
  ZERO_CO_TRY(tell_update_counts());
  Finding finding;
  ZERO_CO_TRY(verifier_.find_change(&finding));
  ZERO_CO_AWAIT(verifier_.share(finding));
  int64_t replica_nbytes = 0;
  if (finding.found == ZERO_FINDING_NONE) ZERO_CO_AWAIT(verifier_.compare_replicas(!replicas_.differ(), finding, &replica_nbytes));
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
  out->shard_nbytes = verifier_.shard_nbytes();
  co_return kernels_.status();
}

/// Whether a rank wrote parameters that begin has not taken over; initialisers are no collectives, so each rank knows only its own calls.
Task Optimizer::any_edited(bool *out) {
  *out = first_values_.edited();
  if (alone()) co_return Status();
  const int64_t mine = first_values_.edited() ? 1 : 0;
  std::vector<int64_t> all(static_cast<size_t>(ranks()));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.count = 1;
  ZERO_CO_AWAIT(tell_all(*groups_.gather(), fingerprint, {&mine, 1}, all));
  *out = std::any_of(all.begin(), all.end(), [](int64_t word) { return word != 0; });
  co_return Status();
}

}  // namespace zero
