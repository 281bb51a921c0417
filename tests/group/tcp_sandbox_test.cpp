/// @file Ranks that meet over TCP from processes without standard input, output and error, or to which a sandbox refuses a system call:
/// they keep away from what the program has closed, and fall back or fail soon.
#include "engine/optimizer/optimizer.h"
#include "group/collectives.h"
#include "group/tcp/tcp_id.h"
#include "group/tcp/tcp_transport.h"
#include "tests/group/collective_cases.h"
#include "tests/group/process_ranks.h"
#include "tests/group/transport_driver.h"
#include "tests/refused_calls.h"
#include "tests/standard_fds.h"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace zero::test {
namespace {

constexpr int64_t kSandboxRanks = 3;
constexpr int64_t kSandboxTimeoutMs = 60'000;
constexpr int64_t kSandboxMeetMs = 1500;

/// Where rank 0 leaves the id that it makes.
struct IdBoard {
  std::atomic<bool> written{false};
  char id[256] = "";
};

/// For the processes of a test.
class SharedIdBoard {
 public:
  SharedIdBoard() : board_(new (::mmap(nullptr, sizeof(IdBoard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) IdBoard) {}
  SharedIdBoard(const SharedIdBoard &) = delete;
  ~SharedIdBoard() { ::munmap(board_, sizeof(IdBoard)); }
  IdBoard *get() const { return board_; }

 private:
  IdBoard *board_;
};

/// A group of ranks that pass for ranks of different hosts, so that all goes over sockets.
Status connect_over_tcp(int64_t rank, IdBoard *board, std::shared_ptr<Group> *out) {
  TcpTerms terms{.rank = rank, .size = kSandboxRanks, .deadline_ms = kSandboxMeetMs, .host_id = 700 + static_cast<uint64_t>(rank)};
  if (rank == 0) {
    const Status made = make_tcp_id("127.0.0.1", 0, &terms.id);
    std::strncpy(board->id, made.ok() ? terms.id.c_str() : "127.0.0.1:9/none", sizeof board->id - 1);
    board->written = true;
    ZERO_TRY(made);
  }
  const Deadline deadline = Deadline::after_ms(kSandboxTimeoutMs);
  while (!board->written && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  terms.id = board->id;
  std::shared_ptr<TcpTransport> transport;
  uint64_t meeting = 0;
  ZERO_TRY(run_task(connect_tcp(std::move(terms), &transport, &meeting)));
  *out = std::make_shared<Group>(std::move(transport), test_reducer(), kSandboxTimeoutMs);
  return {};
}

/// One step of descent from zero, in which each rank's gradient is its number: the parameters are known.
Status train_over_tcp(const std::shared_ptr<Group> &group) {
  const int64_t count = 700;
  Config config;
  ZERO_TRY(config.set_i64(ZERO_KEY_STAGE, 1));
  ZERO_TRY(config.set_str(ZERO_KEY_ALGORITHM, "sgd"));
  ZERO_TRY(config.set_f64(ZERO_KEY_LR, 0.5));
  ZERO_TRY(config.set_i64(ZERO_KEY_DIVISOR, ZERO_DIVISOR_ONE));
  std::shared_ptr<Optimizer> optimizer;
  int64_t id = 0;
  ZERO_TRY(Optimizer::create(group, config, &optimizer));
  ZERO_TRY(optimizer->add_param(nullptr, "w", ZERO_DTYPE_F32, &count, 1, &id));
  ZERO_TRY(optimizer->seal_queue()->run(optimizer->seal()));
  const std::shared_ptr<OperationQueue> &queue = optimizer->queue();
  ZERO_TRY(queue->run(optimizer->begin(ZERO_SOURCE_LOCAL)));
  std::vector<float> values(count, static_cast<float>(group->rank() + 1));
  ZERO_TRY(optimizer->grad_ready(id, values.data(), 0, count));
  zero_step_result result{};
  result.struct_size = sizeof result;
  ZERO_TRY(queue->run(optimizer->step(&result)));
  void *data = nullptr;
  ZERO_TRY(queue->run(optimizer->param_acquire(id, values.data(), count, &data)));
  ZERO_TRY(optimizer->param_release(id));
  for (const float value : values) ZERO_CHECK(value == -3.0F, ZERO_E_INTERNAL, "a parameter is not -0.5 (1 + 2 + 3)");
  return {};
}

/// Everything over the group, twice, and once over a part of it.
Status work_over_tcp(int64_t rank, IdBoard *board) {
  std::shared_ptr<Group> group;
  ZERO_TRY(connect_over_tcp(rank, board, &group));
  Report report;
  const std::vector<CollectiveCase> all = collective_cases(group->size());
  for (size_t i = 0; i < all.size(); i += 29 * kCaseStride) run_collective_case(*group, all[i], &report);
  run_split_cases(*group, &report);
  ZERO_CHECK(report.failures == 0 && report.cases > 0, ZERO_E_INTERNAL, "%s", report.text.c_str());
  return train_over_tcp(group);
}

TEST(TcpSandbox, RanksWithoutStandardDescriptorsWorkAndKeepAway) {
  for (int closed = 0; closed < kStandardFdSets; ++closed) {
    const SharedIdBoard board;
    const auto run = [&](int64_t rank, int out_fd) {
      close_standard_fds(closed);
      StubbornPrinter printer(closed);
      const Status status = work_over_tcp(rank, board.get());
      write_text(out_fd, status.text() + printer.stop());
      return status.ok() && printer.stop().empty() && closed_standard_fds() == closed ? 0 : 1;
    };
    const ProcessResults results = run_process_ranks(kSandboxRanks, run, kSandboxTimeoutMs);
    EXPECT_TRUE(results.all_exited_with(0)) << "closed: " << closed << "\n" << results.describe();
  }
}

struct TcpRefusal {
  const char *name;
  std::vector<long> calls;
  const char *error;  ///< of one rank at least; nullptr: they work without it
};

const std::vector<TcpRefusal> kTcpRefusals = {
    {"getrandom", {SYS_getrandom}, nullptr},
#if defined(SYS_poll)
    {"poll", {SYS_poll, SYS_ppoll}, "Operation not permitted"},
#else
    {"poll", {SYS_ppoll}, "Operation not permitted"},
#endif
    {"socket", {SYS_socket}, "cannot listen on port"},
    {"listen", {SYS_listen}, "cannot listen on port"},
    {"accept4", {SYS_accept4}, "cannot accept the connections of other ranks"},
    {"connect", {SYS_connect}, "Operation not permitted"},
    {"sendto", {SYS_sendto}, ""},
    {"recvfrom", {SYS_recvfrom}, ""},
};

TEST(TcpSandbox, RanksToWhichACallIsRefusedFallBackOrFailSoon) {
  constexpr int kNoFilter = 77;
  for (const TcpRefusal &refusal : kTcpRefusals) {
    const SharedIdBoard board;
    const auto run = [&](int64_t rank, int out_fd) {
      limit_cpu_seconds(2);
      if (!refuse_calls(refusal.calls, EPERM)) return kNoFilter;
      const Status status = work_over_tcp(rank, board.get());
      write_text(out_fd, status.text());
      return status.ok() ? 0 : 1;
    };
    const ProcessResults results = run_process_ranks(kSandboxRanks, run, kSandboxTimeoutMs);
    if (results.exit_codes[0] == kNoFilter) GTEST_SKIP() << "this system has no seccomp filters";
    EXPECT_TRUE(results.all_exited_with(refusal.error == nullptr ? 0 : 1)) << refusal.name << "\n" << results.describe();
    const bool explained = refusal.error == nullptr || results.describe().find(refusal.error) != std::string::npos;
    EXPECT_TRUE(explained) << refusal.name << "\n" << results.describe();
  }
}

}  // namespace
}  // namespace zero::test
