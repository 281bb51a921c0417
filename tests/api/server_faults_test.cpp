/// @file Parameter servers whose ranks wait, end, differ or are misused: who learns what.
#include "tests/api/server_world.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test::server_faults_test {
namespace {

using namespace server_world;

/// Rank 1 goes ahead, and rank 2 does nothing for as long as that takes.
TEST(ServerFaults, AWorkerBeyondTheBoundWaitsAndSaysForWhom) {
  const Case world{1, 2, 10, arrival(2)};
  std::atomic<bool> ended{false};
  run_ranks(world, [&](Rank &rank) {
    Values values(10);
    if (rank.id == 0) {
      zero_server_result result;
      ZERO_ASSERT_OK(zero_server_result_init(&result, sizeof result));
      ZERO_ASSERT_OK(zero_server_run(rank.server, &result));
      EXPECT_EQ(result.lost_count, 1);
      EXPECT_EQ(result.left_count, 1);
      EXPECT_EQ(result.waited_count, 1);
      EXPECT_EQ(result.push_count, 3);
    } else if (rank.id == 1) {
      ZERO_ASSERT_OK(zero_group_set_deadline(rank.group, 400));
      for (int push = 0; push < 3; ++push) ZERO_ASSERT_OK(zero_server_push(rank.server, values.data(), 10));
      EXPECT_TRUE(failed_with(zero_server_pull(rank.server, values.data(), 10), ZERO_E_TIMEOUT,
                              "rank 1 waited 400 ms in zero_server_pull at server rank 0 for rank 2, which has made 0 pushes; this rank "
                              "has made 3 and may be 2 ahead"));
      // The object keeps the error.
      EXPECT_TRUE(failed_with(zero_server_push(rank.server, values.data(), 10), ZERO_E_TIMEOUT, "for rank 2"));
      ended = true;
    } else {
      while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      ZERO_ASSERT_OK(zero_server_leave(rank.server));
    }
  });
}

TEST(ServerFaults, ARoundNamesTheWorkerThatIsMissingOnAllRanks) {
  const Case world{1, 3, 600};
  run_ranks(world, [&](Rank &rank) {
    Values values(600);
    if (rank.id == 0) {
      EXPECT_TRUE(failed_with(zero_server_run(rank.server, nullptr), ZERO_E_PEER_LEFT, "server rank 0 lost worker rank 3"));
      EXPECT_TRUE(failed_with(zero_server_run(rank.server, nullptr), ZERO_E_PEER_LEFT, "server rank 0 lost worker rank 3"));
    } else if (rank.id < 3) {
      EXPECT_TRUE(failed_with(zero_server_push(rank.server, values.data(), 600), ZERO_E_PEER_LEFT, "server rank 0 lost worker rank 3"));
    }
  });
}

TEST(ServerFaults, WorkersNameTheServerThatIsGone) {
  for (const bool rounds : {true, false}) {
    const Case world{2, 2, 600, rounds ? Configure([](zero_config *) {}) : arrival(1)};
    run_ranks(world, [&](Rank &rank) {
      Values values(600);
      if (rank.id == 0) {
        // Its workers have given up.
        EXPECT_EQ(zero_server_run(rank.server, nullptr), rounds ? ZERO_E_PEER_LEFT : ZERO_OK) << last_text();
      } else if (rank.id > 1) {
        EXPECT_TRUE(failed_with(zero_server_pull(rank.server, values.data(), 600), ZERO_E_PEER_LEFT, "with server rank 1"));
      }
    });
  }
}

TEST(ServerFaults, AnAbortEndsEveryCall) {
  const Case world{1, 2, 10, arrival(0)};
  run_ranks(world, [&](Rank &rank) {
    Values values(10);
    if (rank.id == 0) {
      EXPECT_EQ(zero_server_run(rank.server, nullptr), ZERO_E_ABORTED) << last_text();
    } else if (rank.id == 1) {
      ZERO_ASSERT_OK(zero_server_push(rank.server, values.data(), 10));
      EXPECT_EQ(zero_server_pull(rank.server, values.data(), 10), ZERO_E_ABORTED) << last_text();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ZERO_ASSERT_OK(zero_group_abort(rank.group, "enough"));
    }
  });
}

TEST(ServerFaults, AReplayOfOtherCallsFailsOnAllRanks) {
  const Case world{1, 2, 10, arrival(0)};
  run_ranks(world, [&](Rank &rank) {
    Values values(10);
    if (rank.id == 0) {
      const std::vector<uint16_t> record = {0x8001, 0x8000};
      ZERO_ASSERT_OK(zero_server_replay(rank.server, record.data(), 2));
      EXPECT_TRUE(failed_with(zero_server_run(rank.server, nullptr), ZERO_E_MISMATCH, "which comes with a push"));
    } else {
      EXPECT_TRUE(
          failed_with(zero_server_push(rank.server, values.data(), 10), ZERO_E_MISMATCH, "request 0 of the record is a pull of rank 2"));
    }
  });
}

TEST(ServerFaults, RanksThatDifferInCountOrKeysLearnSoAtSeal) {
  using Set = std::function<void(zero_config *, int64_t *)>;
  const std::vector<std::pair<std::string, Set>> differences = {
      {"count = 11", [](zero_config *, int64_t *count) { *count = 11; }},
      {"ZERO_KEY_SERVER_RANKS = 2", [](zero_config *c, int64_t *) { ZERO_EXPECT_OK(zero_config_set_i64(c, ZERO_KEY_SERVER_RANKS, 2)); }},
      {"ZERO_KEY_SERVER_ORDER = ZERO_SERVER_ORDER_ROUND_ROBIN",
       [](zero_config *c, int64_t *) {
         ZERO_EXPECT_OK(zero_config_set_i64(c, ZERO_KEY_SERVER_STALENESS, 0));
         ZERO_EXPECT_OK(zero_config_set_i64(c, ZERO_KEY_SERVER_ORDER, ZERO_SERVER_ORDER_ROUND_ROBIN));
       }},
      {"ZERO_KEY_SERVER_STALENESS = 4",
       [](zero_config *c, int64_t *) { ZERO_EXPECT_OK(zero_config_set_i64(c, ZERO_KEY_SERVER_STALENESS, 4)); }},
      {"ZERO_KEY_SERVER_RULE = ZERO_SERVER_RULE_MEAN",
       [](zero_config *c, int64_t *) { ZERO_EXPECT_OK(zero_config_set_i64(c, ZERO_KEY_SERVER_RULE, ZERO_SERVER_RULE_MEAN)); }},
      {"ZERO_KEY_LR = 0.5", [](zero_config *c, int64_t *) { ZERO_EXPECT_OK(zero_config_set_f64(c, ZERO_KEY_LR, 0.5)); }},
      {"ZERO_KEY_NONFINITE = ZERO_NONFINITE_PROPAGATE",
       [](zero_config *c, int64_t *) { ZERO_EXPECT_OK(zero_config_set_i64(c, ZERO_KEY_NONFINITE, ZERO_NONFINITE_PROPAGATE)); }},
  };
  for (const auto &[text, set] : differences) {
    const std::string name = fresh_name();
    run_thread_ranks(3, [&, &text = text, &set = set](int64_t id) {
      int64_t count = 10;
      zero_group *group = nullptr;
      zero_server *server = nullptr;
      zero_config *config = make_config({.configure = arrival(3)});
      if (id == 2) set(config, &count);
      ZERO_ASSERT_OK(zero_group_create_local(name.c_str(), id, 3, config, &group));
      ZERO_ASSERT_OK(zero_server_create(group, config, count, &server));
      EXPECT_TRUE(failed_with(zero_server_seal(server), ZERO_E_MISMATCH, "rank 2 has " + text));
      zero_config_release(config);
      zero_server_release(server);
      zero_group_release(group);
    });
  }
}

TEST(ServerFaults, KeysThatContradictEachOtherAreRefused) {
  const TwoRanks pair(fresh_name().c_str());
  const auto refused = [&](int32_t code, const std::string &named, const Configure &configure) {
    zero_server *server = nullptr;
    zero_config *config = make_config({.configure = configure});
    EXPECT_TRUE(failed_with(zero_server_create(pair.rank[0], config, 1, &server), code, named));
    EXPECT_EQ(server, nullptr);
    zero_config_release(config);
  };
  const auto i64 = [](int32_t key, int64_t value) {
    return [=](zero_config *config) { ZERO_EXPECT_OK(zero_config_set_i64(config, key, value)); };
  };
  refused(ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SERVER_RANKS is 2", i64(ZERO_KEY_SERVER_RANKS, 2));
  refused(ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SERVER_STALENESS is 1", i64(ZERO_KEY_SERVER_STALENESS, 1));
  refused(ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SERVER_PERIOD is set", i64(ZERO_KEY_SERVER_PERIOD, 3));
  refused(ZERO_E_INVALID_ARGUMENT, "ZERO_KEY_SERVER_RATE is set",
          [](zero_config *config) { ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_SERVER_RATE, 0.1)); });
  for (const char *name : {"lamb", "muon", "custom", "none"}) {
    refused(ZERO_E_UNSUPPORTED, std::string("ZERO_KEY_ALGORITHM is \"") + name,
            [name](zero_config *config) { ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_ALGORITHM, name)); });
  }
}

