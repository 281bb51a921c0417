/// @file Parameter servers as a program uses them: the bits of a sequential program, replays,
/// means. The reference of updates is an optimizer of one rank.
#include "tests/api/server_world.h"
#include "tests/sizes.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace zero::test::server_test {
namespace {

using namespace server_world;

float first_value(int64_t i) { return static_cast<float>((i * 37) % 101 - 50) / 64; }

/// The value that worker `worker` pushes in round `round` for parameter value `param`.
float pushed_value(float param, int64_t worker, int64_t round, int64_t i) {
  return param * 0.25F + static_cast<float>((worker * 31 + round * 17 + i * 7) % 29 - 14) / 32;
}

Values pushed_values(const Values &params, int64_t worker, int64_t round) {
  Values values(params.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = pushed_value(params[i], worker, round, static_cast<int64_t>(i));
  return values;
}

struct Served {
  Values params;                               ///< parameters of all servers, at the end
  std::vector<std::vector<uint16_t>> records;  ///< by server
  std::vector<zero_server_result> results;
};

struct Play {
  int64_t rounds = 3;
  bool records = false;
  std::vector<std::vector<uint16_t>> replays = {};
  uint64_t jitter = 0;  ///< seed of pauses; 0: none
};

void serve(const Rank &rank, const Play &play, Served *out) {
  void *data = nullptr;
  int64_t offset = -1;
  int64_t count = -1;
  const auto own = static_cast<size_t>(rank.id);
  ZERO_ASSERT_OK(zero_server_shard(rank.server, &data, &offset, &count));
  const std::span<float> shard(static_cast<float *>(data), static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) shard[static_cast<size_t>(i)] = first_value(offset + i);
  if (!play.replays.empty()) {
    const std::vector<uint16_t> &replay = play.replays[own];
    ZERO_ASSERT_OK(zero_server_replay(rank.server, replay.data(), std::ssize(replay)));
  }
  zero_server_result &result = out->results[own];
  ZERO_ASSERT_OK(zero_server_result_init(&result, sizeof result));
  ZERO_ASSERT_OK(zero_server_run(rank.server, &result));
  std::copy(shard.begin(), shard.end(), out->params.begin() + offset);
  if (!play.records) return;
  int64_t length = -1;
  ZERO_ASSERT_OK(zero_server_record(rank.server, nullptr, 0, &length));
  out->records[own].resize(static_cast<size_t>(length));
  ZERO_ASSERT_OK(zero_server_record(rank.server, out->records[own].data(), length, &length));
}

void work(const Rank &rank, const Case &world, const Play &play) {
  const int64_t worker = rank.id - world.servers;
  std::mt19937_64 random(play.jitter + static_cast<uint64_t>(worker));
  Values params(static_cast<size_t>(world.count));
  for (int64_t round = 0; round < play.rounds; ++round) {
    if (play.jitter != 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
    ZERO_ASSERT_OK(zero_server_pull(rank.server, params.data(), world.count));
    const Values pushed = pushed_values(params, worker, round);
    ZERO_ASSERT_OK(zero_server_push(rank.server, pushed.data(), world.count));
  }
  ZERO_ASSERT_OK(zero_server_leave(rank.server));
}

Served run(const Case &world, const Play &play) {
  Served served;
  served.params.resize(static_cast<size_t>(world.count));
  served.records.resize(static_cast<size_t>(world.servers));
  served.results.resize(static_cast<size_t>(world.servers));
  run_ranks(world, [&](Rank &rank) {
    if (rank.id < world.servers) {
      serve(rank, play, &served);
    } else {
      work(rank, world, play);
    }
  });
  return served;
}

/// The sequential program: an optimizer of one rank that makes a step for each push.
class Sequential {
 public:
  Sequential(const Configure &configure, int64_t count) : count_(count), group_(solo_group()) {
    zero_config *config = nullptr;
    ZERO_EXPECT_OK(zero_config_create(&config));
    configure(config);
    ZERO_EXPECT_OK(zero_optimizer_create(group_, config, &optimizer_));
    zero_config_release(config);
    ZERO_EXPECT_OK(zero_optimizer_add_param(optimizer_, nullptr, "w", ZERO_DTYPE_F32, &count_, 1, &param_));
    ZERO_EXPECT_OK(zero_optimizer_seal(optimizer_));
    float *params = acquire();
    for (int64_t i = 0; i < count_; ++i) params[i] = first_value(i);
    release();
    ZERO_EXPECT_OK(zero_optimizer_begin(optimizer_, ZERO_SOURCE_LOCAL));
  }
  Sequential(const Sequential &) = delete;
  ~Sequential() {
    zero_optimizer_release(optimizer_);
    zero_group_release(group_);
  }

  Values params() {
    const float *params = acquire();
    Values values(params, params + count_);
    release();
    return values;
  }
  void push(const Values &gradient) {
    ZERO_EXPECT_OK(zero_optimizer_grad_ready(optimizer_, param_, gradient.data(), 0, count_, nullptr));
    ZERO_EXPECT_OK(zero_optimizer_step(optimizer_, nullptr, nullptr));
  }

 private:
  float *acquire() {
    void *data = nullptr;
    ZERO_EXPECT_OK(zero_optimizer_param_acquire(optimizer_, param_, nullptr, 0, nullptr, &data));
    return static_cast<float *>(data);
  }
  void release() { ZERO_EXPECT_OK(zero_optimizer_param_release(optimizer_, param_)); }

  int64_t count_;
  zero_group *group_;
  zero_optimizer *optimizer_ = nullptr;
  int64_t param_ = -1;
};

struct Algorithm {
  const char *name;
  Configure more;
};

std::vector<Algorithm> algorithms() {
  const auto momentum = [](zero_config *config) {
    ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_MOMENTUM, 0.9));
    ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_LR, 0.1));
  };
  const auto accumulator = [](zero_config *config) { ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_INITIAL_ACCUMULATOR, 0.5)); };
  const auto decay = [](zero_config *config) { ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_WEIGHT_DECAY, 0.1)); };
  const auto none = [](zero_config *) {};
  return {{"sgd", none}, {"sgd", momentum}, {"adam", decay}, {"adamw", none}, {"adagrad", accumulator}, {"lion", decay}};
}

