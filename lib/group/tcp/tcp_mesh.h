/// @file TcpMesh: the connections of one rank, shared by all transports that descend from one meeting. Every frame bears the number of the
/// group it is for; the mesh sorts them. Knows members only by number and interface, and nothing of rounds.
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

/// What a frame is. `offer` and `request` announce a message, from its sender and from its receiver; `taken` tells how many bytes of a
/// chunk the receiver has.
enum class TcpKind : uint32_t { round = 1, offer, request, chunk, taken, poison, left, query, answer };

/// Begins every frame.
struct TcpHead {
  TcpKind kind;
  uint32_t reserved;
  uint64_t group;
};

/// A frame that has come. What content() points at stays in place when the frame is moved.
class TcpFrame {
 public:
  TcpFrame() = default;
  explicit TcpFrame(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  /// Whether it begins as frames do; everything else is only for those that do.
  bool valid() const;
  TcpKind kind() const { return head().kind; }
  uint64_t group() const { return head().group; }
  std::span<const std::byte> content() const { return std::span(bytes_).subspan(sizeof(TcpHead)); }
  /// The beginning of the content, which must be as long.
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

/// A group on the mesh. Called under the mesh's lock.
class TcpMember {
 public:
  /// False when no rank of the group would send such a frame: the connection it came by is then given up. Without memory for it,
  /// std::bad_alloc, and the frame is the caller's still.
  virtual bool on_frame(int64_t source, TcpFrame &&frame) = 0;
  virtual PeerStatus answer() const = 0;

 protected:
  ~TcpMember() = default;
};

/// A connection that brings what no rank would send (a frame without a head, of an unknown kind, not as long as its kind says, out of turn,
/// or too much for groups that this rank has not made) is closed and counts as `breached`. Frames for groups that have gone are ignored.
class TcpMesh {
 public:
  /// peers[r] is rank r of the meeting.
  TcpMesh(std::vector<TcpPeer> peers, int64_t rank);
  TcpMesh(const TcpMesh &) = delete;
  /// Gives what waits to be sent a short while, then closes the connections in order.
  ~TcpMesh();

  /// Every member but the constructor and the getters up to here is called with this lock held. Ranks are those of the meeting.
  std::mutex &mutex() { return mutex_; }
  int64_t rank() const { return rank_; }
  int64_t size() const { return static_cast<int64_t>(ways_.size()); }

  const TcpPeer &peer(int64_t rank) const { return way(rank).peer; }

  /// none: this rank itself, or a rank of its host.
  enum class State : uint8_t { none, open, ended, breached };
  State state(int64_t rank) const { return way(rank).state; }

  /// Never waits. Goes nowhere when there is no connection or it has ended.
  void send(int64_t rank, TcpKind kind, uint64_t group, std::span<const std::byte> content = {}, std::span<const std::byte> rest = {});
  /// Whether all that was sent to the rank is on its way, or never will be.
  bool flushed(int64_t rank);
  /// Sends what waits and hands out what has come. Without memory, std::bad_alloc, and nothing of what has come is lost.
  void progress();

  /// Frames that came for the group before go to the member at once.
  void enroll(uint64_t number, TcpMember *member);
  /// Frames for the group are ignored from now on.
  void forget(uint64_t number);
  /// The same without memory: frames for the group are kept, as of one that was never made.
  void drop(uint64_t number) noexcept { members_.erase(number); }
  /// Takes the memory of a frame that is used up, for frames to come.
  void give_back(TcpFrame frame) noexcept;

 private:
  struct Way {
    TcpPeer peer;  ///< link is nullptr unless state is open
    State state = State::none;
    bool fresh = true;      ///< the link may hold what was read before: by its maker, or when memory ran out
    bool unsorted = false;  ///< `frame` has come and is not sorted: memory ran out
    TcpFrame frame;
    int64_t early_nbytes = 0;  ///< kept for groups that this rank has not made
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
  std::set<uint64_t> former_;  ///< numbers of groups that have gone
  std::map<uint64_t, Early> early_;
  std::vector<std::vector<std::byte>> spares_;
};

}  // namespace zero
