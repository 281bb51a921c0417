/// @file Making groups over sockets, of all ranks that met or of some of them; and the hosts of
/// ranks.
#include "group/tcp/tcp_transport.h"

#include <algorithm>
#include <numeric>

namespace zero {
namespace {

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

uint64_t add(uint64_t hash, uint64_t value) { return mix(hash * 0x9e3779b97f4a7c15U + value + 1); }

}  // namespace

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

std::vector<int64_t> TcpTransport::hosts() const {
  const auto guard = lock();
  std::vector<uint64_t> ids;
  for (const int64_t member : members_) ids.push_back(mesh_->peer(member).host_id);
  return number_hosts(ids);
}

/// The number of the new group is a hash of this group's number, the tag, the members, and the
/// count of such groups before. Its members compute the same number without communication. Other
/// ranks of this group need not count it, so they need not take part.
Task TcpTransport::derive_within(std::vector<int64_t> members, int64_t tag, int64_t, int64_t, std::shared_ptr<Transport> *out) {
  out->reset();
  if (members.empty()) co_return Status();
  const auto mine = std::find(members.begin(), members.end(), rank());
  ZERO_CO_CHECK(mine != members.end(), ZERO_E_INTERNAL, "rank %lld derives a group it is not a member of", lld(rank()));
  uint64_t hash = add(number_, static_cast<uint64_t>(tag));
  std::vector<int64_t> mesh_ranks;
  for (const int64_t member : members) {
    mesh_ranks.push_back(mesh_rank(member));
    hash = add(hash, static_cast<uint64_t>(mesh_ranks.back()));
  }
  {
    const auto guard = lock();
    hash = add(hash, derived_[hash]++);
  }
  *out = std::make_shared<TcpTransport>(mesh_, hash, std::move(mesh_ranks), mine - members.begin());
  co_return Status();
}

}  // namespace zero
