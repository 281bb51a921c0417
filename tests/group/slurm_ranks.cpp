/// @file Tasks of a step of Slurm, started and judged by slurm_launch.sh. Each prints one line and ends with 0, or prints its error and
/// ends with 3; whoever else ends the process leaves another status.
///   slurm_ranks env    the group that the variables describe: a sum over its ranks
///   slurm_ranks mpi    a group of MPI_COMM_WORLD, whatever the variables say
///   slurm_ranks tcp    the meeting that a group with devices has: a sum over ranks on several nodes
///   slurm_ranks lost   as env; the last rank is killed, and the others print what they learn
#include "group/collectives.h"
#include "group/connect/connect.h"
#include "group/launcher.h"
#include "group/tcp/tcp_transport.h"
#include "tests/group/collective_cases.h"
#include "tests/group/transport_driver.h"

#include <signal.h>

#include <cstdio>
#include <string>

using namespace zero;
using namespace zero::test;

namespace {

constexpr int64_t kDeadlineMs = 5000;

Status connect_over_tcp(std::shared_ptr<Group> *out) {
  Launch launch;
  ZERO_TRY(read_launch(&launch));
  ZERO_CHECK(launch.kind == Launch::Kind::hosts, ZERO_E_LAUNCHER, "this is no launch over several hosts");
  TcpTerms terms{.rank = launch.rank, .size = launch.size, .deadline_ms = kDeadlineMs};
  terms.id = launch.master + ":" + std::to_string(launch.master_port) + "/" + launch.name;
  std::shared_ptr<TcpTransport> transport;
  uint64_t name = 0;
  ZERO_TRY(run_task(connect_tcp(std::move(terms), &transport, &name)));
  *out = std::make_shared<Group>(std::move(transport), test_reducer(), kDeadlineMs);
  return {};
}

Status connect(const std::string &way, std::shared_ptr<Group> *out) {
  if (way == "tcp") return connect_over_tcp(out);
  Config config;
  ZERO_TRY(config.set_i64(ZERO_KEY_DEADLINE_MS, kDeadlineMs));
  const auto reducer = [](const Place &) { return test_reducer(); };
  if (way == "mpi") return run_task(connect_mpi_group(ZERO_MPI_WORLD, GroupOptions(config), reducer, out));
  return run_task(connect_env_group(GroupOptions(config), reducer, out));
}

Status add_up(Group &group, int64_t *out) {
  const int64_t mine = group.rank() + 1;
  return run_task(all_reduce(group, &mine, out, 1, DType::i64, ReduceOp::sum));
}

Status run(const std::string &way) {
  std::shared_ptr<Group> group;
  int64_t sum = 0;
  ZERO_TRY(connect(way, &group));
  ZERO_TRY(add_up(*group, &sum));
  if (way == "lost") {
    if (group->rank() == group->size() - 1) ::raise(SIGKILL);
    ZERO_TRY(add_up(*group, &sum));
  }
  std::printf("rank %lld of %lld on %lld hosts over %s: sum %lld\n", lld(group->rank()), lld(group->size()), lld(group->place().host_count),
              group->transport().capabilities().name.c_str(), lld(sum));
  return {};
}

}  // namespace

int main(int argc, char **argv) {
  // Open MPI writes to the connections of a rank that has ended. Under srun nobody has had the signal ignored, as mpirun has.
  ::signal(SIGPIPE, SIG_IGN);
  const Status status = run(argc > 1 ? argv[1] : "env");
  if (status.ok()) return 0;
  std::printf("%s: %s\n", status_name(status.code()), status.text());
  std::fflush(stdout);
  return 3;
}
