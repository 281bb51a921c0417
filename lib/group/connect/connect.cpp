/// @file Groups over each transport.
#include "group/connect/connect.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/system_random.h"
#include "group/collectives.h"
#include "group/hierarchy_transport.h"
#include "group/launcher.h"
#include "group/local/local_transport.h"
#include "group/module/zero_mpi_module.h"
#include "group/mpi/mpi_transport.h"
#include "group/nccl/nccl_module.h"
#include "group/nccl/nccl_transport.h"
#include "group/tcp/tcp_id.h"
#include "group/tcp/tcp_transport.h"

#include <algorithm>
#include <new>

namespace zero {
namespace {

/// Gives the remaining stages of a creation only the time that is left, so that none restarts with
/// all of it. Ranks that met at the last moment still get a minimum.
void pass_time(GroupOptions *options, const Deadline &deadline) {
  constexpr int64_t kLeastMs = 400;
  options->rendezvous_ms = std::min(options->rendezvous_ms, std::max(deadline.left_ms(), kLeastMs));
}

/// If devices are to be reached, NCCL moves their memory. A rank that cannot load NCCL reports the
/// reason to the others.
Task reach_devices(std::shared_ptr<Transport> *transport, const GroupOptions &options, std::shared_ptr<const Reducer> reducer) {
  const zero_nccl_table *nccl = nullptr;
  if (Status loaded = load_nccl_module(options.nccl_module, &nccl); !loaded.ok()) {
    (*transport)->peers().poison(told_to_peers(loaded, (*transport)->rank()));
    co_return loaded;
  }
  auto over_nccl = std::make_shared<NcclTransport>(*transport, *nccl);
  ZERO_CO_AWAIT(over_nccl->copy_through(std::move(reducer), options.rendezvous_ms));
  *transport = std::move(over_nccl);
  co_return Status();
}

Task finish_group(std::shared_ptr<Transport> transport, const GroupOptions &options, const ReducerFactory &reducer,
                  std::shared_ptr<Group> *out) {
  std::shared_ptr<const Reducer> made = reducer(transport->capabilities().place);
  if (options.nccl) ZERO_CO_AWAIT(reach_devices(&transport, options, made));
  *out = std::make_shared<Group>(std::move(transport), std::move(made), options.deadline_ms);
  co_return Status();
}

/// The values that MPI ranks exchange before they decide how data moves.
struct Meeting {
  uint64_t name;  ///< random; rank 0's counts
  uint64_t shared;
};

Task meet(Group &over_mpi, bool shared, uint64_t *out_name) {
  const auto size = static_cast<size_t>(over_mpi.size());
  const auto rank = static_cast<size_t>(over_mpi.rank());
  std::vector<Meeting> meetings(size);
  uint64_t random = 0;
  ZERO_CO_TRY(random_u64(&random));
  meetings[rank] = {random, shared ? 1U : 0U};
  Cuts cuts;
  for (int64_t r = 0; r < over_mpi.size(); ++r) cuts.push_back({2 * r, 2 * r + 2});
  ZERO_CO_AWAIT(all_gather(over_mpi, &meetings[rank], meetings.data(), cuts, DType::i64));
  for (size_t other = 0; other < size; ++other) {
    ZERO_CO_CHECK(meetings[other].shared == meetings[0].shared, ZERO_E_RENDEZVOUS,
                  "ZERO_KEY_MPI_SHARED is %llu on rank 0 but %llu on rank %zu; give every rank the same",
                  static_cast<unsigned long long>(meetings[0].shared), static_cast<unsigned long long>(meetings[other].shared), other);
  }
  *out_name = meetings[0].name;
  co_return Status();
}

/// Passes the failure of a local transport on to the far one. If memory is exhausted, the far
/// peers may not receive it.
void pass_failure(PeerHealth &local, PeerHealth &far) noexcept {
  try {
    if (const Status failure = local.health(); !failure.ok()) far.poison(failure);
  } catch (const std::bad_alloc &) {
    // It has noted the failure before it tells of it.
  }
}

/// Ranks of a group between hosts that share a host move their data through shared memory; `name`
/// is their group's. If all ranks do, the transport between hosts has no work left. The local one
/// only keeps it alive and reports failures to it, because MPI must then not be finalised.
/// Releasing MPI waits for the other ranks, so a rank first tells those of its host that it has
/// left: they may be waiting for it.
Task share_hosts(Group &over_hosts, std::string name, GroupOptions options, std::shared_ptr<HostsTransport> far,
                 std::shared_ptr<Transport> *out) {
  const Deadline deadline = Deadline::after_ms(options.rendezvous_ms);
  *out = far;
  const Place &place = far->capabilities().place;
  if (place.host_count == far->size()) co_return Status();
  std::vector<int64_t> hosts = far->hosts();
  name += "." + std::to_string(hosts[static_cast<size_t>(far->rank())]);
  std::shared_ptr<Transport> local;
  const LocalOptions local_options{options.rendezvous_ms, options.staging_nbytes};
  Status met = co_await connect_local(std::move(name), place.local_rank, place.local_size, local_options, &local);
  if (!met.ok()) {
    met = met_on_host(met, place.local_size);
    over_hosts.fail(met);
    co_return met;
  }
  pass_time(&options, deadline);
  over_hosts.set_deadline_ms(options.rendezvous_ms);
  ZERO_CO_AWAIT(barrier(over_hosts));
  local->keep(far->footing());
  if (place.host_count > 1) {
    far->leave_hosts_out();
    *out = std::make_shared<HierarchyTransport>(std::move(local), std::move(far), std::move(hosts));
    co_return Status();
  }
  const auto end = [local, far](Transport *) mutable {
    pass_failure(local->peers(), far->peers());
    local.reset();
  };
  *out = std::shared_ptr<Transport>(local.get(), end);
  co_return Status();
}

/// A group over a transport between hosts, for as long as a group is made.
std::shared_ptr<Group> meeting_group(std::shared_ptr<Transport> transport, const GroupOptions &options, const ReducerFactory &reducer) {
  std::shared_ptr<const Reducer> made = reducer(transport->capabilities().place);
  return std::make_shared<Group>(std::move(transport), std::move(made), options.rendezvous_ms);
}

/// A hash of the terms that must be the same on ranks that meet over TCP.
uint64_t terms_hash(const GroupOptions &options) { return hash_of_text(ZERO_MPI_BUILD "." + std::to_string(options.staging_nbytes)); }

}  // namespace

GroupOptions::GroupOptions(const Config &config)
    : deadline_ms(config.i64(ZERO_KEY_DEADLINE_MS)),
      rendezvous_ms(config.i64(ZERO_KEY_RENDEZVOUS_MS)),
      rendezvous_port(config.i64(ZERO_KEY_RENDEZVOUS_PORT)),
      staging_nbytes(config.i64(ZERO_KEY_STAGING_BYTES)),
      mpi_module(config.str(ZERO_KEY_MPI_MODULE)),
      mpi_shared(config.i64(ZERO_KEY_MPI_SHARED) != 0),
      nccl(config.i64(ZERO_KEY_NCCL) != 0),
      nccl_module(config.str(ZERO_KEY_NCCL_MODULE)) {}

Task connect_local_group(std::string name, int64_t rank, int64_t size, GroupOptions options, ReducerFactory reducer,
                         std::shared_ptr<Group> *out) {
  const Deadline deadline = Deadline::after_ms(options.rendezvous_ms);
  std::shared_ptr<Transport> transport;
  ZERO_CO_AWAIT(connect_local(std::move(name), rank, size, {options.rendezvous_ms, options.staging_nbytes}, &transport));
  pass_time(&options, deadline);
  co_return co_await finish_group(std::move(transport), options, reducer, out);
}

Task connect_mpi_group(int64_t comm, GroupOptions options, ReducerFactory reducer, std::shared_ptr<Group> *out) {
  const Deadline deadline = Deadline::after_ms(options.rendezvous_ms);
  std::shared_ptr<MpiTransport> over_mpi;
  // Named: gcc 12 copies a braced temporary with a string in it bit by bit when it occurs in an
  // awaited expression.
  MpiOptions mpi{options.mpi_module, options.rendezvous_ms, options.staging_nbytes};
  ZERO_CO_AWAIT(connect_mpi(comm, std::move(mpi), &over_mpi));
  std::shared_ptr<Transport> transport = over_mpi;
  pass_time(&options, deadline);
  if (over_mpi->size() > 1) {
    const std::shared_ptr<Group> meeting = meeting_group(over_mpi, options, reducer);
    uint64_t name = 0;
    ZERO_CO_AWAIT(meet(*meeting, options.mpi_shared, &name));
    std::string host_name = "mpi." + std::to_string(name);
    pass_time(&options, deadline);
    if (options.mpi_shared) ZERO_CO_AWAIT(share_hosts(*meeting, std::move(host_name), options, std::move(over_mpi), &transport));
    pass_time(&options, deadline);
  }
  co_return co_await finish_group(std::move(transport), options, reducer, out);
}

Task connect_nccl_group(std::string id, int64_t rank, int64_t size, GroupOptions options, ReducerFactory reducer,
                        std::shared_ptr<Group> *out) {
  options.nccl = true;
  const Deadline deadline = Deadline::after_ms(options.rendezvous_ms);
  TcpTerms terms{.id = std::move(id), .rank = rank, .size = size, .agree = terms_hash(options), .deadline_ms = options.rendezvous_ms};
  std::shared_ptr<TcpTransport> over_tcp;
  uint64_t name = 0;
  ZERO_CO_AWAIT(connect_tcp(std::move(terms), &over_tcp, &name));
  pass_time(&options, deadline);
  std::shared_ptr<Transport> transport;
  const std::shared_ptr<Group> meeting = meeting_group(over_tcp, options, reducer);
  std::string host_name = "tcp." + std::to_string(name);
  ZERO_CO_AWAIT(share_hosts(*meeting, std::move(host_name), options, std::move(over_tcp), &transport));
  pass_time(&options, deadline);
  co_return co_await finish_group(std::move(transport), options, reducer, out);
}

/// The meeting of a launch over several hosts.
Status hosts_id(const Launch &launch, const GroupOptions &options, std::string *out) {
  ZERO_CHECK(options.nccl, ZERO_E_LAUNCHER,
             "%s started %lld ranks (%s) on several hosts; groups over hosts go over NCCL (ZERO_KEY_NCCL) or over MPI: start the program "
             "with mpirun",
             launch.launcher.c_str(), lld(launch.size), launch.variable.c_str());
  const bool v6 = launch.master.find(':') != std::string::npos && launch.master.front() != '[';
  const int64_t port = options.rendezvous_port != 0 ? options.rendezvous_port : launch.master_port;
  *out = (v6 ? "[" + launch.master + "]" : launch.master) + ":" + std::to_string(port) + "/" + launch.name;
  return check_tcp_id(*out);
}

Status check_size(const Launch &launch, const GroupOptions &options) {
  const int64_t most = options.nccl ? kMostRanksOnDevices : kMostRanksOfHost;
  ZERO_CHECK(launch.size <= most, ZERO_E_LAUNCHER,
             "%s started %lld ranks, but a group %s has at most %lld; larger ones go over MPI: start the program with mpirun",
             launch.launcher.c_str(), lld(launch.size), options.nccl ? "that reaches devices" : "of one host", lld(most));
  return {};
}

Task connect_env_group(GroupOptions options, ReducerFactory reducer, std::shared_ptr<Group> *out) {
  Launch launch;
  ZERO_CO_TRY(read_launch(&launch));
  const bool over_mpi = launch.kind == Launch::Kind::mpi || (launch.mpi_as_well && !options.nccl);
  if (over_mpi) co_return co_await connect_mpi_group(ZERO_MPI_WORLD, std::move(options), std::move(reducer), out);
  ZERO_CO_TRY(check_size(launch, options));
  if (launch.kind == Launch::Kind::hosts) {
    std::string id;
    ZERO_CO_TRY(hosts_id(launch, options, &id));
    co_return co_await connect_nccl_group(std::move(id), launch.rank, launch.size, std::move(options), std::move(reducer), out);
  }
  co_return co_await connect_local_group(launch.name, launch.rank, launch.size, std::move(options), std::move(reducer), out);
}

}  // namespace zero
