/// @file Sharing an arena, and addresses in its peers.
#include "engine/ranks/peer_views.h"

#include <algorithm>
#include <utility>

namespace zero {

Task PeerViews::open(Group &group, std::shared_ptr<Mapping> mine) {
  mine_ = std::move(mine);
  co_return co_await group.transport().share(mine_, &peers_, group.deadline_ms());
}

void PeerViews::close() {
  peers_.clear();
  mine_.reset();
}

bool PeerViews::reach_all() const {
  return !peers_.empty() && std::all_of(peers_.begin(), peers_.end(), [](const PeerMemory &peer) { return peer.mapping != nullptr; });
}

std::byte *PeerViews::at(int64_t rank, const std::byte *address) const { return base(rank) + (address - mine_->data()); }

}  // namespace zero
