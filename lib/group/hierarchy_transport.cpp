/// @file Every call goes to the transport that reaches the peer, or to both.
#include "group/hierarchy_transport.h"

#include "core/clock.h"

#include <algorithm>
#include <set>

namespace zero {
namespace {

std::string joined(std::string first, const std::string &second) {
  if (!first.empty() && !second.empty()) first += "; ";
  return first + second;
}

Capabilities facts_of(const Transport &near, const Transport &far, std::span<const int64_t> hosts) {
  const Capabilities &here = near.capabilities();
  const Capabilities &there = far.capabilities();
  Place place = here.place;
  place.host_count = place_of(hosts, far.rank()).host_count;
  return {.name = here.name + " and " + there.name,
          .place = place,
          .host_block = host_block_of(hosts),
          .round_nbytes = std::min(here.round_nbytes, there.round_nbytes),
          .longest_nbytes = there.longest_nbytes,
          .descriptors_to_meet = here.descriptors_to_meet,
          .single_thread = there.single_thread,
          .shares_memory = place.host_count == 1};
}

}  // namespace

Status met_on_host(const Status &status, int64_t ranks) {
  return Status::error(status.code(), "among the %lld ranks of one host, counted there: %s", lld(ranks), status.text());
}

HierarchyTransport::HierarchyTransport(std::shared_ptr<Transport> near, std::shared_ptr<Transport> far, std::vector<int64_t> hosts)
    : Transport(far->rank(), far->size(), facts_of(*near, *far, hosts)),
      far_(std::move(far)),
      near_(std::move(near)),
      hosts_(std::move(hosts)),
      near_index_(hosts_.size(), -1),
      far_offers_(hosts_.size()),
      far_arrivals_(hosts_.size()) {
  const int64_t own_host = hosts_[static_cast<size_t>(rank())];
  for (size_t rank = 0; rank < hosts_.size(); ++rank) {
    if (hosts_[rank] != own_host) continue;
    near_index_[rank] = static_cast<int64_t>(near_ranks_.size());
    near_ranks_.push_back(static_cast<int64_t>(rank));
  }
  near_offers_.resize(near_ranks_.size());
  near_arrivals_.resize(near_ranks_.size());
  near_->peers().name_ranks(near_ranks_);
  set_interfaces(*this, *this, *this);
}

void HierarchyTransport::name_ranks(std::vector<int64_t> names) {
  std::vector<int64_t> near;
  for (const int64_t rank : near_ranks_) near.push_back(names[static_cast<size_t>(rank)]);
  near_->peers().name_ranks(std::move(near));
  far_->peers().name_ranks(names);
  PeerHealth::name_ranks(std::move(names));
}

Status HierarchyTransport::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  arrivals_ = arrivals;
  for (size_t rank = 0; rank < hosts_.size(); ++rank) {
    arrivals[rank].rest_is_there = false;
    const Offer offer{offers[rank].data, offers[rank].nbytes};
    const Arrival arrival{nullptr, arrivals[rank].nbytes};
    const int64_t index = near_index_[rank];
    far_offers_[rank] = index < 0 ? offer : Offer{};
    far_arrivals_[rank] = index < 0 ? arrival : Arrival{};
    if (index < 0) continue;
    near_offers_[static_cast<size_t>(index)] = offer;
    near_arrivals_[static_cast<size_t>(index)] = arrival;
  }
  near_arrived_ = false;
  far_arrived_ = false;
  // Data between hosts takes longest, so it starts first.
  ZERO_TRY(far_->rounds().start(fingerprint, far_offers_, far_arrivals_));
  return near_->rounds().start(fingerprint, near_offers_, near_arrivals_);
}

Status HierarchyTransport::poll(bool *out_arrived) {
  // Looked at first, so that a failure which follows what is awaited does not undo it.
  const Status before = health();
  if (!far_arrived_) ZERO_TRY(far_->rounds().poll(&far_arrived_));
  if (!near_arrived_) ZERO_TRY(near_->rounds().poll(&near_arrived_));
  *out_arrived = far_arrived_ && near_arrived_;
  if (!*out_arrived) return before;
  for (size_t rank = 0; rank < hosts_.size(); ++rank) {
    const int64_t index = near_index_[rank];
    arrivals_[rank].data = index < 0 ? far_arrivals_[rank].data : near_arrivals_[static_cast<size_t>(index)].data;
  }
  return {};
}

void HierarchyTransport::consume() {
  far_->rounds().consume();
  near_->rounds().consume();
}

Status HierarchyTransport::poll_quiet(bool *out_quiet) {
  bool far_quiet = false;
  bool near_quiet = false;
  ZERO_TRY(far_->rounds().poll_quiet(&far_quiet));
  ZERO_TRY(near_->rounds().poll_quiet(&near_quiet));
  *out_quiet = far_quiet && near_quiet;
  return {};
}

std::pair<Transport *, int64_t> HierarchyTransport::way_to(int64_t peer) const {
  if (is_near(peer)) return {near_.get(), near_index_[static_cast<size_t>(peer)]};
  return {far_.get(), peer};
}

