/// @file Settings: the values that an optimizer read from its config at creation. Knows the keys;
/// never the group's collectives.
#pragma once

#include "core/config.h"
#include "core/status.h"
#include "engine/config/precision.h"
#include "kernels/coded_lines.h"
#include "kernels/kernels.h"

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

class Group;

/// Ranks that hold one replica of the model, and when replicas are brought together.
struct ReplicaSettings {
  int64_t ranks;  ///< per replica
  int64_t count;  ///< replicas
  /// Steps from one synchronisation to the next; 1: gradients are summed over all replicas.
  int64_t period;
  int64_t after;  ///< steps before which the period is 1
  int64_t fragments;  ///< parts of the model that are brought together in turn
  int64_t delay;      ///< steps from the values that are exchanged to the use of the result
  double outer_lr;
  double outer_momentum;
  double mix;                       ///< weight of a replica's own values beside the result
  const kernels::Coder *grad_code;  ///< codes sums of gradients between replicas; nullptr: fp32
  const kernels::Coder *sync_code;  ///< codes changes of parameters; nullptr: fp32
  int64_t low_rank;                 ///< rank of factors of gradients; 0: they have none
  int64_t code_top;                 ///< values of a line that ZERO_CODE_TOP keeps
  int64_t code_after;               ///< steps before which nothing is coded
  double code_momentum;             ///< that gradients get before they are coded; 0: none
  bool code_freeze;                 ///< coded gradients carry first moments, and second ones stay
  bool ring;                        ///< periods end with means over neighbours
  bool residual;                    ///< coding losses of gradients are added to later gradients
  /// Steps between two that send all coded values in full; 0: no step does.
  int64_t flush_period;

  bool any() const { return count > 1; }
  /// Replicas make steps of their own, so that what they had in common is kept.
  bool part() const { return period > 1; }
  /// Sums of gradients travel in another form than fp32, by grad_code or low_rank.
  bool codes_grads() const { return grad_code != nullptr || low_rank > 0; }
  /// False in the warm-up, in which nothing is coded.
  bool codes(int64_t calls) const { return calls >= code_after; }
  /// True if the step after `calls` sends gradients and parameters in full that are otherwise
  /// coded. Such steps are those of the warm-up, each flush, and the last step before replicas
  /// part, because later steps could not send its coding losses.
  bool in_full(int64_t calls) const {
    return !codes(calls) || (flush_period > 0 && (calls + 1) % flush_period == 0) || (part() && calls + 1 == after);
  }
  /// Gradients of some steps are summed over all replicas.
  bool sum_gradients() const { return any() && (period == 1 || after > 0); }
};

/// How gradients of a step are bounded: by global norm, or by value; 0 = not.
struct Clipping {
  double norm;
  double value;
};

/// Ranges of the flat space that are reduced and gathered together.
struct BucketSettings {
  int64_t nbytes;      ///< 0: as the layout chooses
  int64_t pool_limit;  ///< bytes of buckets that wait for their reduction; 0 = no limit
};

/// How ranks get whole parameters.
struct GatherSettings {
  int64_t below;  ///< elements; smaller parameters stay whole in stage 3
  bool one_copy;  ///< ranks of a host keep one copy of whole parameters
  /// Code of the differences by which parameters follow their masters; nullptr: parameters are
  /// gathered themselves.
  const kernels::Coder *code;
  /// Stage 3: consecutive ranks over which parameters are sharded; 0: those over which states are.
  int64_t param_ranks;
  int64_t ahead_nbytes;  ///< gathered ahead in stage 3
  bool ahead_follows;    ///< at most what the layout chooses
};

/// How updates round their results.
struct Rounding {
  bool stochastic;
  uint64_t seed;
};

/// Records and comparisons made during training.
struct Monitoring {
  int64_t verify_every;  ///< steps; 0 = never
  int64_t trace_events;  ///< kept; 0 = no trace
};

/// Memory of the host.
struct MemorySettings {
  int64_t limit;  ///< bytes for all ranks of a host together; 0 = the available memory
  AllocatorHook hook;
};

struct Settings {
  int64_t stage;
  bool trains;                          ///< false: algorithm "none", parameters only
  const kernels::Algorithm *algorithm;  ///< used by set 0; nullptr: the caller's own, or none
  int64_t custom_slots;
  Precision precision;
  BucketSettings buckets;
  int64_t divisor;  ///< a zero_divisor
  bool skips_nonfinite;
  bool grad_norm;  ///< asked for, or needed to clip
  Clipping clipping;
  Rounding rounding;
  bool leaves_unfilled;  ///< parameters that no rank filled stay untouched
  bool accumulates_in_f32;
  bool average;
  GatherSettings gathers;
  bool overlap;
  bool delays_grads;  ///< each step applies the gradients given before the step before it
  Monitoring monitoring;
  int64_t device;  ///< device that may hold gradients and parameters of the caller; -1 = host only
  bool on_device;  ///< the optimizer keeps its memory there too
  MemorySettings memory;
  ReplicaSettings replicas;
  std::string strategy;                ///< its name and its keys; "": none was named
  std::vector<int64_t> shard_weights;  ///< one per rank of a replica

  /// Ranks give their gradients weights.
  bool weighted() const { return divisor == ZERO_DIVISOR_WEIGHTS; }
  const char *algorithm_name() const { return algorithm != nullptr ? algorithm->name : trains ? "custom" : "none"; }
  /// True if a thread may advance collectives over `group` while the caller works.
  bool overlaps_in(const Group &group) const;
  /// Everything that must be the same on all ranks but for hyper-parameters and parameters, one
  /// line each.
  std::string text() const;
  /// The settings that must be the same in the whole model group, one line each.
  std::string model_text() const;
};

/// Finds the algorithm that a config names; nullptr for "custom" and "none".
Status read_algorithm(const Config &config, const kernels::Algorithm **out);

/// The position of a rank among the ranks of an optimizer.
struct RankPlace {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;
  int64_t local_size = 1;
};

/// Reads the config of an optimizer. `place`: that of this rank.
Status read_settings(const Config &config, const RankPlace &place, Settings *out);

}  // namespace zero
