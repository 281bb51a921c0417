/// @file StepPath: the way that a step takes from gradients to parameters, as three choices. Seal lists the paths that an optimizer may
/// take; each step picks one of them. Knows no collectives and no memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

struct StepPath {
  /// How contributions of all ranks become sums.
  enum class Sum {
    none,        ///< there are no other ranks
    collective,  ///< reduce-scatter, or all-reduce where every rank updates everything
    fused,       ///< within the update, which reads the contributions of all ranks
  };
  /// How ranks get the values that others have updated.
  enum class Publish {
    none,    ///< every rank updates everything, or all see one copy
    direct,  ///< the update writes into the memory of all ranks
    gather,  ///< all-gather, in stage 3 when parameters are acquired
  };
  /// Who finds out whether the step is applied, and with which factor.
  enum class Decide { host, device };

  Sum sum = Sum::none;
  Publish publish = Publish::none;
  Decide decide = Decide::host;
};

/// What decides which paths there are; the same on all ranks.
struct PathFacts {
  bool alone;           ///< a world of one
  bool device_decides;  ///< and its device needs nobody else's word
  bool updates_all;     ///< each rank keeps everything
  bool one_copy;        ///< ranks see one copy of the parameters
  bool writes;          ///< ranks write into one another's memory
  bool fuses;           ///< they read contributions there
  bool trails;          ///< gathers go on behind the step
};

class StepPaths {
 public:
  /// Lists the allowed paths, the best one first.
  void list(const PathFacts &facts);
  /// The first path that a step can take. `whole`: reduce, apply and gather are one call, and no synchronisation of replicas comes between.
  /// `sums_fit`: contributions wait to be summed, and no sum can overflow.
  void pick(bool whole, bool sums_fit);

  const StepPath &now() const { return now_; }
  bool fuses() const { return now_.sum == StepPath::Sum::fused; }
  bool writes() const { return now_.publish == StepPath::Publish::direct; }
  bool device_decides() const { return now_.decide == StepPath::Decide::device; }
  /// Some steps write into the memory of all ranks.
  bool may_write() const { return paths_.front().publish == StepPath::Publish::direct; }

  /// The paths in the order of preference, with the steps that take each.
  std::string text() const;

 private:
  std::string text_of(const StepPath &path) const;

  PathFacts facts_{};
  std::vector<StepPath> paths_ = {StepPath{}};
  StepPath now_;
};

}  // namespace zero