TEST(ServerFaults, CallsOfTheOtherRoleOrInTheWrongPhaseAreRefused) {
  const Case world{1, 1, 4};
  const std::string name = fresh_name();
  run_thread_ranks(2, [&](int64_t id) {
    zero_config *config = make_config(world);
    zero_group *group = nullptr;
    zero_server *server = nullptr;
    Values values(4);
    void *data = nullptr;
    int64_t number = 0;
    ZERO_ASSERT_OK(zero_group_create_local(name.c_str(), id, 2, config, &group));
    ZERO_ASSERT_OK(zero_server_create(group, config, 4, &server));
    zero_config_release(config);
    const char *early = "call zero_server_seal first";
    if (id == 0) {
      EXPECT_TRUE(failed_with(zero_server_shard(server, &data, &number, &number), ZERO_E_STATE, early));
    }
    if (id == 0) {
      EXPECT_TRUE(failed_with(zero_server_run(server, nullptr), ZERO_E_STATE, early));
    }
    if (id == 1) {
      EXPECT_TRUE(failed_with(zero_server_push(server, values.data(), 4), ZERO_E_STATE, early));
    }
    ZERO_ASSERT_OK(zero_server_seal(server));
    EXPECT_TRUE(failed_with(zero_server_seal(server), ZERO_E_STATE, "zero_server_seal was called before on this object"));
    if (id == 0) {
      EXPECT_TRUE(
          failed_with(zero_server_push(server, values.data(), 4), ZERO_E_STATE, "rank 0 is a server, but zero_server_push is a call"));
      EXPECT_TRUE(failed_with(zero_server_pull(server, values.data(), 4), ZERO_E_STATE, "rank 0 is a server"));
      EXPECT_TRUE(failed_with(zero_server_leave(server), ZERO_E_STATE, "rank 0 is a server"));
      EXPECT_TRUE(failed_with(zero_server_replay(server, nullptr, 0), ZERO_E_STATE, "needs ZERO_SERVER_ORDER_ARRIVAL"));
      EXPECT_TRUE(failed_with(zero_server_record(server, nullptr, 0, &number), ZERO_E_STATE, "call zero_server_run first"));
      ZERO_ASSERT_OK(zero_server_run(server, nullptr));
      EXPECT_TRUE(failed_with(zero_server_run(server, nullptr), ZERO_E_STATE, "zero_server_run has ended"));
      EXPECT_TRUE(failed_with(zero_server_record(server, nullptr, 0, &number), ZERO_E_STATE, "needs ZERO_SERVER_ORDER_ARRIVAL"));
    } else {
      EXPECT_TRUE(failed_with(zero_server_shard(server, &data, &number, &number), ZERO_E_STATE, "rank 1 is a worker"));
      EXPECT_TRUE(failed_with(zero_server_run(server, nullptr), ZERO_E_STATE, "rank 1 is a worker"));
      EXPECT_TRUE(failed_with(zero_server_replay(server, nullptr, 0), ZERO_E_STATE, "rank 1 is a worker"));
      EXPECT_TRUE(failed_with(zero_server_record(server, nullptr, 0, &number), ZERO_E_STATE, "rank 1 is a worker"));
      EXPECT_TRUE(failed_with(zero_server_push(server, values.data(), 3), ZERO_E_INVALID_ARGUMENT, "count is 3"));
      EXPECT_TRUE(failed_with(zero_server_pull(server, nullptr, 4), ZERO_E_INVALID_ARGUMENT, "data is NULL"));
      ZERO_ASSERT_OK(zero_server_push(server, values.data(), 4));
      ZERO_ASSERT_OK(zero_server_leave(server));
      EXPECT_TRUE(failed_with(zero_server_push(server, values.data(), 4), ZERO_E_STATE, "this worker has left"));
      EXPECT_TRUE(failed_with(zero_server_leave(server), ZERO_E_STATE, "this worker has left"));
    }
    zero_server_release(server);
    zero_group_release(group);
  });
}

}  // namespace
}  // namespace zero::test::server_faults_test
