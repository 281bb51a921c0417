/// @file Steps: reduce, apply, gather. The vote between them is in vote.cpp.
#include "engine/optimizer/optimizer.h"

#include "core/clock.h"

#include <utility>

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

/// Frozen parameters have no gradient.
Status Optimizer::check_trains(int64_t id) const {
  ZERO_CHECK(layout_.format_of(id).trains, ZERO_E_STATE,
             settings_.trains ? "%s is frozen and has no gradient" : "%s has no gradient: algorithm \"none\" keeps parameters only",
             params_[id].name.c_str());
  return {};
}

/// Before gradients too: begin, which would have to come first, refuses them.
Status Optimizer::check_taken_over() const {
  ZERO_CHECK(!first_values_.edited(), ZERO_E_STATE,
             "parameters were written since the last begin; zero_optimizer_begin takes them over before the next step");
  return {};
}

Status Optimizer::grad_acquire(int64_t id, void **out_data, int64_t *out_accumulate, void *stream) {
  ZERO_TRY(guard_.check_call("zero_optimizer_grad_acquire", Phase::running, Phase::running));
  ZERO_TRY(params_.check_id(id));
  ZERO_TRY(check_trains(id));
  ZERO_TRY(check_taken_over());
  groups_.take_deadline();
  void *data = nullptr;
  int64_t accumulate = 0;
  Status status = gradients_.acquire(id, &data, &accumulate);
  if (status.ok() && settings_.on_device) status = device_->lead(stream);
  ZERO_TRY(guard_.lasting(std::move(status)));
  *out_data = data;
  *out_accumulate = accumulate;
  return {};
}

Status Optimizer::grad_ready(int64_t id, const void *grad, int64_t offset, int64_t count, void *stream) {
  ZERO_TRY(guard_.check_call("zero_optimizer_grad_ready", Phase::running, Phase::running));
  ZERO_TRY(check_range(id, offset, count));
  ZERO_TRY(check_trains(id));
  ZERO_TRY(check_taken_over());
  groups_.take_deadline();
  const TraceSpan span(trace_, "grad_ready", Trace::Track::gradients, Trace::About::param, id);
  bool grad_on_device = settings_.on_device;
  Status status = grad != nullptr ? find_memory(grad, "grad", &grad_on_device) : Status();
  Device *passes = grad_on_device != settings_.on_device ? device_.get() : nullptr;
  // A graph would copy what lies in the memory between host and device when it is run.
  if (status.ok() && passes != nullptr)
    status = check_not_captured("zero_optimizer_grad_ready with a copy between host and device", stream);
  // A reduction that began now would become part of the graph, and wait for other ranks there.
  if (status.ok() && !alone()) status = check_captured(stream, "gradients");
  const bool follows = status.ok() && settings_.on_device;
  if (follows) status = device_->follow(stream);
  if (status.ok()) status = gradients_.ready(id, grad, offset, count, passes, stream);
  // Also behind an error: a graph that the stream is captured into ends where its own stream does.
  const Status led = follows ? device_->lead(stream) : Status();
  if (status.ok()) status = led;
  if (status.ok()) status = kernels_.status();
  return guard_.lasting(std::move(status));
}

Status Optimizer::grad_ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count) {
  ZERO_TRY(guard_.check_call("zero_optimizer_grad_ready_rows", Phase::running, Phase::running));
  ZERO_TRY(params_.check_id(id));
  ZERO_TRY(check_trains(id));
  ZERO_TRY(check_taken_over());
  if (count > 0) ZERO_TRY(check_host_memory(rows, "rows"));
  if (count > 0) ZERO_TRY(check_host_memory(values, "values"));
  groups_.take_deadline();
  const TraceSpan span(trace_, "grad_ready_rows", Trace::Track::gradients, Trace::About::param, id);
  return guard_.lasting(gradients_.ready_rows(id, rows, values, count));
}

