/// @file The transport of all ranks of a meeting.
#include "group/tcp_transport.h"

#include <numeric>

namespace zero {

Task connect_tcp(TcpTerms terms, std::shared_ptr<TcpTransport> *out, uint64_t *out_name) {
  const int64_t rank = terms.rank;
  std::vector<TcpPeer> peers;
  ZERO_CO_AWAIT(meet_over_tcp(std::move(terms), &peers, out_name));
  std::vector<int64_t> members(peers.size());
  std::iota(members.begin(), members.end(), 0);
  auto mesh = std::make_shared<TcpMesh>(std::move(peers), rank);
  *out = std::make_shared<TcpTransport>(std::move(mesh), TcpTransport::kFirstNumber, std::move(members), rank);
  co_return Status();
}

}  // namespace zero
