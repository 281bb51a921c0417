/// @file Where the ranks of a group over sockets run, and groups over some of them.
#include "group/tcp_transport.h"

#include <algorithm>

namespace zero {
namespace {

uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

uint64_t add(uint64_t hash, uint64_t value) { return mix(hash * 0x9e3779b97f4a7c15U + value + 1); }

}  // namespace

std::vector<int64_t> TcpTransport::hosts() const {
  const auto guard = lock();
  std::vector<uint64_t> known;
  std::vector<int64_t> hosts;
  for (const int64_t member : members_) {
    const uint64_t id = mesh_->peer(member).host_id;
    const auto found = std::find(known.begin(), known.end(), id);
    hosts.push_back(found - known.begin());
    if (found == known.end()) known.push_back(id);
  }
  return hosts;
}

Place TcpTransport::place() const {
  const std::vector<int64_t> all = hosts();
  const auto first = all.begin();
  const int64_t own = all[static_cast<size_t>(rank_)];
  const int64_t here = std::count(first, all.end(), own);
  return {std::count(first, first + rank_, own), here, 1 + *std::max_element(first, all.end()), here};
}

Task TcpTransport::share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t) {
  std::vector<PeerMemory> memory(static_cast<size_t>(size()));
  memory[static_cast<size_t>(rank_)].mapping = std::move(mine);
  *out = std::move(memory);
  co_return Status();
}

/// The number of the new group is the same on its members although they do not talk: a hash of this group's number, the tag, who is in it,
/// and how many such groups there were before. Others of this group need not count it, so it does not matter which of them take part.
Task TcpTransport::derive(std::vector<int64_t> members, int64_t tag, int64_t, std::shared_ptr<Transport> *out) {
  out->reset();
  if (members.empty()) co_return Status();
  const auto mine = std::find(members.begin(), members.end(), rank_);
  ZERO_CO_CHECK(mine != members.end(), ZERO_E_INTERNAL, "rank %lld derives a group it is not a member of", lld(rank_));
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