Status HierarchyTransport::check_thread(int64_t peer) const {
  const auto [way, rank] = way_to(peer);
  return way->messages().check_thread(rank);
}

Status HierarchyTransport::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  const auto [way, rank] = way_to(peer);
  return way->messages().send_start(rank, fingerprint, offer);
}

Status HierarchyTransport::send_poll(int64_t peer, bool *out_done) {
  const Status before = health();
  const auto [way, rank] = way_to(peer);
  ZERO_TRY(way->messages().send_poll(rank, out_done));
  return *out_done ? Status() : before;
}

Status HierarchyTransport::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  const auto [way, rank] = way_to(peer);
  return way->messages().recv_start(rank, fingerprint, data, nbytes);
}

Status HierarchyTransport::recv_poll(int64_t peer, bool *out_done) {
  const Status before = health();
  const auto [way, rank] = way_to(peer);
  ZERO_TRY(way->messages().recv_poll(rank, out_done));
  return *out_done ? Status() : before;
}

/// Passes a failure of one side on to the other, which may otherwise see only that this rank has
/// left.
Status HierarchyTransport::health() {
  Status near = near_->peers().health();
  Status far = far_->peers().health();
  if (!near.ok()) far_->peers().poison(near);
  if (!far.ok()) near_->peers().poison(far);
  return !near.ok() ? near : far;
}

Status HierarchyTransport::watch() {
  (void)near_->peers().watch();
  (void)far_->peers().watch();
  return health();
}

Status HierarchyTransport::watch_peer(int64_t peer, const Fingerprint &doing) {
  const auto [way, rank] = way_to(peer);
  (void)way->peers().watch_peer(rank, doing);
  return health();
}

void HierarchyTransport::poison(const Status &cause) {
  // The near ones may be reading this rank's memory, and telling them needs none.
  near_->peers().poison(cause);
  far_->peers().poison(cause);
}

void HierarchyTransport::publish(const Fingerprint *fingerprint) {
  far_->peers().publish(fingerprint);
  near_->peers().publish(fingerprint);
}

/// Texts of the near transport name the ranks of all.
void HierarchyTransport::publish_message(const Fingerprint &fingerprint, bool ends) {
  far_->peers().publish_message(fingerprint, ends);
  near_->peers().publish_message(fingerprint, ends);
}

std::string HierarchyTransport::progress_report(const Fingerprint &mine) {
  if (is_message(mine.kind)) {
    const auto [way, rank] = way_to(mine.root);
    Fingerprint there = mine;
    there.root = rank;
    return way->peers().progress_report(there);
  }
  const bool quiet = near_arrived_ && far_arrived_;
  const bool asks_near = !near_arrived_ || quiet;
  const bool asks_far = !far_arrived_ || quiet;
  std::string text = joined(asks_near ? near_->peers().suspicions(mine) : "", asks_far ? far_->peers().suspicions(mine) : "");
  // Ranks in the same call wait as this one does, and it may be on the other side that they do.
  if (text.empty()) text = joined(asks_near ? "" : near_->peers().suspicions(mine), asks_far ? "" : far_->peers().suspicions(mine));
  if (!text.empty()) return text;
  return joined(asks_near ? near_->peers().progress_report(mine) : "", asks_far ? far_->peers().progress_report(mine) : "");
}

Task HierarchyTransport::share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  std::vector<PeerMemory> near_memory;
  ZERO_CO_AWAIT(near_->share(std::move(mine), &near_memory, deadline_ms));
  out->assign(hosts_.size(), {});
  for (size_t i = 0; i < near_ranks_.size(); ++i) (*out)[static_cast<size_t>(near_ranks_[i])] = std::move(near_memory[i]);
  co_return Status();
}

/// A group within one host needs only its near transport, one with a single rank per host only the
/// far one. The time that late near ranks take is deducted from the deadline of the far ones.
Task HierarchyTransport::derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                                       std::shared_ptr<Transport> *out) {
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  std::vector<int64_t> near_members;
  std::vector<int64_t> hosts;
  for (const int64_t member : members) {
    hosts.push_back(hosts_[static_cast<size_t>(member)]);
    if (is_near(member)) near_members.push_back(near_index_[static_cast<size_t>(member)]);
  }
  const size_t host_count = std::set<int64_t>(hosts.begin(), hosts.end()).size();
  std::shared_ptr<Transport> near;
  ZERO_CO_AWAIT(near_->derive_within(std::move(near_members), tag, most_round_nbytes, deadline_ms, &near));
  // Groups of other ranks may span hosts: to them this rank counts as one that is in none, so that
  // all have derived alike from the far one.
  const bool spans = host_count > 1;
  if (!spans) members.clear();
  std::shared_ptr<Transport> far;
  ZERO_CO_AWAIT(far_->derive_within(std::move(members), tag, most_round_nbytes, deadline.left_ms(), &far));
  if (!spans) {
    *out = std::move(near);
  } else if (host_count == hosts.size()) {
    *out = std::move(far);
  } else {
    *out = std::make_shared<HierarchyTransport>(std::move(near), std::move(far), std::move(hosts));
  }
  co_return Status();
}

}  // namespace zero
