/// @file A wait that is long but within the deadline: the log says who waits for whom, once, and the call goes on.
#include "group/collectives.h"
#include "tests/group/collective_cases.h"
#include "tests/group/local_ranks.h"
#include "tests/group/process_ranks.h"
#include "tests/group/tcp_ranks.h"
#include "tests/log_file.h"
#include "tests/sleep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace zero::test::long_wait_test {
namespace {

constexpr int64_t kRanks = 3;
constexpr int64_t kLate = 2;
constexpr int64_t kDeadlineMs = 10'000;
constexpr int64_t kLateMs = kDeadlineMs / 10 + 500;

Status run(Group &group, Task task) { return group.queue()->run(std::move(task)); }

/// A punctual call, one to which the last rank comes late, and a message that it sends late.
Status call_with_late_rank(Group &group) {
  const bool late = group.rank() == kLate;
  float value = 1;
  ZERO_TRY(run(group, barrier(group)));
  if (late) sleep_ms(kLateMs);
  ZERO_TRY(run(group, all_reduce(group, &value, &value, 1, DType::f32, ReduceOp::sum)));
  EXPECT_EQ(value, kRanks);
  if (late) {
    sleep_ms(kLateMs);
    ZERO_TRY(group.send_queue(0)->run(group.send(&value, 1, DType::f32, 0)));
  }
  if (group.rank() == 0) ZERO_TRY(group.recv_queue(kLate)->run(group.recv(&value, 1, DType::f32, kLate)));
  return run(group, barrier(group));
}

/// Connects the ranks' transports: connect(rank, out).
using Connect = std::function<Status(int64_t, std::shared_ptr<Transport> *)>;

/// The lines of a process whose ranks are threads.
std::vector<std::string> log_of(const std::function<Connect()> &make_connect) {
  const LogFile file;
  const ProcessResults results = run_process_ranks(
      1,
      [&](int64_t, int out_fd) {
        ::setenv("ZERO_LOG", file.path(), 1);
        const Connect connect = make_connect();
        run_thread_ranks(kRanks, [&](int64_t rank) {
          std::shared_ptr<Transport> transport;
          Status status = connect(rank, &transport);
          if (status.ok()) status = call_with_late_rank(*std::make_shared<Group>(std::move(transport), test_reducer(), kDeadlineMs));
          write_text(out_fd, status.text());
        });
        return testing::Test::HasFailure() ? 1 : 0;
      },
      60'000);
  EXPECT_TRUE(results.all_exited_with(0)) << results.describe();
  EXPECT_EQ(results.texts[0], "");
  return file.lines();
}

/// Lines that say that a rank waited in a call for the late one.
int64_t remarks(const std::vector<std::string> &lines, int64_t rank, const std::string &call) {
  const std::string begin = " rank " + std::to_string(rank) + " has waited ";
  return std::count_if(lines.begin(), lines.end(), [&](const std::string &line) {
    const size_t in_call = line.find(" of 10000 ms in " + call);
    return line.find(begin) < in_call && in_call != std::string::npos && line.find(": rank 2 (process ", in_call) != std::string::npos;
  });
}

Connect over_memory() {
  return [name = fresh_name()](int64_t rank, std::shared_ptr<Transport> *out) { return try_connect(name, rank, kRanks, out); };
}

Connect over_sockets() {
  return [world = std::make_shared<TcpWorld>(own_hosts(kRanks))](int64_t rank, std::shared_ptr<Transport> *out) {
    *out = world->join(rank);
    return Status();
  };
}

void expect_remarks(const std::function<Connect()> &make_connect) {
  const std::vector<std::string> lines = log_of(make_connect);
  const std::string all = testing::PrintToString(lines);
  EXPECT_EQ(remarks(lines, 0, "#2 all_reduce"), 1) << all;
  EXPECT_EQ(remarks(lines, 1, "#2 all_reduce"), 1) << all;
  EXPECT_EQ(remarks(lines, 0, "#1 recv"), 1) << all;
}

TEST(LongWait, IsInTheLogOfRanksThatShareMemory) { expect_remarks(over_memory); }

TEST(LongWait, IsInTheLogOfRanksThatAskOneAnother) { expect_remarks(over_sockets); }

}  // namespace
}  // namespace zero::test::long_wait_test
