/// @file memory: what a rank keeps for a model.
/// Knows nothing of frameworks.
#pragma once

#include <cstdint>

namespace embedding {

/// Bytes of one rank.
struct Memory {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t states = 0;
  int64_t pools = 0;    ///< gathered parameters and gradients not yet reduced, at most
  int64_t staging = 0;  ///< what passes data between ranks
  int64_t all() const { return parameters + gradients + states + pools + staging; }
};

}  // namespace embedding
