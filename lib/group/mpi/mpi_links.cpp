/// @file Sending and receiving on a group's streams. Distinguishes a peer that left from one that
/// is late.
#include "group/mpi/mpi_links.h"

#include <algorithm>
#include <utility>

namespace zero {

MpiLinks::MpiLinks(std::shared_ptr<MpiRoot> root, int64_t number, std::vector<int64_t> members, int64_t rank)
    : root_(std::move(root)), number_(number), members_(std::move(members)), rank_(rank), peers_(members_.size()) {}

Status MpiLinks::send(int64_t peer, MpiStream stream, const void *data, int64_t nbytes, MpiRequest *request) {
  ZERO_TRY(root_->send(data, nbytes, members_[static_cast<size_t>(peer)], MpiRoot::tag_of(number_, stream), request));
  ++at(peer).sent[stream];
  return {};
}

Status MpiLinks::recv(int64_t peer, MpiStream stream, void *data, int64_t nbytes, MpiRequest *request) {
  return root_->recv(data, nbytes, members_[static_cast<size_t>(peer)], MpiRoot::tag_of(number_, stream), request);
}

Status MpiLinks::test_recv(int64_t peer, MpiStream stream, MpiRequest *request, bool *out_arrived) {
  Peer &state = at(peer);
  ZERO_TRY(root_->test(request));
  *out_arrived = !request->active;
  if (*out_arrived) {
    ++state.received[stream];
    return {};
  }
  return state.received[stream] < state.sent_by_leaver[stream] ? Status() : check_present(peer);
}

Status MpiLinks::check_present(int64_t peer) const {
  ZERO_CHECK(!at(peer).left, ZERO_E_PEER_LEFT, "rank %lld released its group or optimizer while rank %lld waited for it", lld(peer),
             lld(rank_));
  return {};
}

void MpiLinks::tell(int64_t peer, const MpiControl &message) {
  MpiControl addressed = message;
  addressed.group = number_;
  root_->tell(members_[static_cast<size_t>(peer)], addressed);
}

void MpiLinks::send_to_all(const MpiControl &message) {
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer != rank_ && !has_left(peer)) tell(peer, message);
  }
}

void MpiLinks::tell_left() {
  MpiControl message;
  message.kind = MpiControl::left;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer == rank_ || has_left(peer)) continue;
    message.sent = at(peer).sent;
    tell(peer, message);
  }
}

void MpiLinks::note_left(int64_t peer, const MpiControl &message) {
  at(peer).left = true;
  at(peer).sent_by_leaver = message.sent;
}

int64_t MpiLinks::rank_of(int64_t root_rank) const {
  const auto found = std::find(members_.begin(), members_.end(), root_rank);
  return found != members_.end() ? found - members_.begin() : -1;
}

}  // namespace zero