Status Optimizer::grads_ready(const int64_t *ids, int64_t count, const void *const *grads, void *stream) {
  ZERO_TRY(guard_.check_call("zero_optimizer_grads_ready", Phase::running, Phase::running));
  for (int64_t i = 0; i < count; ++i) {
    Status status = params_.check_id(ids[i]);
    if (status.ok()) status = grad_ready(ids[i], grads != nullptr ? grads[i] : nullptr, 0, params_[ids[i]].count, stream);
    ZERO_CHECK(status.ok(), status.code(), "ids[%lld] is %lld: %s", lld(i), lld(ids[i]), status.text());
  }
  return {};
}

Task Optimizer::step(zero_step_result *out, void *stream) { return guard_.run(in_order(step_body(out), stream), Caller::step); }
Task Optimizer::reduce(zero_step_result *out, void *stream) {
  return guard_.run(in_order(reduce_body("zero_optimizer_reduce", out, true), stream), Caller::reduce);
}
Task Optimizer::apply(void *stream) { return guard_.run(in_order(apply_body(), stream), Caller::apply); }
Task Optimizer::gather(void *stream) { return guard_.run(in_order(gather_body(), stream), Caller::gather); }

Task Optimizer::micro_step(int32_t kind) { return guard_.run(micro_step_body(kind), Caller::micro_step, Uses::gradients); }

Task Optimizer::micro_step_body(int32_t kind) {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_micro_step", Phase::running, Phase::running));
  ZERO_CO_CHECK(kind >= ZERO_MICRO_STEP_LAST && kind <= ZERO_MICRO_STEP_REDUCE, ZERO_E_INVALID_ARGUMENT,
                "kind is %d, but must be a zero_micro_step (0 .. 2)", kind);
  ZERO_CO_CHECK(settings_.trains, ZERO_E_STATE, "algorithm \"none\" keeps parameters only; there are no gradients");
  ZERO_CO_TRY(check_taken_over());
  ZERO_CO_TRY(gradients_.check_micro_step());
  // Others may be on their way to the end of the step, which they agree on in the other group.
  if (gradients_.reduces_micro_step()) {
    ZERO_CO_AWAIT(gathers_.end());
    groups_.name_caller(Caller::micro_sums);
    ZERO_CO_AWAIT(around(*groups_.gather(), gradients_.end_micro_step(), gradients_.progress(false)));
  } else {
    ZERO_CO_AWAIT(gradients_.end_micro_step());
  }
  co_return gradients_.begin_micro_step(static_cast<MicroStep>(kind));
}

Task Optimizer::step_body(zero_step_result *out) {
  const TraceSpan span(trace_, "step");
  ZERO_CO_CHECK(settings_.algorithm != nullptr || !settings_.trains, ZERO_E_STATE,
                "algorithm \"custom\" has no step; call zero_optimizer_reduce, update the views, and call zero_optimizer_gather");
  ZERO_CO_TRY(check_capture(out));
  ZERO_CO_AWAIT(reduce_body("zero_optimizer_step", nullptr, false));
  if (!skips_) ZERO_CO_AWAIT(update());
  ZERO_CO_AWAIT(gather_body());
  co_return write_result(out);
}

/// `splits`: apply and gather are calls of their own.
Task Optimizer::reduce_body(const char *call, zero_step_result *out, bool splits) {
  ZERO_CO_TRY(guard_.check_phase(call, Phase::running, Phase::running));
  ZERO_CO_CHECK(settings_.trains, ZERO_E_STATE, "algorithm \"none\" keeps parameters only; there is nothing to step");
  ZERO_CO_TRY(check_taken_over());
  // Alone too, where it would do no harm: programs are to be the same with more ranks.
  ZERO_CO_CHECK(acquired_count_ == 0 || (settings_.stage < 3 && !layout_.any_coded()), ZERO_E_STATE,
                "acquired parameters: %lld; in stage 3 and with 8-bit parameters zero_optimizer_param_release comes before the step",
                lld(acquired_count_));
  ZERO_CO_TRY(check_capture(out));
  const Stopwatch stopwatch(times_.reduce_ns, trace_, "reduce");
  splits_ = splits;
  replica_run_.synced = false;
  replica_run_.syncs = replicas_.due(replica_run_.calls);
  ZERO_CO_AWAIT(finish_gradients());
  ZERO_CO_AWAIT(pick_path());
  unfilled_count_ = gradients_.unfilled_count();
  times_.steps.fetch_add(1, std::memory_order_relaxed);
  // Before any rank updates, and writes into the memory of others.
  if (!replica_run_.together) replicas_.part();
  Finding change;
  ZERO_CO_TRY(verifier_.find_change(&change));
  ZERO_CO_AWAIT(vote(change));
  if (paths_.may_write() && updates_all()) ZERO_CO_AWAIT(gradients_.give_sums(!paths_.writes()));
  if (ballot_.sum(Ballot::weightless) > 0) {
    end_step();
    co_return Status::error(ZERO_E_INVALID_ARGUMENT,
                            "the weights of all ranks add up to 0, or to more than fp32 has, in this step, so that there is no gradient; "
                            "nothing was applied");
  }
  if (gate_ != nullptr && splits) ZERO_CO_AWAIT(await_readers());  // the caller may write through views next
  // In the one copy, updates of others show from here on.
  if (settings_.algorithm == nullptr && one_copy() && !skips_) ZERO_CO_TRY(guard_.begin_change(paths_.writes() || one_copy()));
  guard_.enter(Phase::reduced);
  applied_ = false;
  co_return write_result(out);
}

