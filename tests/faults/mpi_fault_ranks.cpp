/// @file Ranks of which the last one is stopped, killed or slow inside a group over MPI. Run by mpi_faults.sh, which judges what each rank
/// wrote to its own file: mpirun may take the output of a dying job with it.
#include "engine/compute/host_kernels.h"
#include "group/connect/connect.h"
#include "tests/group/mpi_ranks.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

namespace {

using zero::Fingerprint;
using zero::OperationKind;
using zero::Status;
using zero::Transport;
using namespace zero::mpi_test;

constexpr int kHealthyBarriers = 5;

Status barrier(Transport &transport, uint64_t sequence, int64_t deadline_ms) {
  const Fingerprint fingerprint{.sequence = sequence, .kind = OperationKind::barrier};
  Tables tables(transport.size());
  transport.peers().publish(&fingerprint);
  Status status = run_round(transport, &fingerprint, tables, deadline_ms);
  transport.peers().publish(nullptr);
  if (status.ok()) transport.rounds().consume();
  return status;
}

/// All data through MPI, or with two ranks per pretended host.
Status connect(bool by_hosts, std::shared_ptr<Transport> *out) {
  std::shared_ptr<zero::MpiTransport> over_mpi;
  if (!by_hosts) {
    ZERO_TRY(run(zero::connect_mpi(ZERO_MPI_WORLD, {}, &over_mpi)));
    *out = std::move(over_mpi);
    return {};
  }
  ::setenv("ZERO_HOST_ID", std::to_string(launched_rank() / 2).c_str(), 1);
  std::shared_ptr<zero::Group> group;
  const auto reducer = [](const zero::Place &) { return std::make_shared<zero::HostReducer>(1); };
  ZERO_TRY(run(zero::connect_mpi_group(ZERO_MPI_WORLD, zero::GroupOptions(zero::Config()), reducer, &group)));
  *out = std::shared_ptr<Transport>(group, &group->transport());
  return {};
}

/// What the last rank does instead of coming at once.
void misbehave(const std::string &mode) {
  if (mode == "stop") ::raise(SIGSTOP);
  if (mode == "kill") ::raise(SIGKILL);
  if (mode == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

/// A rank that ends without MPI_Finalize makes mpirun end the others, so it waits for their reports first.
void linger() { std::this_thread::sleep_for(std::chrono::seconds(4)); }

int run_ranks(const std::string &mode, bool by_hosts, int64_t deadline_ms, const std::string &folder) {
  std::shared_ptr<Transport> transport;
  const Status connected = connect(by_hosts, &transport);
  if (!connected.ok()) {
    std::fprintf(stderr, "%s\n", connected.text());
    return 1;
  }
  std::ofstream file(folder + "/rank." + std::to_string(transport->rank()));
  file << "pid " << ::getpid() << std::endl;
  for (uint64_t sequence = 1; sequence <= kHealthyBarriers; ++sequence) {
    if (const Status status = barrier(*transport, sequence, 20000); !status.ok()) file << "unhealthy " << status.text() << std::endl;
  }
  if (transport->rank() == transport->size() - 1) {
    file << "misbehaves" << std::endl;
    misbehave(mode);
  }
  const int64_t begin_ns = zero::now_ns();
  const Status status = barrier(*transport, kHealthyBarriers + 1, deadline_ms);
  file << "report " << (zero::now_ns() - begin_ns) / 1'000'000 << " " << zero::status_name(status.code()) << " " << status.text()
       << std::endl;
  if (status.ok()) return 0;
  transport->peers().poison(status);
  linger();
  transport.reset();
  file << "released" << std::endl;
  return 1;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: mpi_fault_ranks stop|kill|slow flat|hosts DEADLINE_MS FOLDER\n");
    return 2;
  }
  return run_ranks(argv[1], std::string(argv[2]) == "hosts", std::atoll(argv[3]), argv[4]);
}
