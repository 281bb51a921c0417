/// @file Optimizer: parameters, gradients and states of a model over the ranks of a group, and the
/// steps that update them. The only object that knows both which collective and which kernel. Never
/// knows handles, requests or structs of the ABI other than results it fills.
#pragma once

#include "core/config.h"
#include "core/task.h"
#include "engine/optimizer/gradient_calls.h"
#include "engine/optimizer/param_access.h"
#include "engine/optimizer/parts.h"
#include "engine/optimizer/report.h"
#include "engine/optimizer/scalars.h"
#include "engine/optimizer/sealing.h"
#include "engine/optimizer/state_access.h"
#include "engine/optimizer/step_flags_exchange.h"
#include "engine/optimizer/steps.h"
#include "engine/stats/results.h"
#include "group/group.h"

#include <zero/optimizer.h>
#include <zero/stats.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace zero {

/// Arguments are checked here, except result addresses, which must not be nullptr, and `stream`.
///
/// Functions that return a Task are collectives: every rank runs their tasks in the queue named, in
/// the same order. The optimizer must outlive the task, and a state error is found when the task
/// runs.
///
/// Functions that return a Status wait only for gathers behind a step, free buckets and devices,
/// never for a task in that queue. While a task that changes parameters is in progress, they return
/// ZERO_E_STATE.
class Optimizer {
 public:
  /// `make`: the memory of an optimizer that the host keeps; empty: HostDomain.
  static Status create(std::shared_ptr<Group> group, const Config &config, std::shared_ptr<Optimizer> *out, const MakeDomain &make = {});
  Optimizer(const Optimizer &) = delete;
  /// Waits for reductions under way, after making them fail.
  ~Optimizer() { sealing_.unseal(); }

  const std::shared_ptr<Group> &group() const { return parts_.group; }
  /// The queue in which the task of seal() runs.
  const std::shared_ptr<OperationQueue> &seal_queue() const { return parts_.group->queue(); }
  /// The queue in which all other tasks run.
  const std::shared_ptr<OperationQueue> &queue() const { return parts_.queue; }

  /// @name Building
  /// @{
  /// `config` may be nullptr.
  Status add_param(const Config *config, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id);
  Status add_set(const Config &config, int64_t *out_set);
  Status set_model_group(std::shared_ptr<Group> group);
  Status set_order(const int64_t *ids, int64_t count);
  Status add_module_buffer(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id);
  Status set_gather_order(const int64_t *ids, int64_t count);
  Task seal() { return parts_.guard.run(sealing_.seal(), Caller::seal); }
  /// @}

  /// Streams are those of the optimizer's device. Any thread.
  Status check_stream(void *stream) const { return parts_.memory->check_stream(stream); }

  /// @name Values
  /// @{
  Task begin(int32_t source) { return parts_.guard.run(values_.begin(source), Caller::begin); }
  Status init_param(int64_t id, int32_t initialiser, double a, double b, int64_t seed) {
    return values_.init_param(id, initialiser, a, b, seed);
  }
  Task param_acquire(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream = nullptr) {
    return params_.acquire(id, dst, dst_count, out_data, stream);
  }
  Status param_release(int64_t id) { return params_.release(id); }
  Status slot_count(int64_t id, int64_t *out) const { return values_.slot_count(id, out); }
  Status slot(int64_t id, int64_t index, SlotInfo *out) const { return values_.slot(id, index, out); }
  Task read(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count, void *stream = nullptr) {
    return values_.read(id, slot, offset, data, count, stream);
  }
  Task write(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count, void *stream = nullptr) {
    return run(values_.write(id, slot, offset, data, count), stream, Caller::write);
  }
  /// `out` must not be nullptr; its struct_size is set here.
  Task verify(zero_verify_result *out, void *stream = nullptr) { return parts_.guard.run(values_.verify(out, stream), Caller::verify); }
  /// @}

  /// @name Module buffers
  /// @{
  Status module_buffer(int64_t id, void **out_data, int64_t *out_count) const { return values_.module_buffer(id, out_data, out_count); }
  Task sync_module_buffers() { return parts_.guard.run(values_.sync_module_buffers(), Caller::sync_module_buffers); }
  /// Brings replicas together, unless they are.
  Task sync(zero_step_result *out, void *stream = nullptr) { return run(steps_.sync(out), stream, Caller::sync); }
  /// @}

