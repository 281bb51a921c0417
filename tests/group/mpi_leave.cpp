/// @file Ranks that leave groups over MPI while others wait for them, run by mpirun: those are told at
/// once, although the last release on a rank waits for the others' until the deadline of a rendezvous.
/// Every rank returns non-zero when one of its checks fails; rank 0 prints the counts.
#include "engine/compute/host_kernels.h"
#include "group/collectives.h"
#include "group/connect/connect.h"
#include "tests/group/mpi_ranks.h"

#include <memory>
#include <string>

namespace {

using namespace zero::mpi_test;
using zero::Group;
using zero::Status;

constexpr int64_t kRendezvousMs = 100'000;
constexpr int64_t kDeadlineMs = 20'000;  // of ranks that wait: whoever is told only by a rendezvous' deadline is told too late

std::shared_ptr<Group> connect() {
  zero::Config config;
  CHECK_OK(config.set_i64(ZERO_KEY_RENDEZVOUS_MS, kRendezvousMs));
  CHECK_OK(config.set_i64(ZERO_KEY_DEADLINE_MS, kDeadlineMs));
  const auto reducer = [](const zero::Place &) { return std::make_shared<zero::HostReducer>(1); };
  std::shared_ptr<Group> group;
  CHECK_OK(run(zero::connect_mpi_group(ZERO_MPI_WORLD, zero::GroupOptions(config), reducer, &group)));
  if (group == nullptr) std::exit(1);
  return group;
}

std::shared_ptr<Group> split(Group &group, int64_t color) {
  std::shared_ptr<Group> out;
  CHECK_OK(group.queue()->run(zero::split(group, color, 0, &out)));
  return out;
}

Status meet(Group &group) { return group.queue()->run(zero::barrier(group)); }

/// Rank 0 lets go of its last group. Rank 1 waits for it; the others look only at a group without it.
void a_rank_that_leaves_is_named_at_once() {
  std::shared_ptr<Group> world = connect();
  const int64_t rank = world->rank();
  const std::shared_ptr<Group> rest = split(*world, rank == 0 ? -1 : 0);
  CHECK_OK(meet(*world));
  if (rank == 0) return world.reset();
  if (rank == 1) CHECK_CODE(meet(*world), ZERO_E_PEER_LEFT, "rank 0 ");
  CHECK_OK(meet(*rest));
}

/// Rank 0 lets go of the group that all were split from, goes on in the split one, and MPI stays.
void a_split_group_goes_on_without_the_one_it_was_split_from() {
  std::shared_ptr<Group> world = connect();
  const bool first = world->rank() == 0;
  const std::shared_ptr<Group> whole = split(*world, 0);
  // Of ranks that all share a host, whether those of the whole group do or not.
  const std::shared_ptr<Group> pair = split(*whole, world->rank() / 2);
  if (first) world.reset();
  CHECK_OK(meet(*whole));
  CHECK_OK(meet(*pair));
  CHECK_OK(meet(*whole));
}

}  // namespace

int main(int argc, char **argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (argc > 2) ::setenv("ZERO_HOST_ID", std::to_string(launched_rank() / std::atoll(argv[2])).c_str(), 1);
  if (mode == "leave") {
    a_rank_that_leaves_is_named_at_once();
  } else if (mode == "split") {
    a_split_group_goes_on_without_the_one_it_was_split_from();
  } else {
    std::fprintf(stderr, "usage: mpi_leave leave|split [ranks of a host]\n");
    return 2;
  }
  stop_mpi();  // libzero leaves MPI alone after a failure
  return finish(launched_rank() == 0 ? 1 : 0);
}
