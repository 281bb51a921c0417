/// @file Gradients: what the caller fills in during a step: addresses, ready ranges, micro-steps, bucket buffers, and when a bucket's
/// reduction starts. Knows nothing of votes and updates.
#pragma once

#include "core/clock.h"
#include "engine/gradients/bucket_pool.h"
#include "engine/gradients/ready_ranges.h"
#include "engine/gradients/reductions.h"
#include "engine/layout/params.h"
#include "memory/device.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace zero {

/// What becomes of the gradients of a micro-step: numbers of zero_micro_step.
enum class MicroStep : int32_t {
  last = ZERO_MICRO_STEP_LAST,      ///< reduced; the step follows
  local = ZERO_MICRO_STEP_LOCAL,    ///< added up on this rank
  reduce = ZERO_MICRO_STEP_REDUCE,  ///< reduced and added to the shards
};

class Gradients {
 public:
  Gradients(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Kernels &kernels, const Params &params, Trace &trace)
      : plan_(plan),
        settings_(settings),
        slots_(slots),
        kernels_(kernels),
        params_(params),
        reductions_(plan, settings, slots, kernels, trace) {}

  /// Allocates the pool where one is needed. In a world of one nothing is reduced: the slot is the contribution. `counted`, by bucket: its
  /// squares count towards the norm. `across` as in Reductions; `alone`: no other rank has a part in steps.
  Status open(std::shared_ptr<Group> group, std::shared_ptr<Group> across, bool alone, const MemorySource &source,
              std::vector<bool> counted);
  /// Bytes of workspace that open() takes.
  int64_t workspace_nbytes(std::span<const Format> formats) const { return reductions_.workspace_nbytes(formats); }
  /// Before the first gradient of a step.
  void sum_across(bool all) { reductions_.sum_across(all); }
  void send_in_full(bool full) { reductions_.send_in_full(full); }
  Residuals &residuals() { return reductions_.residuals(); }
  /// Contributions may wait in their slots until the update sums them: finish() then reduces nothing.
  void fuse_reduction(bool late) { late_ = late; }
  bool fuses_reduction() const { return late_; }
  /// In stage 0, where a step needs no more than its rank's cuts of the sums.
  void keep_sharded_sums() { reductions_.keep_sharded_sums(true); }
  /// Who waits for ranks in `group` advances the reductions meanwhile.
  void go_on_beside(Group &group) const { reductions_.go_on_beside(group); }
  /// Ends reductions and gives memory back.
  void close();