/// Ranks wait for one another in the group of reductions. What they called shows in the other group, where all other calls wait.
Task Optimizer::finish_gradients() {
  if (alone() || gradients_.late()) co_return co_await gradients_.finish();
  if (gradients_.sums_late()) groups_.name_caller(Caller::micro_sums);
  ZERO_CO_AWAIT(around(*groups_.gather(), gradients_.finish(), gradients_.progress(true)));
  groups_.name_caller(splits_ ? Caller::reduce : Caller::step);
  co_return Status();
}

/// What is captured is done later, and then by the device alone.
Status Optimizer::check_captured(void *stream, const char *what, bool *out_captured) const {
  bool captured = false;
  if (settings_.on_device) ZERO_TRY(device_->captures(stream, &captured));
  ZERO_CHECK(!captured || (alone() && groups_.model() == nullptr), ZERO_E_UNSUPPORTED,
             "ranks in groups of %lld%s wait for one another on the host, so %s cannot become part of a CUDA graph", lld(group_->size()),
             groups_.model() != nullptr ? " with a model group" : "", what);
  if (out_captured != nullptr) *out_captured = captured;
  return {};
}

Status Optimizer::check_capture(const zero_step_result *out) const {
  bool captured = false;
  if (settings_.on_device) ZERO_TRY(check_captured(device_->stream(), "steps", &captured));
  if (!captured) return {};
  ZERO_CHECK(settings_.verify_every == 0, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_VERIFY_EVERY is %lld, but the host compares checksums, so steps cannot become part of a CUDA graph",
             lld(settings_.verify_every));
  ZERO_CHECK(
      out == nullptr, ZERO_E_STATE,
      "a step that becomes part of a CUDA graph has no result yet; give NULL, and ask zero_optimizer_result after the graph has run");
  ZERO_CHECK(stop_request_.pending() == 0, ZERO_E_UNSUPPORTED,
             "zero_optimizer_request_stop was called with reason %lld, but runs of a CUDA graph report no stop; make a step outside the "
             "capture first, which reports it",
             lld(stop_request_.pending()));
  ZERO_CHECK(device_kernels_->warm() || settings_.algorithm == nullptr, ZERO_E_STATE,
             "a step becomes part of a CUDA graph, but none was made before; make one like it first");
  return {};
}

/// Contributions that waited are summed by the update where every rank's are so small that no sum can overflow. The vote that follows tells
/// everyone that they are complete.
Task Optimizer::pick_path() {
  const bool whole = !splits_ && !replica_run_.syncs;
  if (!gradients_.late()) {
    paths_.pick(whole, false);
    co_return Status();
  }
  const bool might_overflow = settings_.skips_nonfinite && !gradients_.bounded();
  const int64_t mine[] = {might_overflow ? 1 : 0, splits_ ? 1 : 0};
  int64_t all[2] = {};
  ZERO_CO_AWAIT(all_reduce(*groups_.gather(), mine, all, 2, DType::i64, ReduceOp::sum));
  ZERO_CO_TRY(check_same_call(all[1]));
  paths_.pick(whole, all[0] == 0);
  if (!paths_.fuses()) ZERO_CO_AWAIT(gradients_.reduce_late());
  co_return Status();
}

