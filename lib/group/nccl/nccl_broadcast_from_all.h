/// @file NcclBroadcastFromAll: rounds in which each rank offers one piece to all others, which NCCL has its own ways for. Knows where pieces lie and
/// go on one rank; never who offers what elsewhere.
#pragma once

#include "group/module/zero_nccl_module.h"
#include "group/transport.h"

#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// Of a round of two ranks or more. What is given must outlive it.
class NcclBroadcastFromAll {
 public:
  NcclBroadcastFromAll(std::span<const Offer> offers, std::span<const Arrival> arrivals, int64_t rank)
      : offers_(offers), arrivals_(arrivals), rank_(static_cast<size_t>(rank)) {}

  /// This rank offers all others the same, and has a place for all that it awaits.
  bool possible() const;
  /// And all pieces, this rank's where it is offered, are of one length and lie end to end, rank after rank.
  bool in_order() const;

  /// Pieces with their rests, each to or from its place, in the order of ranks; where those of all ranks are in order, one move.
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
