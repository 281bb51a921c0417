/// @file PeerViews: where one arena lies in the memory of every rank, as far as this rank can address it. Knows no contents.
#pragma once

#include "core/mapping.h"
#include "group/group.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace zero {

class PeerViews {
 public:
  /// A collective. Every rank brings an arena (nullptr: none); views keep all of them alive.
  Task open(Group &group, std::shared_ptr<Mapping> mine);
  void close();

  /// True when this rank can address the arena of every rank. Depends on the transport alone, so it is the same on all ranks.
  bool reach_all() const;
  /// Where the arena of `rank` begins.
  std::byte *base(int64_t rank) const { return peers_[static_cast<size_t>(rank)].mapping->data(); }
  /// Where `rank` has what lies at `address` of this rank's arena. For arenas that all ranks lay out alike.
  std::byte *at(int64_t rank, const std::byte *address) const;

 private:
  std::shared_ptr<Mapping> mine_;
  std::vector<PeerMemory> peers_;
};

}  // namespace zero
