/// @file The root of a meeting: the rank that came first collects what the others bring and sends everybody the whole.
/// Knows nothing of how it became the root.
#pragma once

#include "core/task.h"
#include "group/local/rendezvous.h"

#include <deque>

namespace zero {

/// Tells the other end of a socket that there will be no meeting, and why; a rank tells it to its root, a root to all.
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
    int64_t next_entry = 0;  ///< first rank whose entry was not sent to this client yet
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
  bool has_room_ = false;  ///< for all to meet; or it was found out that there is none
  std::deque<std::pair<OwnedFd, PeerIdentity>> strangers_;  ///< connections that have not said hello
};

}  // namespace zero
