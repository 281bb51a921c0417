/// @file LocalMessages: messages between two ranks of a local group. Knows nothing of rounds.
#pragma once

#include "core/peer_copy.h"
#include "group/local/local_mappings.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace zero {

class LocalMessages final : public Messages {
 public:
  LocalMessages(LocalPeers &peers, const LocalMappings &mappings) : peers_(peers), mappings_(mappings) {}
  LocalMessages(const LocalMessages &) = delete;

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

 private:
  struct Moving {
    Fingerprint fingerprint;
    std::byte *data = nullptr;
    int64_t nbytes = 0;
    int64_t moved_nbytes = 0;  ///< posted or taken
    bool announced = false;
  };
  /// To and from a peer. Most groups carry none.
  struct Way {
    Moving sending;  ///< its data is only read
    PeerCopy chunk_copy;
    Moving receiving;
  };

  Status make_ways();
  Way &way(int64_t peer) { return ways_[static_cast<size_t>(peer)]; }
  void post_chunk(int64_t peer, Mailbox &mailbox, uint64_t index);
  Status take_chunk(int64_t peer, Moving &receiving, const Message &message);
  long long name_of(int64_t rank) const { return peers_.name_of(rank); }

  LocalPeers &peers_;
  const LocalMappings &mappings_;
  std::once_flag ways_made_;
  std::vector<Way> ways_;  ///< by peer, from the first message on
};

}  // namespace zero
