/// @file LocalMappings: the mappings that the ranks of a local group share: own ones, in which
/// peers read offers where they lie, and those of peers. Knows nothing of how ranks meet.
#pragma once

#include "group/local/local_peers.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace zero {

/// Any thread.
class LocalMappings {
 public:
  explicit LocalMappings(const LocalPeers &peers) : peers_(peers) {}
  LocalMappings(const LocalMappings &) = delete;

  /// An own mapping that all peers have attached.
  void offer(const Mapping &mapping);
  /// No longer. Peers hold it until a round tells them.
  void withdraw(const Mapping &mapping);
  /// The id of a mapping that was withdrawn and that no peer has been told of; 0: none.
  uint64_t take_withdrawn();
  bool find_offered(const void *data, int64_t nbytes, uint64_t *out_id, int64_t *out_offset) const;

  /// A mapping of a peer, until it is forgotten.
  void hold(int64_t peer, std::shared_ptr<Mapping> mapping);
  void forget(int64_t peer, uint64_t mapping_id);
  /// The address here of what a peer's message is about, with a rest behind it; nullptr for a
  /// message without bytes.
  Status resolve(int64_t peer, const Message &message, int64_t rest_nbytes, const void **out_data) const;

 private:
  struct Offered {
    const std::byte *begin;
    int64_t nbytes;
    uint64_t id;
  };

  const LocalPeers &peers_;
  mutable std::mutex mutex_;
  std::vector<Offered> offered_;
  /// By peer: what it shares, held until it withdraws it.
  std::vector<std::vector<std::shared_ptr<Mapping>>> attached_;
  std::vector<uint64_t> withdrawn_;     ///< own mappings whose withdrawal peers have not been told
  std::atomic<bool> withdraws_{false};  ///< there are some
};

}  // namespace zero
