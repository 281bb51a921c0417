/// @file The local transport: facts about its ranks, memory that they share, and transports over
/// some of them.
#include "group/local/local_transport.h"

#include <algorithm>
#include <cstdio>

namespace zero {

LocalTransport::LocalTransport(int64_t rank, int64_t size, int64_t round_nbytes)
    : Transport(rank, size, {.name = "local", .round_nbytes = round_nbytes, .shares_memory = true, .copies_offers = true}),
      peers_(rank, size, round_nbytes, rounds_),
      mappings_(peers_),
      rounds_(peers_, mappings_),
      messages_(peers_, mappings_) {
  set_interfaces(rounds_, messages_, peers_);
}

LocalTransport::~LocalTransport() { peers_.leave(); }

/// To meet needs descriptors of the rank that leads: it listens, and has a socket of each of the
/// others and what each of them brings.
void LocalTransport::set_facts() {
  const LocalProcesses &processes = peers_.processes();
  const auto cores_of = [this](int64_t rank) { return peers_.segment(rank).header().cores_key.load(std::memory_order_relaxed); };
  capabilities_.place = {rank(), size(), 1, 0};
  for (int64_t peer = 0; peer < size(); ++peer) {
    // Threads of one process have its pool of kernel threads in common, whatever cores they are
    // bound to.
    const bool one_pool = processes.process(peer) == processes.process(rank());
    if (one_pool || cores_of(peer) == cores_of(rank())) ++capabilities_.place.core_sharers;
  }
  capabilities_.within_process = processes.all_here();
  capabilities_.descriptors_to_meet = capabilities_.within_process || size() == 1 ? 0 : 2 * size();
}

/// One word of each owner decides: a peer either enters before the owner closes its memory, and is
/// counted, or finds it closed.
Status LocalTransport::enter_memory() {
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    if ((peers_.segment(peer).header().entries.fetch_add(1, std::memory_order_acq_rel) & SegmentHeader::kClosed) == 0) continue;
    // Nothing was written yet, so the peers that were entered need not count it.
    for (int64_t entered = 0; entered <= peer; ++entered) {
      if (entered != rank()) peers_.segment(entered).header().entries.fetch_sub(1, std::memory_order_acq_rel);
    }
    return peers_.fail(Status::error(ZERO_E_PEER_FAILED, "rank %lld has failed and closed its memory before rank %lld wrote there",
                                     peers_.name_of(peer), peers_.name_of(rank())));
  }
  return {};
}

uint64_t LocalTransport::close_memory() {
  return peers_.own().header().entries.fetch_or(SegmentHeader::kClosed, std::memory_order_acq_rel) & ~SegmentHeader::kClosed;
}

std::string LocalTransport::derived_name(const char *what) const {
  char name[64];
  std::snprintf(name, sizeof name, "%016llx.%llu.%s", static_cast<unsigned long long>(peers_.identity()),
                static_cast<unsigned long long>(derived_), what);
  return name;
}

Task LocalTransport::copy_through(std::shared_ptr<const Reducer> copier, int64_t /*deadline_ms*/) {
  rounds_.copy_through(std::move(copier));
  co_return Status();
}

Task LocalTransport::share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  ++derived_;
  out->assign(static_cast<size_t>(size()), {});
  (*out)[static_cast<size_t>(rank())].mapping = mine;
  if (size() == 1) co_return Status();
  // A task with a name: of a conditional expression that is awaited, GCC 12 ends the task twice.
  Task sharing = capabilities_.within_process ? share_here(mine, out, deadline_ms) : share_by_name(mine, out, deadline_ms);
  ZERO_CO_AWAIT(sharing);
  if (mine != nullptr) mappings_.offer(*mine);
  co_return Status();
}

Task LocalTransport::derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                                   std::shared_ptr<Transport> *out) {
  ++derived_;
  out->reset();
  if (members.empty()) co_return Status();
  const auto mine = std::find(members.begin(), members.end(), rank());
  ZERO_CO_CHECK(mine != members.end(), ZERO_E_INTERNAL, "rank %lld derives a group it is not a member of", peers_.name_of(rank()));
  const int64_t new_rank = mine - members.begin();
  const auto new_size = static_cast<int64_t>(members.size());
  auto transport = std::make_shared<LocalTransport>(new_rank, new_size, std::min(peers_.round_nbytes(), most_round_nbytes));
  transport->keep(footing_);
  if (capabilities_.within_process && new_size > 1) {
    ZERO_CO_AWAIT(derive_here(*transport, members, tag, deadline_ms));
  } else {
    Task connecting = transport->connect(derived_name(std::to_string(tag).c_str()), deadline_ms, &peers_, std::move(members));
    ZERO_CO_AWAIT(connecting);
  }
  *out = std::move(transport);
  co_return Status();
}

}  // namespace zero
