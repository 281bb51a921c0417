/// @file StepPath: the path of a step from gradients to parameters, as three choices. Seal lists
/// the paths that an optimizer may use; each step picks one. Knows no collectives and no memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

struct StepPath {
  /// How the contributions of all ranks are summed.
  enum class Sum {
    none,        ///< there are no other ranks
    collective,  ///< reduce-scatter, or all-reduce where every rank updates everything
    fused,       ///< within the update, which reads the contributions of all ranks
  };
  /// How ranks receive values that other ranks have updated.
  enum class Publish {
    none,    ///< every rank updates everything, or all ranks share one copy
    direct,  ///< the update writes into the memory of all ranks
    gather,  ///< all-gather, in stage 3 when parameters are acquired
  };
  /// The side that decides whether the step is applied, and with which factor.
  enum class Decide { host, device };

  Sum sum = Sum::none;
  Publish publish = Publish::none;
  Decide decide = Decide::host;
};

/// Conditions that determine the allowed paths; the same on all ranks.
struct PathFacts {
  bool alone;           ///< a world of one
  bool device_decides;  ///< the device decides steps without words of other ranks
  bool updates_all;     ///< each rank keeps everything
  bool one_copy;        ///< ranks see one copy of the parameters
  bool writes;          ///< ranks write into one another's memory
  bool fuses;           ///< updates read contributions in the memory of other ranks
  bool trails;          ///< gathers continue after the step
};

class StepPaths {
 public:
  /// Lists the allowed paths, the best one first.
  void list(const PathFacts &facts);
  /// Picks the first path that the step can use. `whole`: reduce, apply and gather are one call,
  /// without a synchronisation of replicas in between. `sums_fit`: contributions wait to be summed,
  /// and no sum can overflow.
  void pick(bool whole, bool sums_fit);

  bool fuses() const { return now_.sum == StepPath::Sum::fused; }
  bool writes() const { return now_.publish == StepPath::Publish::direct; }
  bool device_decides() const { return now_.decide == StepPath::Decide::device; }
  /// True if some steps write into the memory of all ranks.
  bool may_write() const { return paths_.front().publish == StepPath::Publish::direct; }

  /// The paths in order of preference, with the steps that use each.
  std::string text() const;

 private:
  std::string text_of(const StepPath &path) const;

  PathFacts facts_{};
  std::vector<StepPath> paths_ = {StepPath{}};
  StepPath now_;
};

}  // namespace zero
