/// @file The same cases over MPI: a program for mpirun. Rank 0 prints the counts; every rank exits non-zero when anything failed.
///   mpi_collectives            all data moves through MPI
///   mpi_collectives hosts [N]  ranks of one host share memory; with N: so many ranks count as one host
#include "group/connect/connect.h"
#include "group/mpi/mpi_module.h"
#include "tests/group/collective_cases.h"
#include "tests/group/mismatch_cases.h"
#include "tests/group/mpi_ranks.h"
#include "tests/sizes.h"

#include <cstdio>
#include <cstdlib>

using namespace zero;
using namespace zero::test;

namespace {

/// libzero leaves MPI alone after a group was poisoned, as the differing collectives do; mpirun wants it finalised.
void finalize_mpi() {
  const zero_mpi_table *table = nullptr;
  if (load_mpi_module({}, &table).ok() && table->alive() != 0) table->stop();
}

}  // namespace

int main(int argc, char **argv) {
  const bool by_hosts = argc > 1;
  if (argc > 2) ::setenv("ZERO_HOST_ID", std::to_string(mpi_test::launched_rank() / std::atoll(argv[2])).c_str(), 1);
  Config config;
  Report cases;
  cases.expect(config.set_i64(ZERO_KEY_STAGING_BYTES, 16384).ok() && config.set_i64(ZERO_KEY_DEADLINE_MS, 60'000).ok(), "config");
  cases.expect(config.set_i64(ZERO_KEY_MPI_SHARED, by_hosts ? 1 : 0).ok(), "config");
  OperationQueue queue;
  std::shared_ptr<Group> group;
  const Status status = queue.run(connect_mpi_group(
      ZERO_MPI_WORLD, GroupOptions(config), [](const Place &) { return test_reducer(); }, &group));
  if (!status.ok()) {
    std::fprintf(stderr, "connect: %s\n", status.text());
    return 1;
  }
  const std::vector<CollectiveCase> all = collective_cases(group->size());
  for (size_t i = 0; i < all.size(); i += kCaseStride) run_collective_case(*group, all[i], &cases);
  run_split_cases(*group, &cases);
  run_message_behind_sum(*group, &cases);
  Report pairs;
  if (group->size() > 1) run_mismatch_cases(*group, full_tests() ? 1 : 7, &pairs);
  const int64_t failures = cases.failures + pairs.failures;
  if (failures != 0)
    std::fprintf(stderr, "rank %lld:\n%s%s", static_cast<long long>(group->rank()), cases.text.c_str(), pairs.text.c_str());
  if (group->rank() == 0) {
    std::printf("%lld MPI ranks over transport %s: %lld cases, %lld pairs of differing collectives, %lld failures\n",
                static_cast<long long>(group->size()), group->transport().capabilities().name.c_str(), static_cast<long long>(cases.cases),
                static_cast<long long>(pairs.cases), static_cast<long long>(failures));
  }
  group.reset();
  finalize_mpi();
  return failures == 0 ? 0 : 1;
}
