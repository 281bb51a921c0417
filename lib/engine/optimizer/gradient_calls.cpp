/// @file Gradients from the caller.
#include "engine/optimizer/gradient_calls.h"

#include "group/collectives.h"

#include <utility>

namespace zero {

/// Frozen parameters have no gradient.
Status GradientCalls::check_trains(int64_t id) const {
  ZERO_CHECK(parts_.state.layout.format_of(id).trains, ZERO_E_STATE,
             parts_.settings.trains ? "%s is frozen and has no gradient" : "%s has no gradient: algorithm \"none\" keeps parameters only",
             parts_.registry.params[id].name.c_str());
  return {};
}

Status GradientCalls::acquire(int64_t id, void **out_data, int64_t *out_accumulate, void *stream) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_grad_acquire", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_TRY(parts_.registry.params.check_id(id));
  ZERO_TRY(check_trains(id));
  ZERO_TRY(parts_.check_taken_over());
  parts_.groups.take_deadline();
  void *data = nullptr;
  int64_t accumulate = 0;
  Status status = parts_.gradients.accumulator().acquire(id, &data, &accumulate);
  if (status.ok()) status = parts_.memory->signal(stream);
  ZERO_TRY(parts_.guard.lasting(std::move(status)));
  *out_data = data;
  *out_accumulate = accumulate;
  return {};
}

Status GradientCalls::ready(int64_t id, const void *grad, int64_t offset, int64_t count, void *stream) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_grad_ready", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_TRY(parts_.registry.check_range(id, offset, count));
  ZERO_TRY(check_trains(id));
  ZERO_TRY(parts_.check_taken_over());
  parts_.groups.take_deadline();
  const TraceSpan span(parts_.trace, "grad_ready", Trace::Track::gradients, Trace::About::param, id);
  bool grad_on_device = parts_.settings.on_device;
  Status status = grad != nullptr ? parts_.memory->find(grad, "grad", &grad_on_device) : Status();
  Device *passes = grad_on_device != parts_.settings.on_device ? parts_.memory->device.get() : nullptr;
  // A graph would copy what lies in the memory between host and device when it is run.
  if (status.ok() && passes != nullptr)
    status = parts_.memory->check_not_captured("zero_optimizer_grad_ready with a copy between host and device", stream);
  // A reduction that began now would become part of the graph, and wait for other ranks there.
  if (status.ok() && !parts_.alone()) status = parts_.check_captured(stream, "gradients");
  const bool follows = status.ok();
  if (follows) status = parts_.memory->wait_for(stream);
  if (status.ok()) status = parts_.gradients.accumulator().ready(id, grad, offset, count, passes, stream);
  // Also behind an error: a graph that the stream is captured into ends where its own stream does.
  const Status led = follows ? parts_.memory->signal(stream) : Status();
  if (status.ok()) status = led;
  if (status.ok()) status = parts_.memory->kernels().status();
  return parts_.guard.lasting(std::move(status));
}

Status GradientCalls::ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_grad_ready_rows", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_TRY(parts_.registry.params.check_id(id));
  ZERO_TRY(check_trains(id));
  ZERO_TRY(parts_.check_taken_over());
  if (count > 0) ZERO_TRY(parts_.memory->check_on_host(rows, "rows"));
  if (count > 0) ZERO_TRY(parts_.memory->check_on_host(values, "values"));
  parts_.groups.take_deadline();
  const TraceSpan span(parts_.trace, "grad_ready_rows", Trace::Track::gradients, Trace::About::param, id);
  return parts_.guard.lasting(parts_.gradients.accumulator().ready_rows(id, rows, values, count));
}

Status GradientCalls::all_ready(const int64_t *ids, int64_t count, const void *const *grads, void *stream) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_grads_ready", CallGuard::Phase::running, CallGuard::Phase::running));
  for (int64_t i = 0; i < count; ++i) {
    Status status = parts_.registry.params.check_id(ids[i]);
    if (status.ok()) status = ready(ids[i], grads != nullptr ? grads[i] : nullptr, 0, parts_.registry.params[ids[i]].count, stream);
    ZERO_CHECK(status.ok(), status.code(), "ids[%lld] is %lld: %s", lld(i), lld(ids[i]), status.text());
  }
  return {};
}

Status GradientCalls::set_weight(double weight) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_set_weight", CallGuard::Phase::running, CallGuard::Phase::running));
  return parts_.gradients.accumulator().set_weight(weight);
}

Task GradientCalls::micro_step(int32_t kind) {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_micro_step", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_CO_CHECK(kind >= ZERO_MICRO_STEP_LAST && kind <= ZERO_MICRO_STEP_REDUCE, ZERO_E_INVALID_ARGUMENT,
                "kind is %d, but must be a zero_micro_step (0 .. 2)", kind);
  ZERO_CO_CHECK(parts_.settings.trains, ZERO_E_STATE, "algorithm \"none\" keeps parameters only; there are no gradients");
  ZERO_CO_CHECK(kind != ZERO_MICRO_STEP_REDUCE || !parts_.settings.replicas.code_freeze, ZERO_E_UNSUPPORTED,
                "ZERO_KEY_CODE_FREEZE is 1 and the kind is ZERO_MICRO_STEP_REDUCE, but gradients carry the first moment through one "
                "reduction in a step; use ZERO_MICRO_STEP_LOCAL");
  ZERO_CO_CHECK(kind != ZERO_MICRO_STEP_REDUCE || !parts_.settings.delays_grads, ZERO_E_UNSUPPORTED,
                "kind is ZERO_MICRO_STEP_REDUCE and ZERO_KEY_GRAD_DELAY 1, but the gradients of the step before are being reduced; use "
                "ZERO_MICRO_STEP_LOCAL, or leave out ZERO_KEY_GRAD_DELAY");
  ZERO_CO_TRY(parts_.check_taken_over());
  ZERO_CO_TRY(parts_.gradients.check_micro_step());
  // Others may be on their way to the end of the step, which they agree on in the other group.
  if (parts_.gradients.reduces_micro_step()) {
    ZERO_CO_AWAIT(parts_.gathers.end());
    parts_.groups.name_caller(Caller::micro_sums);
    ZERO_CO_AWAIT(parts_.groups.around_gathers(parts_.gradients.end_micro_step(), parts_.gradients.progress(false)));
  } else {
    ZERO_CO_AWAIT(parts_.gradients.end_micro_step());
  }
  co_return parts_.gradients.begin_micro_step(static_cast<MicroStep>(kind));
}

}  // namespace zero
