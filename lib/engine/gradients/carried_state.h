/// @file CarriedState: fp32 values that strategies of gradients carry from one step to the next:
/// losses of codes, velocities, factors. Knows runs of values and the two generations of each;
/// never senders, nor the use of a value.
#pragma once

#include "engine/layout/plan.h"
#include "memory/arena.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// The kinds of values, which saves keep apart.
enum class Carried : size_t {
  residual_sums,     ///< losses of the sums that replicas send
  residual_results,  ///< losses of the results of these sums
  velocities,        ///< those of momentum correction
  factors,           ///< Q of low rank
};
inline constexpr std::array kCarried = {Carried::residual_sums, Carried::residual_results, Carried::velocities, Carried::factors};

/// The values of some elements of a tensor.
struct CarriedPart {
  Range elements;
  float *data = nullptr;
};

/// Each value is there twice: what a step began with, and what it leaves. A step that is skipped
/// keeps the first. A run has the values of a bucket or of a matrix. One thread at a time.
class CarriedState {
 public:
  /// Bytes that open() takes. `counts`: values of each run.
  static int64_t nbytes(std::span<const int64_t> counts);
  /// By bucket: the elements that this rank sums; 0: the bucket has no gradients.
  static std::vector<int64_t> own_counts(const Plan &plan);
  void open(std::span<const int64_t> counts, Arena &memory);
  void close() { runs_.clear(); }
  bool kept() const { return !runs_.empty(); }

  /// The values that a reduction begins with, and the memory of those that it leaves. A later
  /// reduction of the same step begins with what the one before has left: both are then the same.
  struct Change {
    const float *from;
    float *to;
  };
  Change change(int64_t run);
  /// The values that a reduction leaves, as a copy of those that it begins with.
  float *edit(int64_t run);

  /// `keep`: what the step leaves is what the next begins with. `initial`: these are values as
  /// forget() leaves them.
  void end_step(bool keep, bool initial);
  /// Gradients are multiplied by a loss scale, and values with them.
  void follow_loss_scale(double scale);
  /// All become zero.
  void forget();

  /// @name Between steps
  /// @{
  /// All are as forget() leaves them, on all ranks alike.
  bool initial() const { return initial_; }
  /// That of the gradients that the values belong to.
  double loss_scale() const { return scale_; }
  /// Parts were written, for gradients with this loss scale.
  void note_written(double loss_scale);
  int64_t count(int64_t run) const { return runs_[static_cast<size_t>(run)].count; }
  float *values(int64_t run) const { return runs_[static_cast<size_t>(run)].now; }
  /// The values of a tensor, if runs begin with this rank's cut of their buckets.
  CarriedPart of_own_cut(const Plan &plan, int64_t id) const;
  /// @}

 protected:
  /// `first`: the place of the first element in its run.
  CarriedPart part(int64_t run, Range elements, int64_t first) const;

 private:
  struct Run {
    int64_t count = 0;
    float *now = nullptr;
    float *next = nullptr;
    bool changed = false;  ///< in this step
  };

  std::vector<Run> runs_;
  double scale_ = 1;
  bool initial_ = true;
};

}  // namespace zero
