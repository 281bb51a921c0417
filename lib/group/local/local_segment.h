/// @file The memory that a rank of a local group shares with its peers: its identity, progress,
/// mailboxes and staging memory. Layout only; never knows the order of accesses.
#pragma once

#include "core/doorbell.h"
#include "core/mapping.h"
#include "core/partition.h"
#include "group/fingerprint.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace zero {

inline constexpr size_t kCacheLine = 64;
/// Size of the staging memory for one slot of point-to-point messages. That of all peers together
/// is at most that for rounds, so that a group with little staging memory does not use more for
/// messages.
constexpr int64_t message_chunk_nbytes(int64_t size, int64_t round_nbytes) {
  const int64_t share = std::max<int64_t>(round_nbytes / size, 4096);
  return std::min<int64_t>(64 * 1024, round_up(std::min(round_nbytes, share), 64));
}

/// The reason a group has failed, written once.
class PoisonRecord {
 public:
  /// Keeps the first cause.
  void write(const Status &cause);
  /// Marks the group as failed, before the cause is written. Returns true if no other rank has done
  /// so before.
  bool begin();
  bool begun() const { return state_.load(std::memory_order_acquire) != 0; }
  /// Waits at most kMostWaitMs for the rank that called begin(). Continues without the cause if
  /// that rank ended or stopped before it wrote one.
  Status read() const;

 private:
  static constexpr int64_t kMostWaitMs = 100;
  static constexpr uint32_t kWriting = 1;
  static constexpr uint32_t kWritten = 2;
  std::atomic<uint32_t> state_{0};
  int32_t code_ = 0;
  char text_[1016] = {};
};

/// The current or last operation of a rank, in one word, so that it is never torn.
class PeerProgress {
 public:
  struct View {
    uint64_t sequence = 0;
    OperationKind kind = OperationKind::barrier;
    Caller caller = Caller::group;
    bool inside = false;
    bool never() const { return sequence == 0; }
  };
  void enter(const Fingerprint &fingerprint) {
    const uint64_t what = static_cast<uint64_t>(fingerprint.caller) << 8 | static_cast<uint64_t>(fingerprint.kind);
    word_.store(fingerprint.sequence << 17 | what << 1 | 1, std::memory_order_release);
  }
  void leave() { word_.store(word_.load(std::memory_order_relaxed) & ~uint64_t{1}, std::memory_order_release); }
  View view() const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    return {word >> 17, static_cast<OperationKind>(word >> 1 & 0xff), static_cast<Caller>(word >> 9 & 0xff), (word & 1) != 0};
  }

 private:
  std::atomic<uint64_t> word_{0};
};

enum class MessageKind : uint16_t { none, small, staged, arena };

/// One message to one peer. Owned by the writer until it is posted, by the reader until it is
/// taken.
struct alignas(kCacheLine) Message {
  static constexpr int64_t kSmallBytes = 88;

  Fingerprint fingerprint;
  MessageKind kind = MessageKind::none;
  uint16_t rest_is_there = 0;
  uint32_t has_fingerprint = 0;
  int64_t nbytes = 0;
  int64_t offset = 0;       ///< staged: offset in the writer's segment; arena: in the mapping
  uint64_t mapping_id = 0;  ///< arena
  uint64_t withdrawn = 0;   ///< id of a mapping that its owner has withdrawn; 0: none
  std::array<std::byte, kSmallBytes> payload;
};
static_assert(sizeof(Message) == 192);

/// Messages from a segment's owner to one peer, numbered from 0. Message n is in slot n % 2.
struct Mailbox {
  alignas(kCacheLine) std::atomic<uint64_t> posted;  ///< by the owner
  alignas(kCacheLine) std::atomic<uint64_t> taken;   ///< by the peer
  Message slots[2];
};

enum class Lane : int64_t { rounds = 0, messages = 1 };

/// A rank's contribution to a derived object, for ranks that are threads of its process.
struct Bringing {
  /// Key of the object, 0: none yet. The other members are written before it.
  std::atomic<uint64_t> key;
  std::atomic<uint64_t> mapping_id;  ///< 0: nothing
  /// Identity of a new group; that of its first rank is used.
  std::atomic<uint64_t> identity;
};

