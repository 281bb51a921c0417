/// @file Optimizer: parameters, gradients and states of a model over the ranks of a group, and the steps that update them. The only object
/// that knows both which collective and which kernel. Never knows handles, requests or structs of the ABI other than results it fills.
#pragma once

#include "core/config.h"
#include "core/task.h"
#include "engine/compute/device_kernels.h"
#include "engine/compute/host_kernels.h"
#include "engine/compute/training_run.h"
#include "engine/config/hyper_set.h"
#include "engine/config/loss_scale.h"
#include "engine/config/settings.h"
#include "engine/gradients/gradients.h"
#include "engine/integrity/verifier.h"
#include "engine/layout/layout.h"
#include "engine/layout/params.h"
#include "engine/layout/plan.h"
#include "engine/optimizer/ballot.h"
#include "engine/optimizer/call_guard.h"
#include "engine/optimizer/memory_need.h"
#include "engine/optimizer/read_gate.h"
#include "engine/optimizer/step_path.h"
#include "engine/optimizer/stop_request.h"
#include "engine/parameters/coded_params.h"
#include "engine/parameters/first_values.h"
#include "engine/parameters/param_gathers.h"
#include "engine/ranks/optimizer_groups.h"
#include "engine/ranks/peer_views.h"
#include "engine/replicas/replica_run.h"
#include "engine/replicas/replicas.h"
#include "engine/stats/results.h"
#include "engine/stats/trace.h"
#include "engine/storage/module_buffers.h"
#include "engine/storage/slot_memory.h"
#include "engine/storage/tensor_slots.h"
#include "engine/storage/update_counts.h"
#include "engine/update/updates.h"
#include "group/collectives.h"
#include "group/group.h"
#include "memory/accounting.h"
#include "memory/device.h"

#include <zero/optimizer.h>
#include <zero/stats.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// Arguments are checked here, except addresses of results, which must not be nullptr, and `stream`. Functions that return a Task are
/// collectives: their task runs in the queue named, in the same order on every rank, the optimizer must outlive it, and a state error is
/// found when it runs. Functions that return a Status wait for no task that was given to that queue (while one that changes
/// parameters is under way they return ZERO_E_STATE), only for gathers behind a step, free buckets and devices.
class Optimizer {
 public:
  static Status create(std::shared_ptr<Group> group, const Config &config, std::shared_ptr<Optimizer> *out);
  Optimizer(const Optimizer &) = delete;
  /// Waits for reductions under way, after making them fail.
  ~Optimizer();

  const std::shared_ptr<Group> &group() const { return group_; }
  /// Where the task of seal() runs.
  const std::shared_ptr<OperationQueue> &seal_queue() const { return group_->queue(); }
  /// Where all other tasks run.
  const std::shared_ptr<OperationQueue> &queue() const { return queue_; }

  /// @name Building
  /// @{
  /// `config` may be nullptr.
  Status add_param(const Config *config, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id);
  Status add_set(const Config &config, int64_t *out_set);
  Status set_model_group(std::shared_ptr<Group> group);
  Status set_order(const int64_t *ids, int64_t count);
  Status add_module_buffer(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id);
  Status set_gather_order(const int64_t *ids, int64_t count);
  Task seal();
  /// @}

  /// Streams are those of the optimizer's device. Any thread.
  Status check_stream(void *stream) const;

  /// @name Values
  /// @{
  Task begin(int32_t source);
  Status init_param(int64_t id, int32_t initialiser, double a, double b, int64_t seed);
  Task param_acquire(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream = nullptr);
  Status param_release(int64_t id);
  Status slot_count(int64_t id, int64_t *out) const;
  Status slot(int64_t id, int64_t index, SlotInfo *out) const;
  Task read(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count, void *stream = nullptr);
  Task write(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count, void *stream = nullptr);
  /// `out` must not be nullptr; its struct_size is set here.
  Task verify(zero_verify_result *out, void *stream = nullptr);
  /// @}

  /// @name Module buffers
  /// @{
  Status module_buffer(int64_t id, void **out_data, int64_t *out_count) const;
  Task sync_module_buffers();
  /// Brings replicas together, unless they are.
  Task sync(zero_step_result *out, void *stream = nullptr);
  /// @}

