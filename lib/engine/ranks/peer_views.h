/// @file PeerViews: the addresses of one arena of every rank, as far as this rank can address it.
/// Knows no contents.
#pragma once

#include "core/mapping.h"
#include "group/group.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace zero {

class PeerViews {
 public:
  /// A collective. Every rank passes an arena (nullptr: none); views keep all of them alive.
  Task open(Group &group, std::shared_ptr<Mapping> mine);
  void close();

  /// True when this rank can address the arena of every rank. Depends on the transport alone, so it
  /// is the same on all ranks.
  bool reach_all() const;
  /// The address at which the arena of `rank` begins.
  std::byte *base(int64_t rank) const { return peers_[static_cast<size_t>(rank)].mapping->data(); }
  /// The address in the arena of `rank` that corresponds to `address` in this rank's arena. All
  /// ranks must lay out their arenas alike.
  std::byte *at(int64_t rank, const std::byte *address) const;

 private:
  std::shared_ptr<Mapping> mine_;
  std::vector<PeerMemory> peers_;
};

}  // namespace zero
