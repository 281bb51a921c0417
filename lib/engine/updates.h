/// @file Updates: the pieces of parameters that this rank updates, and the update of all of them. Knows kernels and slots; never gradients'
/// ways or votes.
#pragma once

#include "core/task.h"
#include "engine/host_kernels.h"
#include "engine/hyper_set.h"
#include "engine/params.h"
#include "engine/plan.h"
#include "engine/settings.h"
#include "engine/slot_memory.h"
#include "group/group.h"
#include "kernels/update.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// What a step tells its update.
struct StepScalars {
  int64_t step;                      ///< from 1
  float grad_factor;                 ///< unscales and clips
  std::span<const int64_t> touched;  ///< by parameter: ranks that filled it; empty: all count as filled
};

class Updates {
 public:
  Updates(const Plan &plan, const Settings &settings, const SlotMemory &slots, const Params &params, const HostKernels &kernels,
          const std::vector<HyperSet> &sets)
      : plan_(plan), settings_(settings), slots_(slots), params_(params), kernels_(kernels), sets_(sets) {}

  /// `all`: this rank updates everything, not only its cuts. `formats` are those of the plan's spaces.
  void build(std::span<const Format> formats, bool all);
  void clear() { pieces_.clear(); }
  /// Gives states the values they have before the first step.
  void begin_states() const;

  /// Updates all pieces. A collective over `group` where an algorithm needs norms of whole tensors.
  Task run(Group &group, StepScalars step);

 private:
  struct Piece {
    int64_t param;   ///< the first that lies in it, and the only one where tensors are told apart
    int64_t set;
    kernels::Piece slots;
  };

  void add_bucket(int64_t index, const Format &format, bool all);
  kernels::Piece slots_of(int64_t index, const Format &format, Range range) const;
  kernels::UpdateScalars scalars_of(const Piece &piece, const StepScalars &step) const;
  bool skips(const Piece &piece, const StepScalars &step) const;
  void update_elementwise(const StepScalars &step);

  const Plan &plan_;
  const Settings &settings_;
  const SlotMemory &slots_;
  const Params &params_;
  const HostKernels &kernels_;
  const std::vector<HyperSet> &sets_;
  std::vector<Piece> pieces_;
};

}  // namespace zero
