/// @file Workers and servers that are killed: others go on, or all learn who is missing.
#include "engine/server/server.h"
#include "tests/engine/rank_worlds.h"
#include "tests/faults/shared_counter.h"
#include "tests/group/process_ranks.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace zero::test::server_kill_test {
namespace {

constexpr int64_t kCount = 70'000;
constexpr int64_t kTimeoutMs = 30'000;
/// After so many pulls of one worker all are at work.
constexpr int64_t kPullsBeforeKill = 20;

struct Outcome {
  int code = 1;
  int64_t lost = -1;
  int64_t left = -1;
  std::string text;
};

void report(int out_fd, const Status &status, const ServerCounts &counts) {
  write_text(out_fd, std::to_string(status.code()) + " " + std::to_string(counts.served.lost) + " " + std::to_string(counts.served.left) +
                         " " + status.text());
}

Status seal_rank(const std::string &name, int64_t rank, int64_t size, const Config &config, std::shared_ptr<Server> *out) {
  ZERO_TRY(Server::create(connect_rank(name, rank, size, 1), config, kCount, out));
  return (*out)->group()->queue()->run((*out)->seal());
}

/// Pulls and pushes until something fails, or `rounds` are made.
Status work(Server &server, int64_t rounds, SharedCounter &pulls) {
  std::vector<float> values(kCount);
  for (int64_t round = 0; round < rounds; ++round) {
    ZERO_TRY(server.queue()->run(server.pull(values.data())));
    pulls.add();
    ZERO_TRY(server.queue()->run(server.push(values.data())));
  }
  return server.queue()->run(server.leave());
}

/// `servers` and `workers` as processes, of which `victim` is killed at work.
std::vector<Outcome> run_and_kill(int64_t servers, int64_t workers, bool round_robin, int64_t victim) {
  const std::string name = meeting_name();
  const int64_t size = servers + workers;
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_SERVER_RANKS, servers).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_SERVER_ORDER, round_robin ? ZERO_SERVER_ORDER_ROUND_ROBIN : ZERO_SERVER_ORDER_ARRIVAL).ok());
  SharedCounter pulls;
  const ProcessResults results = run_process_ranks(
      size,
      [&](int64_t rank, int out_fd) {
        std::shared_ptr<Server> server;
        ServerCounts counts;
        Status status = seal_rank(name, rank, size, config, &server);
        if (status.ok() && rank < servers) status = server->queue()->run(server->run(&counts));
        // The victim works until it is killed, the others long enough to see that.
        if (status.ok() && rank >= servers) status = work(*server, rank == victim ? INT64_MAX : 400, pulls);
        report(out_fd, status, counts);
        return 0;
      },
      kTimeoutMs,
      [&](const std::vector<pid_t> &processes) {
        pulls.await(kPullsBeforeKill, kTimeoutMs);
        ::kill(processes[static_cast<size_t>(victim)], SIGKILL);
      });
  EXPECT_FALSE(results.timed_out) << results.describe();
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    std::istringstream text(results.texts[rank]);
    text >> outcomes[rank].code >> outcomes[rank].lost >> outcomes[rank].left;
    std::getline(text, outcomes[rank].text);
  }
  return outcomes;
}

TEST(ServerKill, OthersGoOnWithoutAKilledWorkerInOrderOfArrival) {
  for (int64_t servers = 1; servers <= 2; ++servers) {
    const std::vector<Outcome> outcomes = run_and_kill(servers, 3, false, servers + 1);
    for (int64_t rank = 0; rank < servers + 3; ++rank) {
      const Outcome &outcome = outcomes[static_cast<size_t>(rank)];
      if (rank == servers + 1) continue;
      EXPECT_EQ(outcome.code, ZERO_OK) << rank << ":" << outcome.text;
      if (rank >= servers) continue;
      EXPECT_EQ(outcome.lost, 1);
      EXPECT_EQ(outcome.left, 2);
    }
  }
}

TEST(ServerKill, AKilledWorkerIsNamedOnAllRanksInRounds) {
  const std::vector<Outcome> outcomes = run_and_kill(1, 3, true, 2);
  for (const int64_t rank : {0, 1, 3}) {
    const Outcome &outcome = outcomes[static_cast<size_t>(rank)];
    EXPECT_EQ(outcome.code, ZERO_E_PEER_LOST) << rank << ":" << outcome.text;
    EXPECT_NE(outcome.text.find("server rank 0 lost worker rank 2"), std::string::npos) << rank << ":" << outcome.text;
  }
}

TEST(ServerKill, WorkersNameAKilledServer) {
  for (const bool round_robin : {true, false}) {
    const std::vector<Outcome> outcomes = run_and_kill(2, 2, round_robin, 1);
    for (const int64_t rank : {2, 3}) {
      const Outcome &outcome = outcomes[static_cast<size_t>(rank)];
      EXPECT_TRUE(poisons_group(outcome.code)) << rank << ":" << outcome.text;
      EXPECT_NE(outcome.text.find("server rank 1"), std::string::npos) << rank << ":" << outcome.text;
    }
  }
}

}  // namespace
}  // namespace zero::test::server_kill_test
