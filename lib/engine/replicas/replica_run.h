/// @file ReplicaRun: the state that an optimizer of several replicas keeps from step to step beside
/// the parameters. Knows no collectives.
#pragma once

#include <cstdint>
#include <vector>

namespace zero {

struct ReplicaRun {
  /// Steps that were made before the one under way, or the next one.
  int64_t calls = 0;
  bool together = false;               ///< all replicas make that step together
  bool syncs = false;                  ///< the step under way ends with a synchronisation
  bool synced = false;                 ///< there was one in the newest step, or since
  double spread = 0;                   ///< as it was then
  int64_t stop = 0;                    ///< the largest reason of this replica since the newest one
  std::vector<int64_t> applied_ahead;  ///< by replica: steps that it has applied more than this one
};

}  // namespace zero
