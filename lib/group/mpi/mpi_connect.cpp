/// @file Making transports over MPI: the first meeting of a communicator's ranks, their hosts, and
/// sub-groups.
#include "core/clock.h"
#include "group/bootstrap_round.h"
#include "group/host.h"
#include "group/launcher.h"
#include "group/mpi/mpi_module.h"
#include "group/mpi/mpi_transport.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

namespace zero {
namespace {

/// The message that each rank sends in the first meeting.
struct Hello {
  uint64_t host_id;
  int64_t staging_nbytes;
  char build[64];
};

/// Limits the pieces of a round, because an all-gather receives one from every rank.
int64_t round_nbytes_for(int64_t staging_nbytes, int64_t size) {
  constexpr int64_t kMostReceived = int64_t{64} << 20;
  constexpr int64_t kLeast = 4096;
  return std::min(staging_nbytes, std::max(kLeast, kMostReceived / std::max<int64_t>(size - 1, 1)));
}

class Duplicate final : public Waitable {
 public:
  Duplicate(MpiRoot &root, int64_t limit_ms) : root_(root), limit_ms_(limit_ms), deadline_(Deadline::after_ms(limit_ms)) {}
  Status poll(bool *out_ready) override {
    const std::lock_guard lock(root_.mutex());
    ZERO_TRY(root_.check_thread());
    ZERO_TRY(root_.test_duplicate(out_ready));
    ZERO_CHECK(*out_ready || !deadline_.passed(), ZERO_E_RENDEZVOUS,
               "after %lld ms some rank of the communicator had not called the creation of the group", lld(limit_ms_));
    return {};
  }

