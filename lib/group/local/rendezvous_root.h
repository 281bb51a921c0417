/// @file The root of a meeting: the first rank collects the contributions of the others and sends
/// them all to everyone. Knows nothing of its selection.
#pragma once

#include "core/task.h"
#include "group/local/rendezvous.h"

#include <deque>

namespace zero {

/// Sends the other end of a socket the reason why there is no meeting. A rank sends it to its root,
/// and a root to all ranks.
void refuse(const Status &cause, int socket, int64_t rank = 0, int64_t size = 0);

class RendezvousRoot final : public Waitable {
 public:
  /// `mine` and `terms` must outlive the root; mine is moved into the result on success.
  RendezvousRoot(OwnedFd listener, const MeetingTerms &terms, Joiner *mine, std::vector<Joiner> *out);
  /// Ready when all ranks have been sent the table.
  Status poll(bool *out_ready) override;

 private:
  struct Client {
    OwnedFd socket;
    PeerIdentity identity;
    Joiner joiner;
    int64_t next_entry = 0;  ///< first rank whose entry was not yet sent to this client
    bool joined() const { return socket.valid(); }
  };

  std::string too_few() const;
  Status check_room();
  Status collect();
  void forget_gone();
  Status accept_new();
  Status receive_from_new();
  Status admit(OwnedFd *socket, PeerIdentity identity, Packet packet);
  Status check_refusal(const Packet &packet) const;
  Status check_terms(const PeerIdentity &identity, const PacketHeader &hello) const;
  Status send_tables(bool *out_done);
  Status refuse_all(const Status &cause);
  std::string missing_ranks() const;
  Status finish(bool *out_ready);

  OwnedFd listener_;
  const MeetingTerms &terms_;
  Joiner *mine_;
  std::vector<Joiner> *out_;
  std::vector<Client> clients_;  ///< by rank; the root's own stays empty
  int64_t joined_ = 1;
  /// Descriptors for all ranks were checked, with success or not.
  bool has_room_ = false;
  /// Connections that have not sent a hello.
  std::deque<std::pair<OwnedFd, PeerIdentity>> strangers_;
};

}  // namespace zero