Configure configured(const Algorithm &algorithm) {
  return [algorithm](zero_config *config) {
    ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_ALGORITHM, algorithm.name));
    algorithm.more(config);
  };
}

Values sequential(const Configure &configure, const Case &world, int64_t rounds) {
  Sequential program(configure, world.count);
  for (int64_t round = 0; round < rounds; ++round) {
    const Values seen = program.params();
    for (int64_t worker = 0; worker < world.workers; ++worker) program.push(pushed_values(seen, worker, round));
  }
  return program.params();
}

TEST(Server, RoundRobinHasTheBitsOfASequentialProgram) {
  for (const Algorithm &algorithm : algorithms()) {
    for (int64_t servers = 1; servers <= 2; ++servers) {
      for (int64_t workers = 1; workers <= 4; ++workers) {
        for (const int64_t count : {0, 1, 255, 513, 4099}) {
          if (!full_tests() && (workers + count) % 2 == 0) continue;
          const Case world{servers, workers, count, configured(algorithm)};
          const Served served = run(world, {.jitter = 5});
          ASSERT_EQ(served.params, sequential(world.configure, world, 3))
              << algorithm.name << ", " << servers << " servers, " << workers << " workers, " << count << " elements";
          const zero_server_result &result = served.results[0];
          EXPECT_EQ(result.push_count, 3 * workers);
          EXPECT_EQ(result.pull_count, 3 * workers);
          EXPECT_EQ(result.left_count, workers);
          EXPECT_EQ(result.lost_count, 0);
          EXPECT_EQ(result.greatest_age, workers - 1);
          if (servers == 1) {
            EXPECT_EQ(result.received_nbytes, 3 * workers * count * 4);
          }
          if (servers == 1) {
            EXPECT_EQ(result.sent_nbytes, 3 * workers * count * 4);
          }
        }
      }
    }
  }
}

