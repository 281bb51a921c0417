/// @file Buffers and trainings over MPI: a program for mpirun. Rank 0 prints the counts; every rank exits non-zero when anything failed.
#include "engine/compute/host_kernels.h"
#include "group/connect/connect.h"
#include "tests/engine/known_results.h"
#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace zero;
using namespace zero::test;

namespace {

/// How a group of this size moves its data.
const char *expected_transport(bool shared, const Group &group) {
  const int64_t hosts = group.place().host_count;
  if (!shared || hosts == group.size()) return "mpi";
  return hosts == 1 ? "local" : "local and mpi";
}

/// The cases over one way of moving data. Returns the number of failures, -1 when there is no group.
int64_t run_over(bool shared, int64_t models) {
  Config config;
  OperationQueue queue;
  std::shared_ptr<Group> group;
  Status status = config.set_i64(ZERO_KEY_MPI_SHARED, shared ? 1 : 0);
  const auto reducer = [](const Place &) { return std::make_shared<HostReducer>(1); };
  if (status.ok()) status = queue.run(connect_mpi_group(ZERO_MPI_WORLD, GroupOptions(config), reducer, &group));
  if (!status.ok()) {
    std::fprintf(stderr, "connect: %s\n", status.text());
    return -1;
  }
  Report buffers;
  Report trainings;
  buffers.expect(group->transport().capabilities().name == expected_transport(shared, *group), "data moves another way");
  run_buffer_cases(group, &buffers);
  run_known_trainings(group, models, &trainings);
  run_weighted_trainings(group, &trainings);
  run_coded_gradients(group, &trainings);
  run_gather_codes(group, &trainings);
  run_untouched_rows(group, &trainings);
  run_fragments(group, &trainings);
  trainings.expect(!testing::Test::HasFailure(), "an expectation failed, see above");
  const int64_t failures = buffers.failures + trainings.failures;
  const auto rank = static_cast<long long>(group->rank());
  if (failures != 0) std::fprintf(stderr, "rank %lld:\n%s%s", rank, buffers.text.c_str(), trainings.text.c_str());
  if (rank == 0) {
    std::printf("%lld MPI ranks over %s: %lld buffers, %lld trainings, %lld failures\n", static_cast<long long>(group->size()),
                group->transport().capabilities().name.c_str(), static_cast<long long>(buffers.cases),
                static_cast<long long>(trainings.cases), static_cast<long long>(failures));
  }
  return failures;
}

/// Holds MPI open: the release of the last group would finalise it for good.
std::shared_ptr<Group> hold_mpi() {
  OperationQueue queue;
  std::shared_ptr<Group> group;
  const auto reducer = [](const Place &) { return std::make_shared<HostReducer>(1); };
  (void)queue.run(connect_mpi_group(ZERO_MPI_WORLD, GroupOptions(Config()), reducer, &group));
  return group;
}

}  // namespace

int main() {
  const std::shared_ptr<Group> held = hold_mpi();
  const int64_t models = full_tests() ? 40 : 4;
  const int64_t over_mpi = run_over(false, models);
  const int64_t over_memory = run_over(true, 2);
  if (held == nullptr) return 1;
  ::setenv("ZERO_HOST_ID", std::to_string(held->rank() / 2).c_str(), 1);
  const int64_t over_pairs = run_over(true, 2);
  return over_mpi == 0 && over_memory == 0 && over_pairs == 0 ? 0 : 1;
}
