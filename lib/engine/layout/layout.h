/// @file Layout: the formats of registered parameters, and the plan made from them. Pure arithmetic
/// on values that all ranks agree on; knows no memory and no collectives.
#pragma once

#include "engine/config/hyper_set.h"
#include "engine/config/settings.h"
#include "engine/layout/format.h"
#include "engine/layout/params.h"
#include "engine/layout/plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

class Layout {
 public:
  /// All arguments must outlive the object.
  Layout(const Params &params, const Settings &settings, const std::vector<HyperSet> &sets)
      : params_(params), settings_(settings), sets_(sets) {}

  /// Checks that algorithms that update matrices were given matrices.
  Status check_matrices() const;
  /// With ZERO_KEY_CODE_FREEZE, checks that moments of all tensors can be carried and kept.
  Status check_code_freeze() const;
  Status make(int64_t rank);
  /// Drops the formats; keeps the plan.
  void clear();

  const Plan &plan() const { return plan_; }
  /// @name Sizes that were given, or chosen by choose_sizes()
  /// @{
  int64_t bucket_nbytes() const { return bucket_nbytes_; }
  /// Most bytes of parameters gathered ahead in stage 3.
  int64_t prefetch_nbytes() const { return prefetch_nbytes_; }
  /// Most bytes that a round of the optimizer's own groups carries; staging is a few of them.
  int64_t most_round_nbytes() const { return most_round_nbytes_; }
  /// @}
  /// By flat space.
  std::span<const Format> formats() const { return formats_; }
  const Format &format_of(int64_t id) const { return formats_[static_cast<size_t>(spaces_[static_cast<size_t>(id)])]; }
  const Format &format_in(const PlannedBucket &bucket) const { return formats_[static_cast<size_t>(bucket.space)]; }
  bool any_coded() const;
  /// Slots of the parameter and its states; a gradient lives for one step.
  std::vector<SlotFormat> slots_of(int64_t id) const;

 private:
  void make_formats();
  int64_t formula_nbytes() const;
  void choose_sizes();
  void make_plan(int64_t rank);
  double cost_of(int64_t id) const;
  int64_t reduced_rows(const Param &param) const;

  const Params &params_;
  const Settings &settings_;
  const std::vector<HyperSet> &sets_;
  std::vector<Format> formats_;  ///< by flat space
  std::vector<int64_t> spaces_;  ///< by parameter
  int64_t bucket_nbytes_ = 0;
  int64_t prefetch_nbytes_ = 0;
  int64_t most_round_nbytes_ = 0;
  Plan plan_;
};

}  // namespace zero