TEST(Server, AWorkerThatLeavesIsMissingFromLaterRounds) {
  const Case world{1, 3, 300, configured({"sgd", [](zero_config *) {}})};
  Served served{Values(300), {}, std::vector<zero_server_result>(1)};
  run_ranks(world, [&](Rank &rank) {
    if (rank.id == 0) return serve(rank, {}, &served);
    work(rank, world, {.rounds = rank.id == 2 ? 1 : 3});
  });
  Sequential program(world.configure, world.count);
  for (int64_t round = 0; round < 3; ++round) {
    const Values seen = program.params();
    for (int64_t worker = 0; worker < 3; ++worker) {
      if (worker != 1 || round < 1) program.push(pushed_values(seen, worker, round));
    }
  }
  EXPECT_EQ(served.params, program.params());
}

/// Checks ages and clocks, from the record alone.
void check_record(const std::vector<uint16_t> &record, const Case &world, int64_t staleness, const zero_server_result &result) {
  std::vector<int64_t> clocks(static_cast<size_t>(world.workers));
  std::vector<int64_t> seen(static_cast<size_t>(world.workers));
  int64_t pushes = 0;
  int64_t greatest = 0;
  for (const uint16_t call : record) {
    const size_t worker = call & 0x7fff;
    if ((call & 0x8000) != 0) {
      seen[worker] = pushes;
      continue;
    }
    greatest = std::max(greatest, pushes - seen[worker]);
    ++pushes;
    ++clocks[worker];
  }
  EXPECT_EQ(result.greatest_age, greatest);
  EXPECT_LE(greatest, (2 * staleness + 1) * (world.workers - 1));
  EXPECT_EQ(result.push_count, pushes);
  EXPECT_EQ(result.age_0_count + result.age_1_count + result.age_2_count + result.age_4_count + result.age_8_count + result.age_16_count,
            pushes);
}

TEST(Server, AReplayOfTheRecordedOrderHasTheSameBits) {
  const int64_t cases = full_tests() ? 60 : 6;
  std::mt19937_64 random(3);
  for (int64_t number = 0; number < cases; ++number) {
    const int64_t staleness = number % 3;
    const Case world{1 + number % 2, 2 + static_cast<int64_t>(random() % 3), 700, arrival(staleness, configured(algorithms()[3]))};
    const Served recorded = run(world, {.rounds = 6, .records = true, .jitter = random() | 1});
    for (size_t server = 0; server < recorded.records.size(); ++server) {
      check_record(recorded.records[server], world, staleness, recorded.results[server]);
    }
    const Served replayed = run(world, {.rounds = 6, .records = true, .replays = recorded.records, .jitter = random() | 1});
    ASSERT_EQ(replayed.params, recorded.params) << "case " << number;
    ASSERT_EQ(replayed.records, recorded.records);
  }
}

TEST(Server, AnotherOrderHasOtherBits) {
  const Case world{1, 2, 700, arrival(0, configured(algorithms()[3]))};
  const Served first = run(world, {.rounds = 1, .records = true, .replays = {{0x8000, 0x8001, 0, 1}}});
  const Served other = run(world, {.rounds = 1, .records = true, .replays = {{0x8000, 0x8001, 1, 0}}});
  EXPECT_NE(first.params, other.params);
  EXPECT_NE(first.records, other.records);
}

