/// @file Steps: reduce, apply, gather. The vote between them is in step_flags_exchange.cpp.
#include "engine/optimizer/steps.h"

#include "core/clock.h"

#include <atomic>

namespace zero {
namespace {

/// Adds the time since it was made to a counter, and shows it in the trace.
class Stopwatch {
 public:
  Stopwatch(std::atomic<int64_t> &total_ns, Trace &trace, const char *what) : total_ns_(total_ns), span_(trace, what) {}
  Stopwatch(const Stopwatch &) = delete;
  ~Stopwatch() { total_ns_.fetch_add(now_ns() - begin_ns_, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> &total_ns_;
  const int64_t begin_ns_ = now_ns();
  const TraceSpan span_;
};

}  // namespace

Task Steps::step(zero_step_result *out) {
  const TraceSpan span(parts_.trace, "step");
  ZERO_CO_CHECK(parts_.settings.algorithm != nullptr || !parts_.settings.trains, ZERO_E_STATE,
                "algorithm \"custom\" has no step; call zero_optimizer_reduce, update the views, and call zero_optimizer_gather");
  ZERO_CO_TRY(check_capture(out));
  ZERO_CO_AWAIT(reduce("zero_optimizer_step", nullptr, false));
  if (!parts_.step.skips) ZERO_CO_AWAIT(update());
  ZERO_CO_AWAIT(gather());
  co_return write_result(out);
}

/// `splits`: apply and gather are calls of their own.
Task Steps::reduce(const char *call, zero_step_result *out, bool splits) {
  ZERO_CO_TRY(parts_.guard.check_phase(call, CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_CO_CHECK(parts_.settings.trains, ZERO_E_STATE, "algorithm \"none\" keeps parameters only; there is nothing to step");
  ZERO_CO_TRY(parts_.check_taken_over());
  // Alone too, where it would do no harm: programs are to be the same with more ranks.
  ZERO_CO_CHECK(parts_.acquired_count == 0 || (parts_.settings.stage < 3 && !parts_.state.layout.any_coded()), ZERO_E_STATE,
                "acquired parameters: %lld; in stage 3 and with 8-bit parameters zero_optimizer_param_release comes before the step",
                lld(parts_.acquired_count));
  ZERO_CO_TRY(check_capture(out));
  const Stopwatch stopwatch(times_.reduce_ns, parts_.trace, "reduce");
  parts_.step.splits = splits;
  parts_.step.empty = !parts_.gradients.holds();
  parts_.step.loss_scale = parts_.run.known().loss_scale.value;
  parts_.replica_run.synced = false;
  parts_.replica_run.syncs = parts_.replicas.due(parts_.replica_run.calls);
  ZERO_CO_AWAIT(finish_gradients());
  ZERO_CO_AWAIT(pick_path());
  parts_.step.unfilled_count = parts_.step.empty ? 0 : parts_.gradients.unfilled_count();
  times_.steps.fetch_add(1, std::memory_order_relaxed);
  // Before any rank updates, and writes into the memory of others.
  if (!parts_.replica_run.together) parts_.replicas.part();
  Finding change;
  ZERO_CO_TRY(parts_.verifier.find_change(&change));
  ZERO_CO_AWAIT(vote_.run(change));
  if (parts_.paths.may_write() && parts_.updates_all()) ZERO_CO_AWAIT(parts_.gradients.reductions().give_sums(!parts_.paths.writes()));
  if (vote_.step_flags().sum(StepFlags::weightless) > 0) {
    end_step(false);
    ZERO_CO_AWAIT(hold_gradients());
    co_return Status::error(ZERO_E_INVALID_ARGUMENT,
                            "the weights of all ranks add up to 0, or to more than fp32 has, in this step, so that there is no gradient; "
                            "nothing was applied");
  }
  // The caller may write through views next.
  if (parts_.gate != nullptr && splits) ZERO_CO_AWAIT(parts_.await_readers());
  // In the one copy, updates of others show from here on.
  if (parts_.settings.algorithm == nullptr && parts_.one_copy() && !parts_.step.skips)
    ZERO_CO_TRY(parts_.guard.begin_change(true));
  parts_.guard.enter(CallGuard::Phase::reduced);
  parts_.step.applied = false;
  co_return write_result(out);
}

/// Ranks wait for one another in the group of reductions. The call's name is published in the other
/// group, in which all other calls wait.
Task Steps::finish_gradients() {
  if (parts_.gradients.delays()) co_return Status();
  if (parts_.alone() || parts_.gradients.late()) co_return co_await parts_.gradients.finish();
  if (parts_.gradients.fuses_reduction()) parts_.groups.name_caller(Caller::micro_sums);
  ZERO_CO_AWAIT(parts_.groups.around_gathers(parts_.gradients.finish(), parts_.gradients.progress(true)));
  parts_.groups.name_caller(parts_.step.splits ? Caller::reduce : Caller::step);
  co_return Status();
}

Status Steps::check_capture(const zero_step_result *out) const {
  bool captured = false;
  if (parts_.settings.on_device) ZERO_TRY(parts_.check_captured(parts_.memory->device->stream(), "steps", &captured));
  if (!captured) return {};
  ZERO_CHECK(parts_.settings.monitoring.verify_every == 0, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_VERIFY_EVERY is %lld, but the host compares checksums, so steps cannot become part of a CUDA graph",
             lld(parts_.settings.monitoring.verify_every));
  ZERO_CHECK(
      out == nullptr, ZERO_E_STATE,
      "a step that becomes part of a CUDA graph has no result yet; give NULL, and ask zero_optimizer_result after the graph has run");
  ZERO_CHECK(vote_.stop_request().pending() == 0, ZERO_E_UNSUPPORTED,
             "zero_optimizer_request_stop was called with reason %lld, but runs of a CUDA graph report no stop; make a step outside the "
             "capture first, which reports it",
             lld(vote_.stop_request().pending()));
  ZERO_CHECK(parts_.memory->device_kernels()->warm() || parts_.settings.algorithm == nullptr, ZERO_E_STATE,
             "a step becomes part of a CUDA graph, but none was made before; make one like it first");
  return {};
}

/// The update sums waiting contributions itself if every rank's are so small that no sum can
/// overflow. The vote that follows confirms to all ranks that they are complete.
Task Steps::pick_path() {
  const bool whole = !parts_.step.splits && !parts_.replica_run.syncs;
  if (!parts_.gradients.late()) {
    parts_.paths.pick(whole, false);
    co_return Status();
  }
  const bool might_overflow = parts_.settings.skips_nonfinite && !parts_.gradients.bounded();
  const int64_t mine[] = {might_overflow ? 1 : 0, parts_.step.splits ? 1 : 0};
  int64_t all[2] = {};
  ZERO_CO_AWAIT(all_reduce(*parts_.groups.gather(), mine, all, 2, DType::i64, ReduceOp::sum));
  ZERO_CO_TRY(vote_.check_same_call(all[1]));
  parts_.paths.pick(whole, all[0] == 0);
  if (!parts_.paths.fuses()) ZERO_CO_AWAIT(parts_.gradients.reduce_late());
  co_return Status();
}

Status Steps::result(zero_step_result *out, void *stream) const {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_result", CallGuard::Phase::running, CallGuard::Phase::reduced));
  ZERO_TRY(parts_.memory->check_not_captured("zero_optimizer_result", stream));
  ZERO_TRY(parts_.memory->wait_for(stream));
  return parts_.guard.lasting(write_result(out));
}

Status Steps::refresh(void *stream) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_refresh", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_TRY(parts_.memory->check_not_captured("zero_optimizer_refresh", stream));
  if (!parts_.settings.on_device) return {};
  ZERO_TRY(parts_.memory->wait_for(stream));
  ZERO_TRY(parts_.guard.lasting(parts_.tell_run()));
  parts_.memory->device_kernels()->refresh(parts_.updates.all_jobs());
  ZERO_TRY(parts_.memory->signal(stream));
  return parts_.guard.lasting(parts_.memory->kernels().status());
}

Status Steps::loss_scale_address(void *stream, void **out) {
  ZERO_TRY(parts_.guard.check_call("zero_optimizer_loss_scale_address", CallGuard::Phase::running, CallGuard::Phase::running));
  ZERO_TRY(parts_.memory->check_not_captured("zero_optimizer_loss_scale_address", stream));
  if (!parts_.settings.on_device) {
    *out = parts_.run.loss_scale();
    return {};
  }
  ZERO_TRY(parts_.memory->wait_for(stream));
  ZERO_TRY(parts_.guard.lasting(parts_.tell_run()));
  ZERO_TRY(parts_.memory->signal(stream));
  ZERO_TRY(parts_.guard.lasting(parts_.memory->kernels().status()));
  *out = parts_.run.loss_scale();
  return {};
}

Task Steps::apply() {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_apply", CallGuard::Phase::reduced, CallGuard::Phase::reduced));
  ZERO_CO_CHECK(parts_.settings.algorithm != nullptr, ZERO_E_STATE,
                "algorithm \"custom\" has no update of its own; update the views instead");
  ZERO_CO_CHECK(!parts_.step.applied, ZERO_E_STATE,
                "zero_optimizer_apply was called already in this step; zero_optimizer_gather comes next");
  if (!parts_.step.skips) ZERO_CO_AWAIT(update());
  co_return Status();
}

Task Steps::update() {
  if (parts_.gate != nullptr) ZERO_CO_AWAIT(parts_.await_readers());
  const Stopwatch stopwatch(times_.apply_ns, parts_.trace, "apply");
  const StepScalars scalars{parts_.run.known().applied_count + 1, static_cast<float>(parts_.run.known().grad_factor),
                            vote_.step_flags().filled(), parts_.paths.fuses(), parts_.paths.writes()};
  ZERO_CO_TRY(parts_.guard.begin_change(parts_.paths.writes() || parts_.one_copy()));
  const Status updated = co_await parts_.updates.run(*parts_.groups.gather(), scalars);
  if (!updated.ok()) parts_.guard.lose(updated);  // whatever its code: a part may have been updated
  ZERO_CO_TRY(updated);
  parts_.step.applied = true;
  if (parts_.paths.writes()) count_direct();
  co_return Status();
}

void Steps::count_direct() const {
  for (const int64_t index : parts_.state.plan.order()) {
    const PlannedBucket &bucket = parts_.state.plan.bucket(index);
    const int64_t others = bucket.flat.count() - bucket.own.count();
    if (parts_.paths.fuses())
      parts_.groups.reduce()->count_direct(OperationKind::reduce_scatter, others,
                                           others * dtype_nbytes(parts_.state.slots.place(parts_.state.slots.grad(), index).dtype));
    if (parts_.one_copy()) continue;
    const Format &format = parts_.state.layout.format_in(bucket);
    count_replicas(ZERO_SLOT_PARAM, index);
    if (format.coded()) count_replicas(ZERO_SLOT_PARAM_SCALE, index);
    for (const SlotFormat &state : format.states) {
      if (parts_.updates_all() && !is_common(state.number)) count_replicas(state.number, index);
    }
  }
}

void Steps::count_replicas(int32_t slot, int64_t bucket) const {
  const SlotPlace &place = parts_.state.slots.place(*parts_.state.slots.find(slot), bucket);
  const int64_t entries = (parts_.ranks() - 1) * place.entries(parts_.state.plan.bucket(bucket).own.count());
  parts_.groups.gather()->count_direct(OperationKind::all_gather, entries, entries * dtype_nbytes(place.dtype));
}

Task Steps::gather() {
  ZERO_CO_TRY(parts_.guard.check_phase("zero_optimizer_gather", CallGuard::Phase::reduced, CallGuard::Phase::reduced));
  const Stopwatch stopwatch(times_.gather_ns, parts_.trace, "gather");
  if (!parts_.step.skips || parts_.replica_run.syncs) parts_.guard.changes_in(CallGuard::kStep);
  if (!parts_.step.skips && parts_.settings.algorithm == nullptr)
    parts_.state.quantized_params.encode_masters(parts_.paths.device_decides());
  if (parts_.replica_run.syncs) ZERO_CO_AWAIT(sync_replicas(Replicas::Meeting::turn));
  if (!parts_.step.skips && parts_.paths.writes()) {
    ZERO_CO_AWAIT(barrier(*parts_.groups.gather()));
  } else if ((!parts_.step.skips || parts_.replica_run.syncs) && parts_.settings.stage > 0) {
    const bool in_full = parts_.replica_run.syncs || parts_.settings.replicas.in_full(parts_.replica_run.calls);
    // Between reduce and gather the caller may change any row through views.
    if (parts_.settings.leaves_unfilled) parts_.state.given_rows.note_update(parts_.step.splits);
    ZERO_CO_AWAIT(parts_.gathers.gather_updated(parts_.acquired_count == 0, in_full));
  }
  if (parts_.settings.replicas.delay > 0) ZERO_CO_AWAIT(parts_.replicas.end_step(parts_.replica_run.calls));
  const bool counts = parts_.step.applied || parts_.settings.algorithm == nullptr;
  if (counts && !parts_.step.skips) {
    parts_.state.update_counts.count(vote_.step_flags().filled());
    parts_.state.moment_freeze.count();
  }
  if (parts_.paths.device_decides()) {
    parts_.run.end_on_device(counts);
    ZERO_CO_TRY(forget_masters_after_device());
  } else if (!parts_.step.skips && counts) {
    parts_.first_values.forget_updated_masters(vote_.step_flags().filled());
    parts_.run.count();
  }
  parts_.gathers.end_step();
  end_step(counts && !parts_.step.skips);
  ZERO_CO_AWAIT(hold_gradients());
  ZERO_CO_TRY(parts_.verifier.move_window());
  co_return parts_.memory->kernels().status();
}

/// Waits for the device's decision only if masters were written.
Status Steps::forget_masters_after_device() {
  if (!parts_.first_values.has_written_masters() || parts_.run.captured()) return {};
  ZERO_TRY(parts_.run.learn());
  if (parts_.run.known().skips == 0) parts_.first_values.forget_updated_masters(vote_.step_flags().filled());
  return {};
}

void Steps::end_step(bool applied) {
  parts_.gradients.end_step(applied);
  parts_.plan_next_step();
  parts_.first_values.note_step();
  parts_.guard.end_change();
  parts_.guard.enter(CallGuard::Phase::running);
}

/// The slots are free again: all ranks have taken part in the step that used them.
Task Steps::hold_gradients() {
  if (!parts_.gradients.delays()) co_return Status();
  // A skipped step has not waited for a save that reads the slots.
  ZERO_CO_AWAIT(parts_.await_readers());
  parts_.tell_terms(parts_.step.loss_scale);
  co_return co_await parts_.gradients.hold(parts_.step.loss_scale);
}

Status Steps::write_result(zero_step_result *out) const {
  if (out == nullptr) return {};
  ZERO_TRY(parts_.run.learn());
  const bool to_be_applied = parts_.guard.phase() == CallGuard::Phase::reduced && parts_.run.known().skips == 0 && !parts_.step.empty;
  out->step = parts_.run.known().applied_count + (to_be_applied ? 1 : 0);
  out->skipped = parts_.run.known().skips;
  out->skipped_total = parts_.run.known().skipped_count;
  out->unfilled_count = parts_.step.unfilled_count;
  out->grad_norm = parts_.run.known().grad_norm;
  out->loss_scale = parts_.run.known().loss_scale.value;
  out->stop_reason = parts_.step.stop_reason;
  out->synced = parts_.replica_run.synced ? 1 : 0;
  out->spread = parts_.replica_run.synced ? parts_.replica_run.spread : 0;
  return {};
}

StepTimes Steps::times() const {
  StepTimes out{};
  out.step_count = times_.steps.load(std::memory_order_relaxed);
  out.reduce_ns = times_.reduce_ns.load(std::memory_order_relaxed);
  out.apply_ns = times_.apply_ns.load(std::memory_order_relaxed);
  out.gather_ns = times_.gather_ns.load(std::memory_order_relaxed);
  out.stalled_nbytes = parts_.gradients.schedule().stalled_nbytes();
  out.pool_grow_count = parts_.gradients.schedule().pool().grow_count();
  out.overlap_active = parts_.gradients.reductions().overlapping();
  return out;
}

}  // namespace zero
