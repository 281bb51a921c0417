/// @file MicroStepState: how far a step has come: its micro-step, its kind, its weights. Knows
/// neither buckets nor values.
#pragma once

#include "core/default_floats.h"
#include "engine/gradients/reductions.h"

#include <zero/optimizer.h>

#include <cstdint>

namespace zero {

/// The fate of a micro-step's gradients: numbers of zero_micro_step.
enum class MicroStep : int32_t {
  last = ZERO_MICRO_STEP_LAST,      ///< reduced; the step follows
  local = ZERO_MICRO_STEP_LOCAL,    ///< added up on this rank
  reduce = ZERO_MICRO_STEP_REDUCE,  ///< reduced and added to the shards
};

struct MicroStepState {
  bool alone = false;   ///< in a world of one nothing is reduced: the slot is the contribution
  bool fuses = false;   ///< contributions may wait in their slots until the update sums them
  bool delays = false;  ///< contributions wait beside their slots, which the step before uses

  // The step:
  bool started = false;       ///< gradients were given or a micro-step was begun
  bool accumulating = false;  ///< arrivals are added to those of earlier micro-steps of this rank
  bool reducing = false;      ///< contributions that waited are being reduced
  int64_t reduced_count = 0;  ///< micro-steps whose sums the shards hold
  double local_weight = 0;    ///< the sum over micro-steps that local sums hold

  // The micro-step:
  MicroStep kind = MicroStep::last;
  int64_t acquired_count = 0;  ///< tensors that are acquired and not yet all ready
  double weight = 1;
  bool weight_set = false;  ///< by the caller
  bool given = false;       ///< gradients of this micro-step were given

  /// Contributions of this step wait to be summed.
  bool late() const { return fuses && kind != MicroStep::reduce && reduced_count == 0; }
  /// Complete buckets are reduced now.
  bool reduces() const { return !alone && kind != MicroStep::local && (!(late() || delays) || reducing); }
  Reductions::Goal goal() const {
    if (kind == MicroStep::reduce) return Reductions::Goal::sum;
    return reduced_count > 0 ? Reductions::Goal::sum_slot : Reductions::Goal::slot;
  }
  double contribution_weight() const {
    const DefaultFloats floats;
    return local_weight + weight;
  }

  void begin_micro_step(MicroStep next) {
    kind = next;
    acquired_count = 0;
    weight = 1;
    weight_set = false;
    given = false;
  }
  void begin_step() { *this = {.alone = alone, .fuses = fuses, .delays = delays}; }
};

}  // namespace zero