TEST(Server, AMovingAverageFollowsWorkers) {
  constexpr double kRate = 0.3;
  const Case world{2, 3, 515, [](zero_config *config) {
                     ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_RULE, ZERO_SERVER_RULE_AVERAGE));
                     ZERO_EXPECT_OK(zero_config_set_f64(config, ZERO_KEY_SERVER_RATE, kRate));
                   }};
  const Served served = run(world, {.rounds = 4});
  std::vector<double> wanted(515);
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = first_value(static_cast<int64_t>(i));
  for (int64_t round = 0; round < 4; ++round) {
    const std::vector<double> seen = wanted;
    for (int64_t worker = 0; worker < 3; ++worker) {
      for (size_t i = 0; i < wanted.size(); ++i) {
        const double pushed = pushed_value(static_cast<float>(seen[i]), worker, round, static_cast<int64_t>(i));
        wanted[i] = (1 - kRate) * wanted[i] + kRate * pushed;
      }
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(served.params[i], wanted[i], 1e-6) << i;
}

TEST(Server, AMeanOfEveryFewPushesReplacesTheParameters) {
  for (const int64_t period : {0, 1, 2, 5}) {
    const Case world{1, 3, 260, [period](zero_config *config) {
                       ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_RULE, ZERO_SERVER_RULE_MEAN));
                       ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_SERVER_PERIOD, period));
                     }};
    const Served served = run(world, {.rounds = 4});
    const int64_t every = period == 0 ? 3 : period;
    std::vector<double> wanted(260);
    std::vector<double> sums(260);
    int64_t pushes = 0;
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = first_value(static_cast<int64_t>(i));
    for (int64_t round = 0; round < 4; ++round) {
      const std::vector<double> seen = wanted;
      for (int64_t worker = 0; worker < 3; ++worker) {
        const bool full = ++pushes % every == 0;
        for (size_t i = 0; i < wanted.size(); ++i) {
          sums[i] += pushed_value(static_cast<float>(seen[i]), worker, round, static_cast<int64_t>(i));
          if (!full) continue;
          wanted[i] = sums[i] / static_cast<double>(every);
          sums[i] = 0;
        }
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(served.params[i], wanted[i], 1e-6) << "period " << period << ", element " << i;
  }
}

TEST(Server, APushThatIsNotFiniteIsCountedAndNotApplied) {
  for (const bool skips : {true, false}) {
    const Case world{2, 1, 600, [skips](zero_config *config) {
                       ZERO_EXPECT_OK(zero_config_set_str(config, ZERO_KEY_ALGORITHM, "sgd"));
                       const int64_t treatment = skips ? ZERO_NONFINITE_SKIP : ZERO_NONFINITE_PROPAGATE;
                       ZERO_EXPECT_OK(zero_config_set_i64(config, ZERO_KEY_NONFINITE, treatment));
                     }};
    Served served{Values(600), {}, std::vector<zero_server_result>(2)};
    run_ranks(world, [&](Rank &rank) {
      if (rank.id < 2) return serve(rank, {}, &served);
      Values gradient(600, 1.0F);
      ZERO_ASSERT_OK(zero_server_push(rank.server, gradient.data(), 600));
      gradient[599] = std::numeric_limits<float>::infinity();
      ZERO_ASSERT_OK(zero_server_push(rank.server, gradient.data(), 600));
      ZERO_ASSERT_OK(zero_server_leave(rank.server));
    });
    for (const zero_server_result &result : served.results) {
      EXPECT_EQ(result.push_count, 2);
      EXPECT_EQ(result.skipped_count, skips ? 1 : 0);
    }
    const int64_t applied = skips ? 1 : 2;
    EXPECT_NEAR(served.params[0], first_value(0) - 1e-3F * static_cast<float>(applied), 1e-6);
    EXPECT_EQ(std::isfinite(served.params[599]), skips);
  }
}

TEST(Server, OthersGoOnWithoutAWorkerThatEndsInOrderOfArrival) {
  const Case world{2, 3, 600, arrival(1)};
  Served served{Values(600), std::vector<std::vector<uint16_t>>(2), std::vector<zero_server_result>(2)};
  run_ranks(world, [&](Rank &rank) {
    if (rank.id < 2) return serve(rank, {}, &served);
    if (rank.id < 4) return work(rank, world, {.rounds = 8});
    Values values(600);
    ZERO_ASSERT_OK(zero_server_push(rank.server, values.data(), 600));  // the rank is released next
  });
  for (const zero_server_result &result : served.results) {
    EXPECT_EQ(result.lost_count, 1);
    EXPECT_EQ(result.left_count, 2);
    EXPECT_EQ(result.push_count, 17);
  }
}

}  // namespace
}  // namespace zero::test::server_test
