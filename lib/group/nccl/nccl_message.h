/// @file NcclMessage: messages from one rank to another. Memory of a device, and memory of the host
/// that is too long for the transport underneath, moves over a communicator that the two ranks make
/// for this direction alone. Messages of the other direction and rounds therefore never wait for
/// it, nor it for them. Knows one peer; never rounds.
///
/// Steps of a message:
/// 1. The sender announces it over the transport underneath, which compares fingerprints before
/// memory changes. A short message travels with this notice and ends here.
/// 2. It moves piece by piece.
/// 3. The sender adds a last word, which the receiver takes once all data has arrived, so that the
/// sender does not leave earlier.
///
/// If memory of the host and of the device meet on a rank, that rank continues after step 1 only
/// when its caller's stream has reached the message. The sender decides by its own memory and the
/// length, regardless of the receiver's memory.
#pragma once

#include "core/reduction.h"
#include "group/nccl/nccl_comm.h"
#include "group/transport.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace zero {

/// The means by which the messages of a group move. Outlives them.
struct NcclWays {
  NcclWays(Transport &transport, const zero_nccl_table &table, const Reducer &copier, const SideStream &finder)
      : under(transport), nccl(table), reducer(copier), lane(finder) {}

  Transport &under;
  const zero_nccl_table &nccl;
  const Reducer &reducer;
  const SideStream &lane;  ///< for find() alone
  /// Those that wait for NCCL or for a stream, which ring for nothing.
  std::atomic<int64_t> looking_messages{0};
};

/// One message at a time, one thread at a time, but for what says otherwise.
class NcclMessage {
 public:
  enum class Direction { send, recv };
  NcclMessage(NcclWays &ways, Direction direction, int64_t peer);
  NcclMessage(const NcclMessage &) = delete;

  /// `data` is on the device or the host, and only read by a sender.
  Status start(const Fingerprint &fingerprint, void *data, int64_t nbytes);
  Status poll(bool *out_done);
  /// The operation that NCCL has not completed; empty while none is pending.
  std::string progress() const;

  /// The communicator's end, as NcclComm's. No other is made afterwards. Any thread.
  void end(bool in_order);
  bool over();
  bool given_up();
  /// Any thread.
  int64_t staging_nbytes() const { return staged_nbytes_.load(std::memory_order_relaxed); }

 private:
  enum class Phase { idle, telling, catching_up, carrying, connecting, moving, ending };
  static constexpr int64_t kShortNbytes = 2048;

  /// The first word.
  struct Notice {
    int64_t piece_nbytes;  ///< size of pieces that move over NCCL; 0: the message does not
    /// Identifies the communicator, in the first message over NCCL.
    std::byte id[ZERO_NCCL_ID_NBYTES];
    /// A short message not over NCCL; a longer one's notice ends before.
    std::byte short_data[kShortNbytes];
  };

  bool sends() const { return direction_ == Direction::send; }
  bool is_short() const { return nbytes_ <= kShortNbytes; }
  Status start_under(void *data, int64_t nbytes);
  Status poll_under(bool *out_done);

  // In the order in which they come.
  Status fill_notice();
  bool meets_host() const;
  Status catch_up();
  Status poll_catch_up();
  Status take_notice();
  Status take_carried();
  Status connect();
  Status poll_comm();
  int64_t piece_nbytes() const;
  Status begin_piece();
  Status end_piece();
  Status begin_last();

  Status reserve_area(int64_t nbytes);
  void note_staged();

  NcclWays &ways_;
  const Direction direction_;
  const int64_t peer_;
  Notice notice_{};

  // The message under way.
  Phase phase_ = Phase::idle;
  Fingerprint fingerprint_;
  std::byte *data_ = nullptr;
  int64_t nbytes_ = 0;
  int64_t moved_nbytes_ = 0;
  bool on_device_ = false;
  int64_t last_piece_nbytes_ = 0;  ///< piece size of the last message over NCCL

  std::vector<std::byte> carried_;  ///< data received through the host for the device
  /// On the device, for pieces of the host: the last one; those it outgrew stay.
  std::vector<std::shared_ptr<Mapping>> areas_;
  std::atomic<int64_t> staged_nbytes_{0};

  std::mutex ending_mutex_;  ///< guards creation and end of the communicator
  bool ended_ = false;
  std::unique_ptr<NcclComm> comm_;
  std::shared_ptr<SideStream> lane_;  ///< the communicator's, which may be there before it
};

/// The messages of a group: one of each direction per peer.
class NcclMessages final : public Messages {
 public:
  NcclMessages(Transport &under, const zero_nccl_table &nccl, const Reducer &reducer, const SideStream &lane);
  NcclMessages(const NcclMessages &) = delete;

  Status check_thread(int64_t peer) const override { return ways_.under.messages().check_thread(peer); }
  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override {
    return at(OperationKind::send, peer).start(fingerprint, const_cast<void *>(offer.data), offer.nbytes);
  }
  Status send_poll(int64_t peer, bool *out_done) override { return at(OperationKind::send, peer).poll(out_done); }
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override {
    return at(OperationKind::recv, peer).start(fingerprint, data, nbytes);
  }
  Status recv_poll(int64_t peer, bool *out_done) override { return at(OperationKind::recv, peer).poll(out_done); }

  /// True while one waits for NCCL or for a stream. Any thread.
  bool looks() const { return ways_.looking_messages.load(std::memory_order_relaxed) > 0; }
  /// As that of the message `mine`.
  std::string progress(const Fingerprint &mine) const { return at(mine.kind, mine.root).progress(); }
  /// As those of each.
  void end(bool in_order);
  bool over();
  bool given_up();
  int64_t staging_nbytes() const;

 private:
  NcclMessage &at(OperationKind kind, int64_t peer) const;

  NcclWays ways_;
  std::vector<std::unique_ptr<NcclMessage>> all_;  ///< to and from each peer
};

}  // namespace zero
