/// @file NcclBroadcastFromAll: rounds in which each rank offers one piece to all others, for which
/// NCCL has operations of its own. Knows the places of pieces on one rank; never the offers of
/// other ranks.
#pragma once

#include "group/module/zero_nccl_module.h"
#include "group/transport.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// For a round of two ranks or more. All arguments must outlive the object.
class NcclBroadcastFromAll {
 public:
  NcclBroadcastFromAll(std::span<const Offer> offers, std::span<const Arrival> arrivals, int64_t rank)
      : offers_(offers), arrivals_(arrivals), rank_(static_cast<size_t>(rank)) {}

  /// True if this rank offers the same piece to all others, and has a place for each piece that it
  /// awaits.
  bool possible() const;
  /// True if all pieces, this rank's own where it is offered, have one length and are contiguous in
  /// the order of ranks. Requires possible().
  bool in_order() const;

  /// Lists the moves of pieces with their rests, in the order of ranks; a single move if the pieces
  /// of all ranks are in order.
  void list_moves(bool all_in_order, std::vector<zero_nccl_move> &moves) const;

 private:
  size_t other() const { return rank_ == 0 ? 1 : 0; }
  int64_t nbytes_of(size_t rank) const;
  std::byte *place_of(size_t rank) const;

  const std::span<const Offer> offers_;
  const std::span<const Arrival> arrivals_;
  const size_t rank_;
};

}  // namespace zero