  Status acquire(int64_t id, void **out_data, int64_t *out_accumulate);
  /// Where arenas lie on the host and `grad` on a device, or the reverse, it passes through `device`, whose stream `stream` is; otherwise
  /// `device` is nullptr.
  Status ready(int64_t id, const void *grad, int64_t offset, int64_t count, Device *device = nullptr, void *stream = nullptr);
  /// All of a tensor's gradient: `count` rows of `values` with these numbers, added up in this order where a number comes again, and zeros
  /// for all others.
  Status ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count);
  Status set_weight(double weight);

  /// @name From one micro-step to the next: may it end, reduce what it is to reduce, begin one of the given kind
  /// @{
  Status check_micro_step();
  /// Nothing was set for a step or a micro-step that has not begun.
  Status check_between_steps(const char *call) const;
  Task end_micro_step();
  Status begin_micro_step(MicroStep kind);
  /// True when the end of the micro-step under way waits for other ranks.
  bool reduces_micro_step() const { return started_ && !alone_ && kind_ == MicroStep::reduce; }
  /// Equal on ranks that have come equally far in the REDUCE micro-steps of a step. `ends`: in the call that ends the step.
  uint64_t progress(bool ends) const {
    return static_cast<uint64_t>(4 * reduced_micro_steps_ + (reduces_micro_step() ? 2 : 0) + (ends ? 1 : 0));
  }
  /// @}
  /// Counts what is missing as zero, reduces everything and waits for it, unless late() is true.
  Task finish();
  /// Reduces what waited.
  Task reduce_late();
  /// Where cuts may be left: makes sums whole if they are to be, unless they are, and expects the same of the next step.
  Task give_sums(bool whole);
  /// Ends the step.
  void reset();

  /// True while a tensor is acquired and not yet all ready.
  bool any_acquired() const { return acquired_count_ > 0; }
  /// True when gradients of this step were given.
  bool started() const { return started_; }

  /// True when the contributions of this step wait to be summed.
  bool late() const { return late_ && kind_ != MicroStep::reduce && reduced_micro_steps_ == 0; }
  /// What waits is so small that no sum of all ranks' contributions can overflow.
  bool bounded() const { return finite_ && kernels_.passed(); }

  /// @name What finish() or reduce_late() found out
  /// @{
  int64_t unfilled_count() const { return unfilled_count_; }
  bool filled(int64_t id) const { return tensors_[static_cast<size_t>(params_.holder(id))].filled.count() > 0; }
  bool finite() const { return (alone_ ? finite_ : reductions_.finite()) && kernels_.passed(); }
  double weight_sum() const { return alone_ ? weight_sum_ : reductions_.weight_sum(); }
  kernels::ExactSum squares();
  /// In a world of one: gives the kernels what squares() adds up, and does not wait for it.
  void add_squares(kernels::ExactSum &sum) const;
  /// @}

  const BucketPool &pool() const { return pool_; }
  bool overlapping() const { return reductions_.overlapping(); }
  int64_t stalled_nbytes() const { return stalled_nbytes_.load(std::memory_order_relaxed); }
  /// Bytes that micro-steps made necessary so far. Any thread.
  int64_t accumulated_nbytes() const { return local_nbytes_.load(std::memory_order_relaxed) + reductions_.sums_nbytes(); }

 private:
  struct Tensor {
    ReadyRanges ready;  ///< in this micro-step, under this name
    bool acquired = false;
    // Of the parameter that holds the memory:
    ReadyRanges written;         ///< what the memory that gradients are added up in holds of this step
    ReadyRanges filled;          ///< what was given in this step
    std::vector<int64_t> names;  ///< itself and those tied to it
    std::vector<uint8_t> rows;   ///< given by rows: their RowMarks, with one for what lies behind them
  };
  struct Bucket {
    DType dtype = DType::f32;
    std::byte *data = nullptr;   ///< its elements in dtype; nullptr: no buffer was taken yet
    std::byte *local = nullptr;  ///< memory of its own for sums of micro-steps, where one was made
    int64_t missing = 0;         ///< elements that are not ready, once per name
    int64_t acquired = 0;        ///< tensors, as Tensor::acquired
    bool unseen = false;         ///< has elements that are to be looked at once all are ready
  };

  /// Elements on their way into a bucket.
  struct Arrival {
    Bucket &bucket;
    std::byte *to;
    DType to_dtype;
    const std::byte *values;
    DType dtype;
    int64_t count;
    int64_t total_nbytes;  ///< of the bucket at `to`
  };

  /// Gradients are looked at when they are given. What is reduced is looked at then, and may be larger than scan_limit.
  bool scans() const { return (alone_ ? !squares_tell_ : late()) && settings_.skips_nonfinite; }
  float scan_limit(DType dtype) const;
  bool pooled() const { return !alone_ && settings_.stage >= 2; }
  bool weighted() const { return settings_.divisor == ZERO_DIVISOR_WEIGHTS; }
  /// Of sums over micro-steps. Weighted ones may leave the range of 16 bits before they are divided.
  DType sum_dtype(const Bucket &bucket) const { return settings_.accumulates_in_f32 || weighted() ? DType::f32 : bucket.dtype; }
  /// True when micro-steps cannot be added up where gradients arrive: sums have another dtype, or arrivals are weighted.
  bool apart(const Bucket &bucket) const { return weighted() || sum_dtype(bucket) != bucket.dtype; }
  /// What arrives is multiplied by the weight only where it is kept in fp32: 16-bit contributions are multiplied where they are summed.
  float arrival_factor(DType to_dtype) const { return to_dtype == DType::f32 ? static_cast<float>(weight_) : 1; }
  /// True when what arrives in data is added to local.
  bool lands(const Bucket &bucket) const { return accumulating_ && apart(bucket); }
  /// Where a tensor's gradient is brought.
  struct Landing {
    std::byte *memory;  ///< begins with the bucket
    DType dtype;
    int64_t total_nbytes;
  };
  Landing landing_of(int64_t id);
  Bucket &home(int64_t id) { return buckets_[static_cast<size_t>(plan_.param(id).bucket)]; }
  Tensor &holder(int64_t id) { return tensors_[static_cast<size_t>(params_.holder(id))]; }
  /// Element `offset` of a tensor in memory that begins with its bucket.
  std::byte *within(std::byte *bucket, int64_t id, int64_t offset, DType dtype) const;

  /// @name The caller's side (gradients.cpp)
  /// @{
  Status check_acquire(int64_t id);
  Status check_not_filled_elsewhere(int64_t id) const;
  void offer_sum(int64_t id);
  void take_in(int64_t id, const std::byte *values, Range range);
  Status fetch(int64_t id, const void *grad, Range range, Device &device, void *stream);
  Status bring(int64_t id, const std::byte *grad, Range range, Device &device, void *stream);
  void take_first(const Arrival &given);
  void add(const Arrival &given);
  Status end_ready(int64_t id, Range range);
  /// @}

  /// @name Gradients that are given by rows (gradient_rows.cpp)
  /// @{
  bool by_rows(int64_t id) const { return params_[params_.holder(id)].options.by_rows; }
  void mark_rows(int64_t id, Range range);
  void unmark_rows(Tensor &tensor) const;
  void take_rows(int64_t id, const int64_t *rows, const std::byte *values, int64_t count);
  void add_zeros(const Arrival &whole, uint8_t mark) const;
  void sort_rows(const int64_t *rows, int64_t count);
  const std::byte *sum_of_row(const int64_t *rows, const std::byte *values, int64_t width, DType dtype, size_t *place);
  /// @}

  /// @name The library's side (gradient_buckets.cpp)
  /// @{
  Status keep_local_sums();
  Status need_buffer(Bucket &bucket, int64_t index);
  Task await_buffer(Bucket &bucket, int64_t index);
  bool take_free(Bucket &bucket, int64_t index);
  /// Of a bucket's gradients.
  int64_t nbytes_of(int64_t index) const;
  void clear_gaps(const Bucket &bucket, int64_t index);
  Status give_back_ended();
  void start_reductions();
  void add_weight();
  double contribution_weight() const { return local_weight_ + weight_; }
  void clear_unwritten(int64_t id);
  void leave_landing(Bucket &bucket);
  void contribute_sums(const Bucket &bucket, int64_t count) const;
  void close_bucket(int64_t index);
  void submit_complete();
  Reductions::Goal goal() const;
  Task fill_rest();
  Task reduce_rest();
  void scan_late();
  void look_at(int64_t index);
  void finish_alone();
  void open_micro_step(MicroStep kind);
  /// @}

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Kernels &kernels_;
  const Params &params_;
  Reductions reductions_;
  BucketPool pool_;
  Arena local_;
  Arena brought_;  ///< on a device: a part of a gradient that came from the host
  std::atomic<int64_t> local_nbytes_{0};
  std::vector<int64_t> row_order_;  ///< of the call that gives rows
  std::vector<std::byte> row_sum_;  ///< of what one call gives of a row
  MemorySource source_{};
  std::shared_ptr<Group> group_;
  bool alone_ = false;
  bool late_ = false;
  bool squares_tell_ = false;  ///< in a world of one: the norm, which is not finite where a gradient is not
  std::vector<Tensor> tensors_;
  std::vector<Bucket> buckets_;

  // Of the step:
  bool started_ = false;       ///< gradients were given or a micro-step was begun
  bool accumulating_ = false;  ///< what arrives is added to what earlier micro-steps of this rank left
  bool scans_late_ = false;    ///< values changed after they were looked at
  bool finite_ = true;         ///< what was looked at: in a world of one finite, otherwise within scan_limit
  bool reducing_ = false;      ///< what waited is being reduced
  int64_t unfilled_count_ = 0;
  int64_t reduced_micro_steps_ = 0;  ///< whose sums the shards hold
  double local_weight_ = 0;  ///< of the micro-steps that local sums hold
  double weight_sum_ = 0;    ///< in a world of one

  // Of the micro-step:
  MicroStep kind_ = MicroStep::last;
  size_t next_submitted_ = 0;  ///< place in the plan's order of the next bucket to submit
  int64_t acquired_count_ = 0;
  double weight_ = 1;
  bool weight_set_ = false;  ///< by the caller
  bool given_ = false;       ///< gradients of this micro-step were given
  bool weight_sent_ = false;
  std::atomic<int64_t> stalled_nbytes_{0};
};

}  // namespace zero