  /// @name Steps. `out` may be nullptr; its struct_size is the caller's.
  /// @{
  Status grad_acquire(int64_t id, void **out_data, int64_t *out_accumulate, void *stream = nullptr);
  Status grad_ready(int64_t id, const void *grad, int64_t offset, int64_t count, void *stream = nullptr);
  Status grad_ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count);
  /// Whole gradients, one after the other, until one fails. `grads` may be nullptr: all were acquired.
  Status grads_ready(const int64_t *ids, int64_t count, const void *const *grads, void *stream = nullptr);
  Status set_weight(double weight);
  Task micro_step(int32_t kind);
  Task step(zero_step_result *out, void *stream = nullptr);
  Task reduce(zero_step_result *out, void *stream = nullptr);
  Task apply(void *stream = nullptr);
  Task gather(void *stream = nullptr);
  /// The outcome of the newest step; waits for it. `out` must not be nullptr.
  Status result(zero_step_result *out, void *stream = nullptr);
  /// What captured steps, run later, compute with is what is set now.
  Status refresh(void *stream = nullptr);
  /// Asks all ranks to stop: the next step reports the largest reason of all. Any thread, also in a signal handler. Returns a status code.
  int32_t request_stop(int64_t reason) noexcept { return stop_request_.raise(reason); }
  /// Of a double, where parameters lie: the scale that gradients of the next step have in them.
  Status loss_scale_address(void *stream, void **out);
  Status view_count(int64_t *out) const;
  Status view(int64_t index, int32_t slot, View *out);
  /// @}

  /// @name Scalars
  /// @{
  Status set_f64(int64_t set, int32_t key, double value);
  Status get_f64(int64_t set, int32_t key, double *out) const;
  Status set_i64(int32_t key, int64_t value);
  Status get_i64(int32_t key, int64_t *out) const;
  /// @}

  /// @name Statistics. Any thread.
  /// @{
  Status memory(int32_t category, MemoryUse *out) const;
  Traffic traffic(OperationKind kind) const;
  StepTimes step_times() const;
  std::string describe() const;
  /// The newest events, in the Chrome trace format.
  Status trace(std::string *out) const;
  /// @}

 private:
  friend class SavedState;
  using Phase = CallGuard::Phase;
  using Uses = CallGuard::Uses;
  using Counted = CallGuard::Counted;

  /// How a parameter is held by the caller.
  struct Access {
    int64_t count = 0;                 ///< acquires without release
    std::byte *data = nullptr;         ///< what was handed out; of what is gathered or decoded, valid while count > 0
    bool pooled = false;               ///< data belongs to the pool
    std::vector<void *> streams = {};  ///< of a device, on which it is used
  };

  struct Times {
    std::atomic<int64_t> steps{0};
    std::atomic<int64_t> reduce_ns{0};
    std::atomic<int64_t> apply_ns{0};
    std::atomic<int64_t> gather_ns{0};
  };

  Optimizer(std::shared_ptr<Group> group, Settings settings, const HyperSet &hyper, const LossScale &loss_scale, int64_t threads,
            std::unique_ptr<Device> device, std::unique_ptr<DeviceKernels> device_kernels);

  /// Of one replica: over these everything is sharded.
  int64_t ranks() const { return settings_.replicas.ranks; }
  /// This rank's number among them.
  int64_t rank() const { return group_->rank() % ranks(); }
  /// No other rank has a part in this one's steps.
  bool alone() const { return ranks() == 1 && !settings_.replicas.sum_gradients(); }
  /// True when parameters are kept as shards, small ones perhaps excepted.
  bool shards_params() const { return !alone() && settings_.stage == 3; }
  bool buffers_params() const { return shards_params() || layout_.any_coded(); }
  /// Whole parameters lie in the memory of rank 0 only; each rank writes its cuts there.
  bool one_copy() const { return settings_.one_copy && !alone(); }
  /// Gradients and states are whole on this rank, which is to update all of them but in steps that replicate.
  bool updates_all() const { return alone() || settings_.stage == 0; }
  /// In stage 0, where ranks reach one another's memory. Then step() updates this rank's cuts and writes all that it updates into the
  /// memory of all, which is less than an update of everything on each.
  bool shares_states() const {
    return !alone() && settings_.stage == 0 && settings_.algorithm != nullptr && !settings_.on_device &&
           groups_.gather()->transport().shares_memory();
  }
  Sharding sharding() const { return {settings_.stage, alone(), one_copy() && rank() > 0, shares_states()}; }
  MemorySource host_source() { return {&settings_.hook, &accounting_, group_->transport().within_process()}; }
  /// Of parameters, gradients and states.
  MemorySource memory_source() {
    MemorySource source = host_source();
    if (settings_.on_device) source.device = device_.get();
    return source;
  }

  /// @name Registration and scalars (optimizer.cpp)
  /// @{
  Status read_options(const Config &config, const char *name, ParamOptions *out) const;
  Status check_set(int64_t set) const;
  bool lacks_momentum(int64_t set) const;
  /// @}

  /// @name Order of calls
  /// @{
  Status check_range(int64_t id, int64_t offset, int64_t count) const;
  /// The body comes after what `stream` was given before, and what the stream is given next comes after the body.
  Task in_order(Task body, void *stream);
  /// @}

  /// @name What a rank reads after others were lost (salvage.cpp)
  /// @{
  bool holds_param(int64_t id) const;
  std::byte *entries_here(const Slot &slot, int64_t id, Range range, bool *out_follows) const;
  Task read_or_salvage(Task reads, int64_t id, int32_t slot, int64_t offset, void *data, int64_t count);
  /// @}

  /// @name Seal (seal.cpp)
  /// @{
  Task seal_body();
  Status write_sealed_text(std::string *out) const;
  Task agree_on_plan();
  Task name_replicas(int64_t *out);
  Task agree_on_model(Status mine, int64_t replicas);
  Task make_groups();
  Status allocate();
  Status allocate_on_device();
  Task reach();
  Task share_memory();
  Status check_room_to_meet() const;
  NeedOptions needs() const;
  Task reach_devices(bool *out);
  void make_views();
  std::vector<bool> counted_buckets() const;
  Status prepare();
  PathFacts path_facts() const;
  void plan_paths();
  void unseal();
  /// @}

  /// @name First values (begin.cpp, init_param.cpp)
  /// @{
  Task begin_body(int32_t source);  // a zero_source
  /// @}

  /// @name Parameters and slots (param_access.cpp, state_access.cpp)
  /// @{
  Task acquire_counted(Task body, int64_t id, Counted queued);
  Task acquire_body(int64_t id, void *dst, int64_t dst_count, void **out_data, void *stream);
  Status find_memory(const void *memory, const char *argument, bool *out_on_device) const;
  Status check_host_memory(const void *memory, const char *argument) const;
  Status copy_param(void *dst, const std::byte *data, int64_t nbytes, bool dst_on_device, void *stream);
  Status follow_user(void *stream) const;
  Status follow_one_of_users(void *stream) const;
  Status find_slot(int32_t number, int64_t id, const Slot **out) const;
  Status check_entries(int64_t id, int32_t slot, int64_t offset, int64_t count, const Slot **out) const;
  Status check_read(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count, const Slot **out) const;
  Task read_body(int64_t id, int32_t slot, int64_t offset, void *data, int64_t count);
  Task write_body(int64_t id, int32_t slot, int64_t offset, const void *data, int64_t count);
  Task write_entries(const Slot &slot, int64_t id, Range range, const void *data, bool *out_any);
  const Slot *unwritten_remainder(int64_t id) const;
  Task follow_owners(const Slot &state, int64_t id);
  /// @}

  /// @name Steps (step.cpp)
  /// @{
  Task step_body(zero_step_result *out);
  Task reduce_body(const char *call, zero_step_result *out, bool splits);
  Task finish_gradients();
  Status check_same_call(int64_t splitting) const;
  Task gather_body();
  Status check_trains(int64_t id) const;
  Status check_taken_over() const;
  Task micro_step_body(int32_t kind);
  Task apply_body();
  Task pick_path();
  void count_direct() const;
  void count_replicas(int32_t slot, int64_t bucket) const;
  Status check_captured(void *stream, const char *what, bool *out_captured = nullptr) const;
  Status check_capture(const zero_step_result *out) const;
  Status check_not_captured(const char *call, void *stream) const;
  Task await_readers();
  Task update();
  Status forget_masters_after_device();
  void end_step();
  Status write_result(zero_step_result *out) const;
  /// @}

  /// @name The vote of a step (vote.cpp)
  /// @{
  void fill_in_ballot();
  bool weightless() const;
  Task vote(Finding &change);
  Task vote_of_model();
  uint64_t hyper_hash(bool with_run) const;
  Task check_alike();
  kernels::VerdictRules verdict_rules() const;
  void judge();
  Status judge_on_device();
  Status known_run() const;
  Status tell_update_counts();
  Status tell_run();
  Task compare_update_counts();
  Task agree_on_stop();
  /// @}

  /// @name Several replicas (replica_steps.cpp)
  /// @{
  int64_t call_count() const { return run_.known().applied_count + run_.known().skipped_count; }
  void plan_next_step();
  Task vote_of_replicas();
  Task compare_runs_of_replicas();
  Task sync_replicas();
  Task sync_replicas_body(zero_step_result *out);
  /// @}

  /// @name Verification (verify.cpp)
  /// @{
  Task verify_body(zero_verify_result *out, void *stream);
  Task any_edited(bool *out);
  /// @}

  /// @name Module buffers (optimizer.cpp)
  /// @{
  Task sync_body();
  /// @}

  /// @name Statistics (describe.cpp). After seal, any thread.
  /// @{
  int64_t formula_nbytes(int32_t category) const;
  int64_t constant_nbytes(int32_t category) const;
  int64_t gathered_nbytes() const;
  void describe_plan(std::string &text) const;
  void describe_replicas(std::string &text) const;
  int64_t sent_across_nbytes(kernels::Code code, bool all) const;
  void describe_space(std::string &text, size_t space) const;
  void describe_memory(std::string &text) const;
  /// @}

  const std::shared_ptr<Group> group_;
  const Settings settings_;
  HostKernels host_kernels_;
  const std::unique_ptr<Device> device_;                 ///< where the caller's gradients and parameters may lie; nullptr: on the host only
  const std::unique_ptr<DeviceKernels> device_kernels_;  ///< nullptr: parameters, gradients and states are kept on the host
  Kernels &kernels_;                                     ///< of what is kept
  std::vector<HyperSet> sets_;
  LossScale loss_scale_;
  Params params_;
  Layout layout_;
  const Plan &plan_;  ///< of the layout
  Accounting accounting_;
  Trace trace_;
  SlotMemory slots_;
  TensorSlots tensors_;
  CodedParams coded_params_;
  TrainingRun run_;
  UpdateCounts update_counts_;
  Verifier verifier_;
  Gradients gradients_;
  Updates updates_;
  PeerViews grad_views_;
  PeerViews param_views_;
  PeerViews state_views_;  ///< where states are shared
  OptimizerGroups groups_;
  ModuleBuffers module_buffers_;
  ParamGathers gathers_;
  FirstValues first_values_;
  Replicas replicas_;
  const std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();

  CallGuard guard_;
  std::shared_ptr<void> saved_run_;    ///< of checkpoints
  std::shared_ptr<ReadGate> gate_;     ///< closed while a save reads what is kept; nullptr: none does

  std::vector<Access> access_;
  int64_t acquired_count_ = 0;
  std::vector<View> views_;

  StepPaths paths_;             ///< where the device decides, run_ is what is known of its run
  bool skips_ = false;          ///< the vote of the step under way; false where the device judges
  bool applied_ = false;        ///< the step under way was applied
  int64_t unfilled_count_ = 0;
  bool splits_ = false;  ///< the step under way is reduce, apply and gather
  ReplicaRun replica_run_;
  Ballot ballot_;
  StopRequest stop_request_;
  int64_t stop_seen_ = 0;    ///< this rank's reason, as it was when the step under way was voted on
  int64_t stop_reason_ = 0;  ///< the largest of all ranks, of the newest step
  Times times_;
};

}  // namespace zero
