/// @file TcpMesh: the connections of one rank, shared by all transports of one meeting. Every frame
/// has the number of its group, by which the mesh sorts frames. Knows members only by number and
/// interface, and nothing of rounds.
#pragma once

#include "group/peer_status.h"
#include "group/tcp/tcp_meeting.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// The kind of a frame. `offer` and `request` announce a message, from its sender and from its
/// receiver; `taken` reports how many bytes of a chunk the receiver has.
enum class TcpKind : uint32_t { round = 1, offer, request, chunk, taken, poison, left, query, answer };

/// The head of every frame.
struct TcpHead {
  TcpKind kind;
  uint32_t reserved;
  uint64_t group;
};

/// A received frame. The address of content() does not change when the frame is moved.
class TcpFrame {
 public:
  TcpFrame() = default;
  explicit TcpFrame(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  /// True if the frame has a valid head. The other members require that.
  bool valid() const;
  TcpKind kind() const { return head().kind; }
  uint64_t group() const { return head().group; }
  std::span<const std::byte> content() const { return std::span(bytes_).subspan(sizeof(TcpHead)); }
  /// The value at the beginning of the content, which must be at least as long.
  template <class T>
  T begin() const {
    T value;
    std::memcpy(&value, content().data(), sizeof value);
    return value;
  }
  int64_t nbytes() const { return static_cast<int64_t>(bytes_.size()); }
  std::vector<std::byte> take_bytes() { return std::move(bytes_); }

 private:
  TcpHead head() const;

  std::vector<std::byte> bytes_;
};

/// The bytes of a value, as a part of a frame.
template <class T>
std::span<const std::byte> bytes_of(const T &value) {
  return std::as_bytes(std::span(&value, 1));
}

/// A group on the mesh. The mesh calls it with its lock held.
class TcpMember {
 public:
  /// Returns false if no rank of the group would send such a frame; the mesh then closes its
  /// connection. If it throws std::bad_alloc, the frame stays the caller's.
  virtual bool on_frame(int64_t source, TcpFrame &&frame) = 0;
  virtual PeerStatus answer() const = 0;

 protected:
  ~TcpMember() = default;
};

/// A connection that brings an impossible frame is closed and counts as `breached`: a frame without
/// a head, of an unknown kind, of a wrong length, or out of turn. So is one that brings too much
/// for groups that this rank has not made. Frames for groups that no longer exist are ignored.
class TcpMesh {
 public:
  /// peers[r] is rank r of the meeting.
  TcpMesh(std::vector<TcpPeer> peers, int64_t rank);
  TcpMesh(const TcpMesh &) = delete;
  /// Waits a short while until pending frames are sent, then closes the connections in order.
  ~TcpMesh();

  /// Call every member with this lock held, except the constructor, the destructor, mutex(), rank()
  /// and size().
  /// Ranks are those of the meeting.
  std::mutex &mutex() { return mutex_; }
  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(ways_.size()); }

  const TcpPeer &peer(int64_t rank) const { return way(rank).peer; }

  /// none: this rank itself, or a rank of its host.
  enum class State : uint8_t { none, open, ended, breached };
  State state(int64_t rank) const { return way(rank).state; }

  /// Never blocks. Drops the frame if there is no connection or it has ended.
  void send(int64_t rank, TcpKind kind, uint64_t group, std::span<const std::byte> content = {}, std::span<const std::byte> rest = {});
  /// True if the socket has taken all frames for the rank, or never will.
  bool flushed(int64_t rank);
  /// Sends pending frames and sorts received ones. If it throws std::bad_alloc, no
  /// received frame is lost.
  void progress();

  /// Frames that arrived for the group before go to the member at once.
  void enroll(uint64_t number, TcpMember *member);
  /// Frames for the group are ignored from now on.
  void forget(uint64_t number);
  /// Removes a member without allocating. Frames for the group are kept, as for a group that was
  /// never made.
  void drop(uint64_t number) noexcept { members_.erase(number); }
  /// Keeps the memory of a frame that is used up for later frames.
  void give_back(TcpFrame frame) noexcept;

 private:
  struct Way {
    TcpPeer peer;  ///< link is nullptr unless state is open
    State state = State::none;
    /// The link may hold bytes read before: by its maker, or when memory ran out.
    bool fresh = true;
    bool unsorted = false;  ///< `frame` was received and is not sorted: memory ran out
    TcpFrame frame;
    int64_t early_nbytes = 0;  ///< bytes kept for groups that this rank has not made
  };
  using Early = std::vector<std::pair<int64_t, TcpFrame>>;

  Way &way(int64_t rank) { return ways_[static_cast<size_t>(rank)]; }
  const Way &way(int64_t rank) const { return ways_[static_cast<size_t>(rank)]; }
  bool flush();
  void receive(int64_t source);
  bool sort(int64_t source, TcpFrame &&frame);
  bool keep(int64_t source, TcpFrame &&frame);
  void reply(int64_t source, uint64_t group);
  void end(int64_t source, State state);
  std::vector<std::byte> spare();

  std::mutex mutex_;
  const int64_t rank_;
  std::vector<Way> ways_;
  std::map<uint64_t, TcpMember *> members_;
  std::set<uint64_t> former_;  ///< numbers of groups that no longer exist
  std::map<uint64_t, Early> early_;
  std::vector<std::vector<std::byte>> spares_;
};

}  // namespace zero
