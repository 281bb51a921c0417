/// @file TcpMessages: messages of a group over sockets. Knows nothing of rounds.
#pragma once

#include "group/tcp/tcp_mesh.h"
#include "group/transport.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace zero {

class TcpTransport;

/// Frames that have come and are not used yet, in order. A peer waits for this rank before it sends
/// more than a few: for these there is room from the beginning.
class TcpFrames {
 public:
  explicit TcpFrames(size_t most) : most_(most) { frames_.reserve(most); }
  bool empty() const { return frames_.empty(); }
  size_t size() const { return frames_.size(); }
  TcpFrame &operator[](size_t index) { return frames_[index]; }
  /// False when it is one too many.
  bool keep(TcpFrame &&frame);
  /// Drops the first of them.
  void drop(size_t count) { frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(count)); }
  int64_t nbytes() const;

 private:
  size_t most_;
  std::vector<TcpFrame> frames_;
};

class TcpMessages final : public Messages {
 public:
  TcpMessages(TcpTransport &group, int64_t size) : group_(group), ways_(static_cast<size_t>(size)) {}
  TcpMessages(const TcpMessages &) = delete;

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

  // Under the lock of the mesh.
  /// False when the peer would send no such frame.
  bool on_frame(int64_t peer, TcpFrame &&frame);
  int64_t staging_nbytes() const;

 private:
  /// A notice and the chunks under way, and the next notice.
  static constexpr size_t kMostFrames = 8;

  /// A message to or from a peer. Both sides announce it, so both compare, and the data sets out
  /// only when it is wanted.
  struct Moving {
    Fingerprint fingerprint;
    std::byte *data = nullptr;
    int64_t nbytes = 0;
    bool active = false;
    bool met = false;
    int64_t sent_nbytes = 0;
    int64_t taken_nbytes = 0;
    bool complete() const { return met && taken_nbytes == nbytes; }
  };
  struct Way {
    TcpFrames replies{kMostFrames};  ///< request, taken
    TcpFrames coming{kMostFrames};   ///< offer, chunk
    Moving sending;                  ///< its data is only read
    Moving receiving;
  };

  Way &at(int64_t peer) { return ways_[static_cast<size_t>(peer)]; }
  Status check_way(int64_t peer) const;
  Status move_send(int64_t peer);
  void send_chunks(int64_t peer);
  Status take_reply(int64_t peer, const TcpFrame &frame);
  Status move_recv(int64_t peer);
  Status take_coming(int64_t peer, const TcpFrame &frame);

  TcpTransport &group_;
  std::vector<Way> ways_;  ///< by peer
};

}  // namespace zero