  /// @name Steps. `out` may be nullptr; its struct_size is the caller's.
  /// @{
  Status grad_acquire(int64_t id, void **out_data, int64_t *out_accumulate, void *stream = nullptr) {
    return gradients_.acquire(id, out_data, out_accumulate, stream);
  }
  Status grad_ready(int64_t id, const void *grad, int64_t offset, int64_t count, void *stream = nullptr) {
    return gradients_.ready(id, grad, offset, count, stream);
  }
  Status grad_ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count) {
    return gradients_.ready_rows(id, rows, values, count);
  }
  /// Whole gradients, one after the other, until one fails. `grads` may be nullptr: all were
  /// acquired.
  Status grads_ready(const int64_t *ids, int64_t count, const void *const *grads, void *stream = nullptr) {
    return gradients_.all_ready(ids, count, grads, stream);
  }
  Status set_weight(double weight) { return gradients_.set_weight(weight); }
  Task micro_step(int32_t kind) { return parts_.guard.run(gradients_.micro_step(kind), Caller::micro_step, CallGuard::Uses::gradients); }
  Task step(zero_step_result *out, void *stream = nullptr) { return run(steps_.step(out), stream, Caller::step); }
  Task reduce(zero_step_result *out, void *stream = nullptr) {
    return run(steps_.reduce("zero_optimizer_reduce", out, true), stream, Caller::reduce);
  }
  Task apply(void *stream = nullptr) { return run(steps_.apply(), stream, Caller::apply); }
  Task gather(void *stream = nullptr) { return run(steps_.gather(), stream, Caller::gather); }
  /// The outcome of the newest step; waits for it. `out` must not be nullptr.
  Status result(zero_step_result *out, void *stream = nullptr) { return steps_.result(out, stream); }
  /// Makes captured steps that run later use the current settings.
  Status refresh(void *stream = nullptr) { return steps_.refresh(stream); }
  /// Asks all ranks to stop: the next step reports the largest reason of all. Any thread, also in a
  /// signal handler. Returns a status code.
  int32_t request_stop(int64_t reason) noexcept { return vote_.stop_request().raise(reason); }
  /// Returns the address of a double, in the memory of the parameters: the loss scale that applies
  /// to gradients of the next step.
  Status loss_scale_address(void *stream, void **out) { return steps_.loss_scale_address(stream, out); }
  Status view_count(int64_t *out) const { return values_.view_count(out); }
  Status view(int64_t index, int32_t slot, View *out) { return values_.view(index, slot, out); }
  /// @}

  /// @name Scalars
  /// @{
  Status set_f64(int64_t set, int32_t key, double value) { return scalars_.set_f64(set, key, value); }
  Status get_f64(int64_t set, int32_t key, double *out) const { return scalars_.get_f64(set, key, out); }
  Status set_i64(int32_t key, int64_t value) { return scalars_.set_i64(key, value); }
  Status get_i64(int32_t key, int64_t *out) const { return scalars_.get_i64(key, out); }
  /// @}

  /// @name Statistics. Any thread.
  /// @{
  Status memory(int32_t category, MemoryUse *out) const { return report_.memory(category, out); }
  Traffic traffic(OperationKind kind) const { return report_.traffic(kind); }
  StepTimes step_times() const { return steps_.times(); }
  std::string describe() const { return report_.describe(); }
  /// The newest events, in the Chrome trace format.
  Status trace(std::string *out) const { return report_.trace(out); }
  /// @}

 private:
  friend class SavedState;

  explicit Optimizer(OptimizerOrigin origin) : parts_(std::move(origin)) {}

  /// While registration is open.
  Status check_building(const char *call) const {
    return parts_.guard.check_call(call, CallGuard::Phase::building, CallGuard::Phase::building);
  }
  /// A task in the order of a stream.
  Task run(Task body, void *stream, Caller caller) { return parts_.guard.run(parts_.in_order(std::move(body), stream), caller); }

  OptimizerParts parts_;
  ParamAccess params_{parts_};
  StateAccess values_{parts_};
  GradientCalls gradients_{parts_};
  StepFlagsExchange vote_{parts_};
  Steps steps_{parts_, vote_};
  OptimizerScalars scalars_{parts_};
  OptimizerReport report_{parts_};
  Sealing sealing_{parts_, params_, vote_};
};

}  // namespace zero
