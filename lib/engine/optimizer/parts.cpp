/// @file Making the parts, and what concerns several of them.
#include "engine/optimizer/parts.h"

#include "core/hash.h"

#include <utility>

namespace zero {

OptimizerParts::OptimizerParts(OptimizerOrigin origin)
    : group(std::move(origin.group)),
      settings(std::move(origin.settings)),
      memory(std::move(origin.memory)),
      registry(settings, origin.hyper),
      loss_scale(origin.loss_scale),
      state(registry, memory->kernels(), updates_all()),
      run(loss_scale.first(), memory->device_kernels()),
      verifier(registry.params, state.layout, state.tensors, memory->kernels(), run),
      gradients(state.plan, settings, state.slots, memory->kernels(), registry.params, state.given_rows, trace),
      updates(state.plan, settings, state.slots, registry.params, state.given_rows, memory->kernels(), registry.sets, state.moment_freeze),
      groups(group),
      gathers(registry.params, state.layout, state.tensors, state.quantized_params, state.given_rows, memory->kernels(), settings, trace),
      first_values(registry.params, state.layout, state.tensors, state.quantized_params, memory->kernels(), gathers, groups),
      replicas(registry.params, state.layout, state.tensors, state.quantized_params, memory->kernels(), settings, updates_all()),
      guard(group, groups, gathers, gradients, alone()) {}

bool OptimizerParts::shares_states() const {
  return !alone() && settings.stage == 0 && settings.algorithm != nullptr && !settings.on_device &&
         groups.gather()->transport().capabilities().shares_memory;
}

Task OptimizerParts::in_order(Task body, void *stream) const {
  if (guard.phase() == CallGuard::Phase::building) co_return co_await body;
  ZERO_CO_TRY(memory->wait_for(stream));
  Status status = co_await body;
  Status led = memory->signal(stream);
  co_return status.ok() ? led : status;
}

Status OptimizerParts::check_captured(void *stream, const char *what, bool *out_captured) const {
  bool captured = false;
  if (settings.on_device) ZERO_TRY(memory->device->captures(stream, &captured));
  ZERO_CHECK(!captured || (alone() && groups.model() == nullptr), ZERO_E_UNSUPPORTED,
             "ranks in groups of %lld%s wait for one another on the host, so %s cannot become part of a CUDA graph", lld(group->size()),
             groups.model() != nullptr ? " with a model group" : "", what);
  if (out_captured != nullptr) *out_captured = captured;
  return {};
}

Task OptimizerParts::await_readers() {
  if (gate == nullptr) co_return Status();
  const TraceSpan span(trace, "wait for a save");
  ZERO_CO_AWAIT(gate->wait());
  gate.reset();
  co_return Status();
}

Status OptimizerParts::check_taken_over() const {
  ZERO_CHECK(!first_values.edited(), ZERO_E_STATE,
             "parameters were written since the last begin; zero_optimizer_begin takes them over before the next step");
  return {};
}

Status OptimizerParts::tell_update_counts() {
  if (!state.update_counts.untold()) return {};
  state.update_counts.tell();
  return verifier.note_writes(ZERO_SLOT_UPDATE_COUNT);
}

Status OptimizerParts::tell_run() {
  run.tell();
  return tell_update_counts();
}

void OptimizerParts::plan_next_step() {
  replica_run.calls = call_count();
  replica_run.together = replicas.together(replica_run.calls);
  const double scale = run.known().loss_scale.value;
  state.moment_freeze.begin_step(replica_run.calls, run.known().applied_count, scale);
  if (!settings.delays_grads) tell_terms(scale);
}

void OptimizerParts::tell_terms(double scale) {
  gradients.reductions().begin_step({replica_run.together, settings.replicas.in_full(replica_run.calls), scale,
                                     state.moment_freeze.begun() ? &state.moment_freeze : nullptr});
}

uint64_t OptimizerParts::hyper_hash(bool with_run) const {
  Hash hash;
  for (const HyperSet &set : registry.sets) hash.add(set.values());
  hash.add(replicas.outer());
  if (with_run) hash.add(run.known().applied_count);
  if (with_run) hash.add(run.known().skipped_count);
  if (with_run) hash.add(run.known().loss_scale);
  return hash.value();
}

}  // namespace zero
