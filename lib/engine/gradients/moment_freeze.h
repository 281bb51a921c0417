/// @file MomentFreeze: the moments of Adam once gradients are coded (1-bit Adam: Tang et al., 2021,
/// algorithm 1). The second stays as it is. Coded gradients carry the first, so that codes and
/// residuals are those of the momentum. Knows slots and hyper-parameters; never senders or codes.
#pragma once

#include "engine/config/hyper_set.h"
#include "engine/config/settings.h"
#include "engine/layout/params.h"
#include "engine/layout/plan.h"
#include "engine/storage/slot_memory.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// m <- beta1 m + (1 - beta1) g is 1 - beta1 times g + c m, with c = beta1 / (1 - beta1). Codes
/// therefore get g + c m, and c m is taken off their result. The update then makes 1 - beta1 times
/// the decoded value the new m. Nothing is kept for that.
///
/// An element with a small second moment in a line of large ones would take the coding error of the
/// line, divided by its own small root, in every step. Such elements keep still. Their first moment
/// becomes 0, as that of elements without gradients does in the authors' program, whose user lists
/// them.
class MomentFreeze {
 public:
  /// All arguments must outlive the object.
  MomentFreeze(const ReplicaSettings &replicas, const Plan &plan, const Params &params, const std::vector<HyperSet> &sets,
               const SlotMemory &slots)
      : replicas_(replicas), plan_(plan), params_(params), sets_(sets), slots_(slots) {}

  /// Before the first gradient of the step after `calls`, of which `applied` were applied.
  void begin_step(int64_t calls, int64_t applied, double loss_scale);
  /// Coded gradients of the step carry the first moment.
  bool begun() const { return begun_; }
  /// The step leaves the second moment as it is. If no step before codes began was applied, the
  /// first that is applied does not: there would be none.
  bool stays() const { return stays_; }
  /// The step was applied.
  void count() { missed_ += stays_ ? 1 : 0; }
  /// Applied steps that have left the second moment as it was.
  int64_t missed() const { return missed_; }
  void set_missed(int64_t missed) { missed_ = missed; }

  /// @name This rank's cut of a bucket, in steps for which begun() holds. `full`, by line: it
  /// travels in full
  /// @{
  /// values += share c m, in units of the loss scale, but for lines in full.
  void add(int64_t bucket, std::span<const uint8_t> full, double share, float *values) const;
  /// values -= c m, but for lines in full. Elements that keep still get - c m, which makes their
  /// new m 0. False where a result is not finite.
  bool take_off(int64_t bucket, std::span<const uint8_t> full, float *values) const;
  /// @}
  /// An element keeps still if its second moment is at most this part of the mean of its line.
  static constexpr double kStill = 1e-4;

 private:
  template <class Visit>
  void each_line(const PlannedBucket &bucket, Visit &&visit) const;
  const float *moments_of(int32_t slot, int64_t bucket) const;

  const ReplicaSettings &replicas_;
  const Plan &plan_;
  const Params &params_;
  const std::vector<HyperSet> &sets_;
  const SlotMemory &slots_;
  std::vector<double> factors_;  ///< by set: c, times the loss scale
  bool begun_ = false;
  bool stays_ = false;
  int64_t missed_ = 0;
};

}  // namespace zero
