/// @file Ranks of several hosts meet at an address that rank 0 listens on, agree that they belong together, and are connected
/// each to each. Knows nothing of what the connections are for.
#pragma once

#include "core/status.h"
#include "core/task.h"
#include "group/tcp/tcp_link.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

/// What a rank asks of a meeting.
struct TcpTerms {
  std::string id;  ///< "host:port/token", the same on all ranks; an IPv6 address stands in brackets
  int64_t rank = 0;
  int64_t size = 1;
  uint64_t agree = 0;  ///< must be the same on all ranks
  int64_t deadline_ms = 0;
  uint64_t host_id = 0;  ///< which ranks are of one host; 0: host_id() says so. Others let one host pass for several
};

/// A rank as the others know it.
struct TcpPeer {
  uint64_t host_id = 0;
  int64_t process = 0;
  std::string host_name;
  std::unique_ptr<TcpLink> link;  ///< nullptr: this rank itself, or a rank of its host
};

/// Meets the other ranks: rank 0 listens on the id's port of all its addresses, unless make_tcp_id of this process does already, and the
/// others go to the id's host, again and again until the deadline. Each rank listens on a free port, too, for the ranks above it of other
/// hosts. On success, which all ranks have together, `out` has an entry for each rank and `out_name` is random and the same on all. A rank
/// alone opens nothing. Connections that do not speak this version of the protocol or come with another token are ignored; a rank that
/// goes before all have come counts as missing and may come again. Nothing blocks but the resolver, which may take its time over a host
/// name and is asked anew when a host is not found or not reached.
///
/// Errors: ZERO_E_INVALID_ARGUMENT; ZERO_E_RENDEZVOUS names missing, doubled, disagreeing or unconnected ranks, on all that came, at the
/// latest half a second after the deadline; ZERO_E_SYSTEM when there are no sockets to be had, or when the port is in use on rank 0, which
/// is said at once: who holds it may hold it for ever, and the ranks that go there would speak to a stranger.
Task meet_over_tcp(TcpTerms terms, std::vector<TcpPeer> *out, uint64_t *out_name);

}  // namespace zero