 private:
  MpiRoot &root_;
  const int64_t limit_ms_;
  const Deadline deadline_;
};

Status check_hello(const Hello &mine, const Hello &theirs, int64_t rank, int64_t peer) {
  ZERO_CHECK(std::strncmp(mine.build, theirs.build, sizeof mine.build) == 0, ZERO_E_RENDEZVOUS,
             "rank %lld runs %.*s but rank %lld runs %.*s; start the same libzero everywhere", lld(rank),
             static_cast<int>(sizeof mine.build), mine.build, lld(peer), static_cast<int>(sizeof theirs.build), theirs.build);
  ZERO_CHECK(mine.staging_nbytes == theirs.staging_nbytes, ZERO_E_RENDEZVOUS,
             "ZERO_KEY_STAGING_BYTES is %lld on rank %lld but %lld on rank %lld; give every rank the same", lld(mine.staging_nbytes),
             lld(rank), lld(theirs.staging_nbytes), lld(peer));
  return {};
}

/// Exchanges hellos between all ranks and checks them.
Task greet(MpiTransport &transport, MpiRoot &root, const MpiOptions &options) {
  const auto size = static_cast<size_t>(transport.size());
  Hello mine{host_id(), options.staging_nbytes, ZERO_MPI_BUILD};
  std::vector<Offer> offers(size, Offer{&mine, sizeof mine});
  std::vector<Arrival> arrivals(size, Arrival{nullptr, sizeof mine});
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::barrier;
  ZERO_CO_TRY(transport.rounds().start(&fingerprint, offers, arrivals));
  BootstrapRound round(transport, fingerprint, options.rendezvous_ms, ZERO_E_RENDEZVOUS);
  ZERO_CO_AWAIT(round);
  std::vector<uint64_t> hosts(size, mine.host_id);
  Status status;
  for (size_t peer = 0; peer < size && status.ok(); ++peer) {
    if (static_cast<int64_t>(peer) == transport.rank()) continue;
    Hello theirs;
    std::memcpy(&theirs, arrivals[peer].data, sizeof theirs);
    hosts[peer] = theirs.host_id;
    status = check_hello(mine, theirs, transport.rank(), static_cast<int64_t>(peer));
  }
  transport.rounds().consume();
  ZERO_CO_TRY(std::move(status));
  const std::lock_guard lock(root.mutex());
  root.host_ids = std::move(hosts);
  co_return Status();
}

std::string text_of_library(const zero_mpi_table &table) {
  char text[256] = "";
  table.library_text(text, sizeof text);
  return text;
}

Task open_root(int64_t comm, const MpiOptions &options, std::shared_ptr<MpiRoot> *out) {
  const zero_mpi_table *table = nullptr;
  MpiProcess process;
  std::shared_ptr<MpiRoot> root;
  ZERO_CO_TRY(load_mpi_module(options.module_path, &table));
  if (table->alive() == 0) ZERO_CO_TRY(check_direct_launch(text_of_library(*table)));
  ZERO_CO_TRY(start_mpi(table, &process));
  ZERO_CO_TRY(check_world(process.world_size));
  ZERO_CO_TRY(make_mpi_root(process, options.rendezvous_ms, &root));
  {
    const std::lock_guard lock(root->mutex());
    ZERO_CO_TRY(root->begin_duplicate(comm));
  }
  Duplicate duplicate(*root, options.rendezvous_ms);
  ZERO_CO_AWAIT(duplicate);
  {
    const std::lock_guard lock(root->mutex());
    ZERO_CO_TRY(root->open());
  }
  *out = std::move(root);
  co_return Status();
}

}  // namespace

Task connect_mpi(int64_t comm, MpiOptions options, std::shared_ptr<MpiTransport> *out) {
  ZERO_CO_CHECK(comm >= ZERO_MPI_WORLD && comm <= INT32_MAX, ZERO_E_INVALID_ARGUMENT,
                "comm is %lld; give the Fortran handle of a communicator (MPI_Comm_c2f) or ZERO_MPI_WORLD", lld(comm));
  std::shared_ptr<MpiRoot> root;
  ZERO_CO_AWAIT(open_root(comm, options, &root));
  std::vector<int64_t> members(static_cast<size_t>(root->size()));
  std::iota(members.begin(), members.end(), 0);
  const int64_t round_nbytes = round_nbytes_for(options.staging_nbytes, root->size());
  auto transport = std::make_shared<MpiTransport>(root, 0, std::move(members), root->rank(), round_nbytes);
  if (Status status = co_await greet(*transport, *root, options); !status.ok()) {
    transport->peers().poison(status);
    co_return status;
  }
  transport->find_place();
  *out = std::move(transport);
  co_return Status();
}

std::vector<int64_t> MpiTransport::hosts() const {
  const auto guard = lock();
  std::vector<uint64_t> ids;
  for (const int64_t member : links_.members()) ids.push_back(links_.root().host_ids[static_cast<size_t>(member)]);
  return number_hosts(ids);
}

void MpiTransport::leave_hosts_out() { left_out_hosts_ = hosts(); }

Task MpiTransport::derive_within(std::vector<int64_t> members, int64_t, int64_t most_round_nbytes, int64_t deadline_ms,
                                 std::shared_ptr<Transport> *out) {
  if (members.empty()) co_return Status();
  const int64_t leader = members.front();
  int64_t number = 0;
  if (rank() == leader) {
    const auto guard = lock();
    number = links_.root().new_group_number();
  }
  std::vector<Offer> offers(static_cast<size_t>(size()));
  std::vector<Arrival> arrivals(static_cast<size_t>(size()));
  for (const int64_t member : members) {
    if (rank() == leader) offers[static_cast<size_t>(member)] = {&number, sizeof number};
  }
  if (rank() != leader) arrivals[static_cast<size_t>(leader)].nbytes = sizeof number;
  const Fingerprint fingerprint{.kind = OperationKind::split};
  ZERO_CO_TRY(start(nullptr, offers, arrivals));
  BootstrapRound round(*this, fingerprint, deadline_ms, ZERO_E_TIMEOUT);
  ZERO_CO_AWAIT(round);
  if (rank() != leader) std::memcpy(&number, arrivals[static_cast<size_t>(leader)].data, sizeof number);
  consume();
  ZERO_CO_CHECK(number >= 0, ZERO_E_UNSUPPORTED, "no tags are left for another group; this MPI offers only %lld",
                lld(links_.root().process().tag_limit));
  std::vector<int64_t> root_ranks;
  for (const int64_t member : members) root_ranks.push_back(links_.members()[static_cast<size_t>(member)]);
  const int64_t own = std::find(members.begin(), members.end(), rank()) - members.begin();
  const int64_t round_nbytes = std::min(capabilities().round_nbytes, most_round_nbytes);
  auto transport = std::make_shared<MpiTransport>(links_.shared_root(), number, std::move(root_ranks), own, round_nbytes);
  transport->find_place();
  if (!left_out_hosts_.empty()) transport->leave_hosts_out();
  *out = std::move(transport);
  co_return Status();
}

}  // namespace zero
