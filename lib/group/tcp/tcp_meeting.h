/// @file TcpMeeting: ranks of several hosts meet at an address that rank 0 listens on, agree that
/// they belong together, and connect each to each. Knows nothing of the use of the connections.
#pragma once

#include "core/status.h"
#include "core/task.h"
#include "group/tcp/tcp_link.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// The arguments of a rank for a meeting.
struct TcpTerms {
  std::string id;  ///< "host:port/token", the same on all ranks; an IPv6 address stands in brackets
  int64_t rank = 0;
  int64_t size = 1;
  uint64_t agree = 0;  ///< must be the same on all ranks
  int64_t deadline_ms = 0;
  /// Equal on ranks of one host; 0: host_id(). Other values make one host pass for several.
  uint64_t host_id = 0;
};

/// A rank as the others know it.
struct TcpPeer {
  uint64_t host_id = 0;
  int64_t process = 0;
  std::string host_name;
  std::unique_ptr<TcpLink> link;  ///< nullptr: this rank itself, or a rank of its host
};

/// Meets the other ranks. Rank 0 listens on the id's port of all its addresses, unless make_tcp_id
/// of this process does so already. The other ranks connect to the id's host, again and again until
/// the deadline. Each rank also listens on a free port for higher ranks of other hosts. A world of
/// one rank opens nothing.
///
/// All ranks succeed together. Then `out` has an entry for each rank, and `out_name` is random and
/// the same on all. Connections with another version of the protocol or another token are ignored.
/// A rank that leaves before all have come counts as missing and may come again. Only the resolver
/// may block; it is asked again if a host is not found or not reached.
///
/// Errors:
/// - ZERO_E_INVALID_ARGUMENT.
/// - ZERO_E_RENDEZVOUS names missing, duplicate, disagreeing or unconnected ranks. All ranks that
///   came return it, at the latest half a second after the deadline.
/// - ZERO_E_SYSTEM if no sockets are available, or if the port is in use on rank 0. The latter is
///   reported at once, because the port may be in use for ever, and other ranks would connect to a
///   stranger.
Task meet_over_tcp(TcpTerms terms, std::vector<TcpPeer> *out, uint64_t *out_name);

}  // namespace zero
