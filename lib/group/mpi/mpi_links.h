/// @file MpiLinks: a group's numbered message streams to its peers. Knows members and sent
/// messages, nothing of rounds.
#pragma once

#include "group/mpi/mpi_root.h"

#include <memory>
#include <vector>

namespace zero {

/// Everything but the constructor and the plain getters needs the root's lock.
class MpiLinks {
 public:
  /// members[r] is the rank in the root of the group's rank r.
  MpiLinks(std::shared_ptr<MpiRoot> root, int64_t number, std::vector<int64_t> members, int64_t rank);

  MpiRoot &root() const { return *root_; }
  const std::shared_ptr<MpiRoot> &shared_root() const { return root_; }
  int64_t number() const { return number_; }
  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(members_.size()); }
  const std::vector<int64_t> &members() const { return members_; }

  Status send(int64_t peer, MpiStream stream, const void *data, int64_t nbytes, MpiRequest *request);
  Status recv(int64_t peer, MpiStream stream, void *data, int64_t nbytes, MpiRequest *request);
  /// Tests an active receive. Returns ZERO_E_PEER_LEFT if the peer has left without sending it.
  Status test_recv(int64_t peer, MpiStream stream, MpiRequest *request, bool *out_arrived);

  /// Sends to every peer that has not left.
  void send_to_all(const MpiControl &message);
  void tell(int64_t peer, const MpiControl &message);
  /// Reports to every peer that this rank leaves, and how many messages it has sent.
  void tell_left();
  void note_left(int64_t peer, const MpiControl &message);
  bool has_left(int64_t peer) const { return at(peer).left; }
  /// Returns ZERO_E_PEER_LEFT if the peer has left.
  Status check_present(int64_t peer) const;
  /// Returns -1 if the root's rank is no member.
  int64_t rank_of(int64_t root_rank) const;

 private:
  using Counts = std::array<int64_t, kMpiStreams>;
  struct Peer {
    bool left = false;
    Counts sent{};
    Counts received{};
    Counts sent_by_leaver{};
  };
  Peer &at(int64_t peer) { return peers_[static_cast<size_t>(peer)]; }
  const Peer &at(int64_t peer) const { return peers_[static_cast<size_t>(peer)]; }

  const std::shared_ptr<MpiRoot> root_;
  const int64_t number_;
  const std::vector<int64_t> members_;
  const int64_t rank_;
  std::vector<Peer> peers_;
};

}  // namespace zero
