/// @file What crosses the cable between two hosts of two ranks each, counted at the interface: a program for netns_mpirun.sh. Sums made
/// inside each host cross once per host, and so does what is gathered: for P elements (P - P_h) sums out of host h, and P_h elements.
#include "group/collectives.h"
#include "group/connect/connect.h"
#include "tests/group/collective_cases.h"
#include "tests/group/interface_bytes.h"
#include "tests/group/mpi_ranks.h"

#include <functional>

using namespace zero;
using namespace zero::mpi_test;

namespace {

constexpr int64_t kCount = 1 << 22;
constexpr int64_t kCalls = 4;
constexpr const char *kInterface = "zero0";

/// Runs the collective a few times and compares what this host sent with the formula. Packets add headers, receipts for what came, and
/// on a busy machine a few are sent again.
void expect_sent(Group &group, const char *name, int64_t formula_nbytes, const std::function<Task()> &collective) {
  CHECK_OK(run(barrier(group)));
  const int64_t before = test::interface_sent_nbytes(kInterface);
  CHECK_OK(run(barrier(group)));  // nobody sends before all have looked
  for (int64_t call = 0; call < kCalls; ++call) CHECK_OK(run(collective()));
  CHECK_OK(run(barrier(group)));
  const double sent = static_cast<double>(test::interface_sent_nbytes(kInterface) - before) / kCalls;
  const double ratio = sent / static_cast<double>(formula_nbytes);
  CHECK(before >= 0 && ratio >= 1 && ratio < 1.1, "%s: %.0f bytes crossed, the formula says %lld", name, sent,
        static_cast<long long>(formula_nbytes));
  if (group.rank() == 0) std::printf("%-22s %11.0f bytes per call, %.4f of the formula\n", name, sent, ratio);
}

void count_all(Group &group) {
  std::vector<float> send(kCount, 1);
  std::vector<float> recv(kCount);
  const Cuts cuts = even_cuts(kCount, group.size());
  const Range mine = cuts[static_cast<size_t>(group.rank())];
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const std::string suffix = std::string(" ") + dtype_name(dtype);
    const int64_t half = kCount / 2;
    const int64_t reduce_nbytes = half * int64_t{sizeof(float)};  // partial sums are fp32
    const int64_t gather_nbytes = half * dtype_nbytes(dtype);
    const auto all_of_it = [&] { return all_reduce(group, send.data(), recv.data(), kCount, dtype, ReduceOp::sum); };
    const auto scatter = [&] { return reduce_scatter(group, {send.data(), recv.data(), &cuts, dtype, ReduceOp::sum}); };
    const auto gather = [&] { return all_gather(group, send.data(), recv.data(), cuts, dtype); };
    expect_sent(group, ("reduce_scatter" + suffix).c_str(), reduce_nbytes, scatter);
    CHECK(dtype != DType::f32 || (recv[0] == 4 && recv[static_cast<size_t>(mine.count()) - 1] == 4), "the sum of four ones");
    expect_sent(group, ("all_gather" + suffix).c_str(), gather_nbytes, gather);
    expect_sent(group, ("all_reduce" + suffix).c_str(), reduce_nbytes + gather_nbytes, all_of_it);
  }
}

}  // namespace

int main() {
  std::shared_ptr<Group> group;
  const auto reducer = [](const Place &) { return test::test_reducer(); };
  CHECK_OK(run(connect_mpi_group(ZERO_MPI_WORLD, GroupOptions(Config()), reducer, &group)));
  if (group == nullptr) return finish(0);
  CHECK(group->transport().capabilities().host_block == 2, "two ranks per host");
  count_all(*group);
  return finish(group->rank() == 0 ? 1 : 0);
}
