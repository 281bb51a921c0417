/// @file The sockets of a meeting: non-blocking packets with at most one file descriptor each.
/// Knows the format of packets; never the purpose of a meeting.
#pragma once

#include "core/owned_fd.h"
#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

inline constexpr uint64_t kMeetingMagic = 0x6f72657a62696c0aULL;
inline constexpr uint32_t kMeetingVersion = 1;
inline constexpr size_t kMaxBlobBytes = 4096;

enum class PacketKind : uint32_t { hello = 1, entry = 2, refusal = 3 };

/// The head of every packet; the blob follows. Magic and version have the same offset in all
/// versions.
struct PacketHeader {
  uint64_t magic = kMeetingMagic;
  uint32_t version = kMeetingVersion;
  PacketKind kind = PacketKind::hello;
  int64_t rank = 0;
  int64_t size = 0;
  int64_t process = 0;
  uint64_t agree = 0;
  /// `entry`: the rank is a thread of the receiving process, so no descriptor is sent.
  uint64_t same_process = 0;
  uint64_t blob_nbytes = 0;
};

struct Packet {
  PacketHeader header;
  std::vector<std::byte> blob;
  OwnedFd fd;
};

/// refused: the system reports another error in errno; closed: the connection has ended on either
/// side.
enum class Received { packet, nothing, closed, garbage, no_descriptors, refused };
Received receive_packet(int socket, Packet *out);

enum class Sent { done, full, closed, refused };
/// fd < 0: none. The header gets the size of the blob.
Sent send_packet(int socket, PacketHeader header, std::span<const std::byte> blob, int fd);

/// The process at the other end of a connected socket.
struct PeerIdentity {
  int64_t process = 0;
  uint32_t user = 0;
};
PeerIdentity identify(int socket);

enum class Role { root, client, again };
/// Takes the place that `name` stands for. root: the socket listens; client: it is connected to the
/// root; again: neither was possible just now.
Status enter_meeting(const std::string &name, OwnedFd *out_socket, Role *out_role);
/// Returns a socket that is connected to the root of a name; invalid if there is no root.
OwnedFd connect_to_root(const std::string &name);

}  // namespace zero