struct SegmentHeader {
  static constexpr uint64_t kClosed = uint64_t{1} << 63;  ///< in `entries`

  Doorbell bell;  ///< rung to wake the owner
  /// 1 + the peer for which the owner waits before it looks at others.
  std::atomic<uint64_t> awaited;
  /// Derived objects to which this rank is attached, this group included.
  alignas(kCacheLine) std::atomic<uint64_t> joined;
  std::atomic<uint32_t> left;  ///< the owner does not use the group any more
  /// Number of events for which the owner must look at all peers.
  std::atomic<uint32_t> news;
  /// The cores that the owner may use: usable_cores_key().
  std::atomic<uint64_t> cores_key;
  Bringing bringing;
  /// Progress in this group; on a separate cache line from words that waiting peers read.
  alignas(kCacheLine) PeerProgress progress;
  /// Identity of the group, among those that descend from this one, of the owner's last operation.
  std::atomic<uint64_t> elsewhere_group;
  /// The owner's last operation there.
  PeerProgress elsewhere;
  /// The message for which the owner waits; the last one of several.
  PeerProgress message;
  /// The rank that sends or receives that message, as error texts name it.
  std::atomic<int64_t> message_peer;
  alignas(kCacheLine) PoisonRecord poison;
  /// Number of times that peers have entered the owner's shared memory in order to write there.
  alignas(kCacheLine) std::atomic<uint64_t> entries;
};

/// A segment as mapped by this process. Zeroed memory is a valid segment.
class Segment {
 public:
  Segment() = default;
  Segment(std::shared_ptr<Mapping> mapping, int64_t size, int64_t round_nbytes)
      : mapping_(std::move(mapping)),
        size_(size),
        half_nbytes_(half_nbytes(size, round_nbytes)),
        chunk_nbytes_(message_chunk_nbytes(size, round_nbytes)) {}

  /// Staging halves have space for the alignment of every piece.
  static int64_t half_nbytes(int64_t size, int64_t round_nbytes) {
    constexpr auto kLineNbytes = static_cast<int64_t>(kCacheLine);
    return size > 1 ? round_up(round_nbytes, kLineNbytes) + size * kLineNbytes : 0;
  }
  static int64_t nbytes(int64_t size, int64_t round_nbytes) { return staging_offset(size) + staging_nbytes(size, round_nbytes); }
  static int64_t staging_nbytes(int64_t size, int64_t round_nbytes) {
    return size > 1 ? 2 * half_nbytes(size, round_nbytes) + size * 2 * message_chunk_nbytes(size, round_nbytes) : 0;
  }

  const std::shared_ptr<Mapping> &mapping() const { return mapping_; }
  SegmentHeader &header() const { return *reinterpret_cast<SegmentHeader *>(mapping_->data()); }
  Mailbox &mailbox(int64_t peer, Lane lane) const {
    const int64_t index = static_cast<int64_t>(lane) * size_ + peer;
    return *reinterpret_cast<Mailbox *>(mapping_->data() + mailboxes_offset() + index * static_cast<int64_t>(sizeof(Mailbox)));
  }

  /// Offsets in the mapping.
  int64_t half_offset(uint64_t half) const { return staging_offset(size_) + static_cast<int64_t>(half) * half_nbytes_; }
  int64_t chunk_offset(int64_t peer, uint64_t slot) const {
    return half_offset(2) + (peer * 2 + static_cast<int64_t>(slot)) * chunk_nbytes_;
  }
  std::byte *at(int64_t offset) const { return mapping_->data() + offset; }

 private:
  static constexpr int64_t mailboxes_offset() { return round_up(sizeof(SegmentHeader), kPageNbytes); }
  static int64_t staging_offset(int64_t size) {
    return mailboxes_offset() + round_up(2 * size * static_cast<int64_t>(sizeof(Mailbox)), kPageNbytes);
  }

  static constexpr int64_t kPageNbytes = 4096;

  std::shared_ptr<Mapping> mapping_;
  int64_t size_ = 0;
  int64_t half_nbytes_ = 0;
  int64_t chunk_nbytes_ = 0;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace zero
