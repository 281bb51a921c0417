/// @file The hub of a meeting: the rank that came first collects what the others bring and sends everybody the whole.
/// Knows nothing of how it became the hub.
#pragma once

#include "core/clock.h"
#include "core/task.h"
#include "group/local/rendezvous.h"

#include <deque>

namespace zero {

/// What a rank asks of a meeting.
struct MeetingTerms {
  std::string name;
  int64_t rank = 0;
  int64_t size = 1;
  uint64_t agree = 0;
  int64_t deadline_ms = 0;
  Deadline deadline;
  std::vector<int64_t> names = {};  ///< of the ranks, in texts, where ranks of a group meet; empty: they meet by a name of the caller's

  long long name_of(int64_t of) const { return names.empty() ? of : names[static_cast<size_t>(of)]; }
  int32_t late_code() const { return names.empty() ? ZERO_E_RENDEZVOUS : ZERO_E_TIMEOUT; }
  std::string purpose() const { return names.empty() ? "as \"" + name + "\"" : "to share memory or make a group"; }
  const char *advice() const { return names.empty() ? ". Start all ranks with the same name, or raise ZERO_KEY_RENDEZVOUS_MS" : ""; }
};

class Hub final : public Waitable {
 public:
  /// `mine` and `terms` must outlive the hub; mine is moved into the result on success.
  Hub(OwnedFd listener, const MeetingTerms &terms, Joiner *mine, const Watch &watch, std::vector<Joiner> *out);
  /// Ready when all ranks have been sent the table.
  Status poll(bool *out_ready) override;

 private:
  struct Guest {
    OwnedFd socket;
    PeerIdentity identity;
    Joiner joiner;
    int64_t next_entry = 0;  ///< first rank whose entry was not sent to this guest yet
    bool joined() const { return socket.valid(); }
  };

  Status collect();
  void forget_gone();
  Status accept_new();
  Status hear_new();
  Status admit(OwnedFd *socket, PeerIdentity identity, Packet packet);
  Status check_terms(const PeerIdentity &identity, const PacketHeader &hello) const;
  Status send_tables(bool *out_done);
  Status refuse_all(const Status &cause);
  std::string missing_ranks() const;
  Status finish(bool *out_ready);

  OwnedFd listener_;
  const MeetingTerms &terms_;
  Joiner *mine_;
  const Watch &watch_;
  std::vector<Joiner> *out_;
  std::vector<Guest> guests_;  ///< by rank; the hub's own stays empty
  int64_t joined_ = 1;
  std::deque<std::pair<OwnedFd, PeerIdentity>> strangers_;  ///< connections that have not said hello
};

}  // namespace zero
