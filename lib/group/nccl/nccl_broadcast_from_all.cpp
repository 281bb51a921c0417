/// @file Pieces that each rank offers to all others, moved by broadcasts or one all-gather.
#include "group/nccl/nccl_broadcast_from_all.h"

namespace zero {

bool NcclBroadcastFromAll::possible() const {
  const Offer &mine = offers_[other()];
  for (size_t peer = 0; peer < offers_.size(); ++peer) {
    const Offer &offer = offers_[peer];
    if (peer == rank_) continue;
    if (offer.data != mine.data || offer.nbytes != mine.nbytes || offer.rest_nbytes != mine.rest_nbytes) return false;
    if (nbytes_of(peer) > 0 && arrivals_[peer].place == nullptr) return false;
  }
  return true;
}

bool NcclBroadcastFromAll::in_order() const {
  const int64_t nbytes = nbytes_of(0);
  for (size_t peer = 0; peer < offers_.size(); ++peer) {
    if (nbytes_of(peer) != nbytes || place_of(peer) != place_of(0) + static_cast<int64_t>(peer) * nbytes) return false;
  }
  return nbytes > 0;
}

void NcclBroadcastFromAll::list_moves(bool all_in_order, std::vector<zero_nccl_move> &moves) const {
  moves.clear();
  if (all_in_order) {
    moves.push_back({place_of(0), nbytes_of(0), static_cast<int64_t>(rank_), ZERO_NCCL_GATHER});
    return;
  }
  for (size_t peer = 0; peer < offers_.size(); ++peer) {
    if (nbytes_of(peer) > 0) moves.push_back({place_of(peer), nbytes_of(peer), static_cast<int64_t>(peer), ZERO_NCCL_BROADCAST});
  }
}

int64_t NcclBroadcastFromAll::nbytes_of(size_t rank) const {
  if (rank == rank_) return offers_[other()].nbytes + offers_[other()].rest_nbytes;
  return arrivals_[rank].nbytes + arrivals_[rank].rest_nbytes;
}

std::byte *NcclBroadcastFromAll::place_of(size_t rank) const {
  if (rank == rank_) return static_cast<std::byte *>(const_cast<void *>(offers_[other()].data));
  return static_cast<std::byte *>(arrivals_[rank].place);
}

}  // namespace zero
