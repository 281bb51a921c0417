/// @file GradientAccumulator: incoming gradients: addresses, ready ranges, rows, weights, and the
/// sums of micro-steps on this rank. Knows no other ranks; never when a bucket is reduced.
#pragma once

#include "engine/gradients/bucket_schedule.h"
#include "engine/gradients/micro_step_state.h"
#include "engine/gradients/ready_ranges.h"
#include "engine/layout/params.h"
#include "memory/device.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace zero {

class GradientAccumulator {
 public:
  /// `rows` get the marks of a world of one.
  GradientAccumulator(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Kernels &kernels, const Params &params,
                      GivenRows &rows, MicroStepState &state, BucketSchedule &schedule)
      : plan_(plan),
        settings_(settings),
        slots_(slots),
        kernels_(kernels),
        params_(params),
        rows_(rows),
        state_(state),
        schedule_(schedule) {}

  /// Once the schedule is open. `norm_tells`: a gradient that is not finite shows in the norm of a
  /// world of one.
  void open(std::shared_ptr<Group> group, const MemorySource &source, bool norm_tells);
  void close();

  Status acquire(int64_t id, void **out_data, int64_t *out_accumulate);
  /// If arenas lie on the host and `grad` on a device, or the reverse, it passes through `device`,
  /// whose stream `stream` is; otherwise `device` is nullptr.
  Status ready(int64_t id, const void *grad, int64_t offset, int64_t count, Device *device = nullptr, void *stream = nullptr);
  /// All of a tensor's gradient: `count` rows of `values` with these numbers, and zeros for all
  /// other rows. Rows with the same number are added up in this order.
  Status ready_rows(int64_t id, const int64_t *rows, const void *values, int64_t count);
  Status set_weight(double weight);

  /// From now on what arrives is added up on this rank.
  Status accumulate();
  /// Completes every bucket: missing elements count as zero.
  Task fill_rest();
  /// Once all slots hold the contribution: looks at those that changed since they were looked at.
  /// In a world of one divides by the weight.
  void finish_slots();

  void begin_micro_step();
  /// Sums were reduced: the next micro-step begins anew.
  void end_sums();
  void begin_step();

  /// An element was given in this step; of a table, a row.
  bool filled(int64_t id) const {
    const Tensor &shared = tensors_[static_cast<size_t>(params_.holder(id))];
    return shared.rows.empty() ? shared.filled.count() > 0 : shared.gave_rows;
  }
  /// Elements that were not given in this step.
  int64_t unfilled_count() const;
  /// All values looked at are finite; if ranks are to add them, so small that no sum can overflow.
  bool finite() const { return finite_; }
  /// Bytes that sums of micro-steps take on this rank. Any thread.
  int64_t local_nbytes() const { return local_nbytes_.load(std::memory_order_relaxed); }

 private:
  struct Tensor {
    ReadyRanges ready;  ///< in this micro-step, under this name
    bool acquired = false;
    // The rest is kept for the parameter that holds the memory:
    ReadyRanges written;         ///< elements whose memory holds something of this step
    ReadyRanges filled;          ///< given in this step
    std::vector<int64_t> names;  ///< itself and those tied to it
    std::vector<uint8_t> rows;   ///< if given by rows: RowMarks, the last for all behind the rows
    bool gave_rows = false;      ///< in this step
  };
  struct Bucket {
    std::byte *local = nullptr;  ///< memory of its own for sums of micro-steps, where one was made
    int64_t acquired = 0;        ///< tensors, as Tensor::acquired
    bool unseen = false;         ///< has elements that are to be looked at once all are ready
  };
  /// The place that a tensor's gradient is brought to.
  struct Landing {
    Bucket &bucket;
    std::byte *memory;  ///< begins with the bucket
    DType dtype;
    int64_t total_nbytes;  ///< the bucket's
  };
  /// Elements on their way into a bucket.
  struct Arrival {
    const Landing &at;
    std::byte *to;
    const std::byte *values;
    DType dtype;
    int64_t count;
  };

  /// Gradients are looked at when they are given. Otherwise reductions look at the sums.
  bool scans() const { return (state_.alone ? !norm_tells_ : state_.late()) && settings_.skips_nonfinite; }
  float scan_limit(DType dtype) const;
  /// Weighted sums over micro-steps may leave the range of 16 bits before they are divided.
  DType sum_dtype(int64_t index) const {
    return settings_.accumulates_in_f32 || settings_.weighted() ? DType::f32 : schedule_.dtype(index);
  }
  /// True when micro-steps cannot be added up where gradients arrive: sums have another dtype, or
  /// arrivals are weighted.
  bool apart(int64_t index) const { return settings_.weighted() || sum_dtype(index) != schedule_.dtype(index); }
  /// Arrivals in fp32 are multiplied by the weight, 16-bit contributions when they are summed.
  float arrival_factor(DType to_dtype) const { return to_dtype == DType::f32 ? static_cast<float>(state_.weight) : 1; }
  /// True when arrivals in the bucket's buffer are added to local sums elsewhere.
  bool lands(int64_t index) const { return state_.accumulating && apart(index); }
  Landing landing_of(int64_t id);
  int64_t home(int64_t id) const { return plan_.param(id).bucket; }
  Bucket &bucket(int64_t index) { return buckets_[static_cast<size_t>(index)]; }
  Tensor &tensor(int64_t id) { return tensors_[static_cast<size_t>(id)]; }
  Tensor &holder(int64_t id) { return tensor(params_.holder(id)); }
  /// Element `offset` of a tensor in memory that begins with its bucket.
  std::byte *within(std::byte *memory, int64_t id, int64_t offset, DType dtype) const;
  /// In place of a buffer: sums of micro-steps that are kept where gradients arrive.
  std::byte *own_buffer(int64_t index) { return state_.accumulating && !apart(index) ? bucket(index).local : nullptr; }

  Status check_acquire(int64_t id);
  Status check_not_filled_elsewhere(int64_t id) const;
  Status make_ready(int64_t id, bool copies);
  void offer_sum(int64_t id);
  void take_in(int64_t id, const std::byte *values, Range range);
  Status fetch(int64_t id, const std::byte *grad, Range range, Device &device, void *stream);
  Status bring(int64_t id, const std::byte *grad, Range range, Device &device, void *stream);
  void arrive(const Arrival &given, bool adds);
  void take_first(const Arrival &given);
  void clear_unwritten(int64_t id);
  Status end_ready(int64_t id, Range range);
  Status keep_sums();
  void contribute_sums(int64_t index) const;
  void close_bucket(int64_t index);

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

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Kernels &kernels_;
  const Params &params_;
  GivenRows &rows_;
  MicroStepState &state_;
  BucketSchedule &schedule_;
  std::shared_ptr<Group> group_;
  MemorySource source_{};
  Arena local_;
  Arena brought_;  ///< on a device: a part of a gradient that came from the host
  std::atomic<int64_t> local_nbytes_{0};
  std::vector<int64_t> row_order_;  ///< places in the rows of a call
  std::vector<std::byte> row_sum_;  ///< one row of a call
  std::vector<Tensor> tensors_;
  std::vector<Bucket> buckets_;
  bool norm_tells_ = false;
  bool looks_again_ = false;  ///< values changed after they were looked at, in this step
  bool finite_ = true;        ///< in this step
};

}  // namespace zero
