/// @file Buffers and trainings over MPI: a program for mpirun. Rank 0 prints the counts; every rank exits non-zero when anything failed.
#include "engine/host_kernels.h"
#include "group/connect.h"
#include "tests/engine/known_results.h"

#include <cstdio>
#include <cstdlib>

using namespace zero;
using namespace zero::test;

int main() {
  OperationQueue queue;
  std::shared_ptr<Group> group;
  const Status status = queue.run(connect_mpi_group(
      ZERO_MPI_WORLD, GroupOptions(Config()), [](const Place &) { return std::make_shared<HostReducer>(1); }, &group));
  if (!status.ok()) {
    std::fprintf(stderr, "connect: %s\n", status.text());
    return 1;
  }
  Report buffers;
  run_buffer_cases(group, &buffers);
  Report trainings;
  run_known_trainings(group, std::getenv("ZERO_TEST_FULL") != nullptr ? 40 : 4, &trainings);
  const int64_t failures = buffers.failures + trainings.failures;
  const auto rank = static_cast<long long>(group->rank());
  if (failures != 0) std::fprintf(stderr, "rank %lld:\n%s%s", rank, buffers.text.c_str(), trainings.text.c_str());
  if (rank == 0) {
    std::printf("%lld MPI ranks: %lld buffers, %lld trainings, %lld failures\n", static_cast<long long>(group->size()),
                static_cast<long long>(buffers.cases), static_cast<long long>(trainings.cases), static_cast<long long>(failures));
  }
  return failures == 0 ? 0 : 1;
}