/// `splitting`: ranks that called reduce.
Status Optimizer::check_same_call(int64_t splitting) const {
  const int64_t others = splits_ ? ranks() - splitting : splitting;
  ZERO_CHECK(others == 0, ZERO_E_MISMATCH, "rank %lld called %s, but %lld of %lld ranks called %s; all ranks make the same call",
             lld(group_->rank()), splits_ ? "zero_optimizer_reduce" : "zero_optimizer_step", lld(others), lld(ranks()),
             splits_ ? "zero_optimizer_step" : "zero_optimizer_reduce");
  return {};
}

Status Optimizer::check_not_captured(const char *call, void *stream) const {
  bool captured = false;
  if (device_ != nullptr) ZERO_TRY(device_->captures(stream, &captured));
  ZERO_CHECK(!captured, ZERO_E_STATE, "%s cannot become part of a CUDA graph", call);
  return {};
}

Status Optimizer::result(zero_step_result *out, void *stream) {
  ZERO_TRY(guard_.check_call("zero_optimizer_result", Phase::running, Phase::reduced));
  ZERO_TRY(check_not_captured("zero_optimizer_result", stream));
  if (settings_.on_device) ZERO_TRY(device_->follow(stream));
  return guard_.lasting(write_result(out));
}

Status Optimizer::refresh(void *stream) {
  ZERO_TRY(guard_.check_call("zero_optimizer_refresh", Phase::running, Phase::running));
  ZERO_TRY(check_not_captured("zero_optimizer_refresh", stream));
  if (!settings_.on_device) return {};
  ZERO_TRY(device_->follow(stream));
  ZERO_TRY(guard_.lasting(tell_run()));
  device_kernels_->refresh(updates_.all_jobs());
  ZERO_TRY(device_->lead(stream));
  return guard_.lasting(kernels_.status());
}

Status Optimizer::loss_scale_address(void *stream, void **out) {
  ZERO_TRY(guard_.check_call("zero_optimizer_loss_scale_address", Phase::running, Phase::running));
  ZERO_TRY(check_not_captured("zero_optimizer_loss_scale_address", stream));
  if (!settings_.on_device) {
    *out = run_.loss_scale();
    return {};
  }
  ZERO_TRY(device_->follow(stream));
  ZERO_TRY(guard_.lasting(tell_run()));
  ZERO_TRY(device_->lead(stream));
  ZERO_TRY(guard_.lasting(kernels_.status()));
  *out = run_.loss_scale();
  return {};
}

Task Optimizer::apply_body() {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_apply", Phase::reduced, Phase::reduced));
  ZERO_CO_CHECK(settings_.algorithm != nullptr, ZERO_E_STATE, "algorithm \"custom\" has no update of its own; update the views instead");
  ZERO_CO_CHECK(!applied_, ZERO_E_STATE, "zero_optimizer_apply was called already in this step; zero_optimizer_gather comes next");
  if (!skips_) ZERO_CO_AWAIT(update());
  co_return Status();
}

/// Before the first byte that is kept changes, on this rank or on others.
Task Optimizer::await_readers() {
  if (gate_ == nullptr) co_return Status();
  const TraceSpan span(trace_, "wait for a save");
  ZERO_CO_AWAIT(gate_->wait());
  gate_.reset();
  co_return Status();
}

Task Optimizer::update() {
  if (gate_ != nullptr) ZERO_CO_AWAIT(await_readers());
  const Stopwatch stopwatch(times_.apply_ns, trace_, "apply");
  const StepScalars scalars{run_.known().applied_count + 1, static_cast<float>(run_.known().grad_factor), ballot_.filled(), paths_.fuses(),
                            paths_.writes()};
  ZERO_CO_TRY(guard_.begin_change(paths_.writes() || one_copy()));
  const Status updated = co_await updates_.run(*groups_.gather(), scalars);
  if (!updated.ok()) guard_.lose(updated);  // whatever its code: a part may have been updated
  ZERO_CO_TRY(updated);
  applied_ = true;
  if (paths_.writes()) count_direct();
  co_return Status();
}

void Optimizer::count_direct() const {
  for (const int64_t index : plan_.order()) {
    const PlannedBucket &bucket = plan_.bucket(index);
    const int64_t others = bucket.flat.count() - bucket.own.count();
    if (paths_.fuses())
      groups_.reduce()->count_direct(OperationKind::reduce_scatter, others,
                                     others * dtype_nbytes(slots_.place(slots_.grad(), index).dtype));
    if (one_copy()) continue;
    const Format &format = layout_.format_in(bucket);
    count_replicas(ZERO_SLOT_PARAM, index);
    if (format.coded()) count_replicas(ZERO_SLOT_PARAM_SCALE, index);
    for (const SlotFormat &state : format.states) {
      if (updates_all() && !is_common(state.number)) count_replicas(state.number, index);
    }
  }
}

void Optimizer::count_replicas(int32_t slot, int64_t bucket) const {
  const SlotPlace &place = slots_.place(*slots_.find(slot), bucket);
  const int64_t entries = (ranks() - 1) * place.entries(plan_.bucket(bucket).own.count());
  groups_.gather()->count_direct(OperationKind::all_gather, entries, entries * dtype_nbytes(place.dtype));
}

Task Optimizer::gather_body() {
  ZERO_CO_TRY(guard_.check_phase("zero_optimizer_gather", Phase::reduced, Phase::reduced));
  const Stopwatch stopwatch(times_.gather_ns, trace_, "gather");
  if (!skips_ || replica_run_.syncs) guard_.changes_in(CallGuard::kStep);
  if (!skips_ && settings_.algorithm == nullptr) coded_params_.encode_masters(paths_.device_decides());
  if (replica_run_.syncs) ZERO_CO_AWAIT(sync_replicas());
  if (!skips_ && paths_.writes()) {
    ZERO_CO_AWAIT(barrier(*groups_.gather()));
  } else if ((!skips_ || replica_run_.syncs) && settings_.stage > 0) {
    const bool in_full = replica_run_.syncs || settings_.replicas.in_full(replica_run_.calls);
    ZERO_CO_AWAIT(gathers_.gather_updated(acquired_count_ == 0, in_full));
  }
  const bool counts = applied_ || settings_.algorithm == nullptr;
  if (counts && !skips_) update_counts_.count(ballot_.filled());
  if (paths_.device_decides()) {
    run_.end_on_device(counts);
    ZERO_CO_TRY(forget_masters_after_device());
  } else if (!skips_ && counts) {
    first_values_.forget_updated_masters(ballot_.filled());
    run_.count();
  }
  gathers_.end_step();
  end_step();
  ZERO_CO_TRY(verifier_.move_window());
  co_return kernels_.status();
}

/// Only where masters were written is the device's verdict waited for.
Status Optimizer::forget_masters_after_device() {
  if (!first_values_.has_written_masters() || run_.captured()) return {};
  ZERO_TRY(run_.learn());
  if (run_.known().skips == 0) first_values_.forget_updated_masters(ballot_.filled());
  return {};
}

void Optimizer::end_step() {
  gradients_.residuals().end_step(guard_.phase() == Phase::reduced && !skips_);
  gradients_.reset();
  plan_next_step();
  first_values_.note_step();
  guard_.end_change();
  guard_.enter(Phase::running);
}

Status Optimizer::write_result(zero_step_result *out) const {
  if (out == nullptr) return {};
  ZERO_TRY(run_.learn());
  const bool to_be_applied = guard_.phase() == Phase::reduced && run_.known().skips == 0;
  out->step = run_.known().applied_count + (to_be_applied ? 1 : 0);
  out->skipped = run_.known().skips;
  out->skipped_total = run_.known().skipped_count;
  out->unfilled_count = unfilled_count_;
  out->grad_norm = run_.known().grad_norm;
  out->loss_scale = run_.known().loss_scale.value;
  out->stop_reason = stop_reason_;
  out->synced = replica_run_.synced ? 1 : 0;
  out->spread = replica_run_.synced ? replica_run_.spread : 0;
  return {};
}

}  // namespace zero
