/// @file The order in which a server serves, in random schedules: the bound of staleness on clocks and ages, rounds, records and replays.
/// Everything is counted again from what was served.
#include "engine/server/push_order.h"

#include "tests/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

namespace zero::test::push_order_test {
namespace {

constexpr uint16_t kPull = 0x8000;

/// Workers that pull and push by turns, `rounds` times each, and leave.
struct Schedule {
  int64_t workers;
  int64_t staleness;
  int64_t rounds;
  bool round_robin;
};

/// What a run served, counted apart from the order itself.
struct Served {
  std::vector<uint16_t> record;
  int64_t greatest_age = 0;
  int64_t greatest_lead = 0;  ///< pushes that a worker was ahead of the slowest when it was served
};

struct Player {
  int64_t calls = 0;  ///< made so far: pull, push, pull, ...
  int64_t clock = 0;
  int64_t seen = 0;  ///< pushes of all before its last pull
  bool waits = false;
  bool here = true;
};

class Played {
 public:
  Played(const Schedule &schedule, uint64_t seed)
      : schedule_(schedule),
        order_(schedule.workers, schedule.staleness, schedule.round_robin),
        players_(static_cast<size_t>(schedule.workers)),
        random_(seed) {}

  PushOrder &order() { return order_; }
  const Served &served() const { return served_; }
  void lose_one_after(int64_t pushes) { lose_after_ = pushes; }

  void play() {
    while (order_.any_active()) {
      const int64_t ready = order_.next();
      if (ready >= 0 && (random_() % 2 == 0 || none_can_act())) {
        serve(ready);
      } else {
        ASSERT_FALSE(none_can_act()) << "nobody is served and nobody can act";
        act();
      }
      if (lose_after_ >= 0 && pushes_ >= lose_after_) lose();
    }
  }

 private:
  Player &player(int64_t worker) { return players_[static_cast<size_t>(worker)]; }

  bool none_can_act() const {
    return std::none_of(players_.begin(), players_.end(), [](const Player &each) { return each.here && !each.waits; });
  }

  void act() {
    int64_t worker = 0;
    do {
      worker = static_cast<int64_t>(random_() % static_cast<uint64_t>(schedule_.workers));
    } while (!player(worker).here || player(worker).waits);
    Player &each = player(worker);
    if (each.calls == 2 * schedule_.rounds) {
      each.here = false;
      order_.end(worker, false);
      return;
    }
    order_.arrive(worker, each.calls++ % 2 == 0 ? ServerCall::pull : ServerCall::push);
    each.waits = true;
  }

  void serve(int64_t worker) {
    Player &each = player(worker);
    ASSERT_TRUE(each.waits);
    const bool pull = order_.call(worker) == ServerCall::pull;
    int64_t least = each.clock;
    for (const Player &other : players_) {
      if (other.here) least = std::min(least, other.clock);
    }
    served_.greatest_lead = std::max(served_.greatest_lead, each.clock - least);
    served_.record.push_back(static_cast<uint16_t>(worker) | (pull ? kPull : uint16_t{0}));
    if (!pull) {
      ASSERT_EQ(order_.age(worker), pushes_ - each.seen);
      served_.greatest_age = std::max(served_.greatest_age, pushes_ - each.seen);
      ++each.clock;
      ++pushes_;
    }
    each.seen = pull ? pushes_ : each.seen;
    each.waits = false;
    order_.serve(worker);
  }

  void lose() {
    lose_after_ = -1;
    const auto worker = static_cast<int64_t>(random_() % static_cast<uint64_t>(schedule_.workers));
    if (!player(worker).here) return;
    player(worker).here = false;
    player(worker).waits = false;
    order_.end(worker, true);
  }

  const Schedule schedule_;
  PushOrder order_;
  std::vector<Player> players_;
  std::mt19937_64 random_;
  Served served_;
  int64_t pushes_ = 0;
  int64_t lose_after_ = -1;
};

Schedule random_schedule(std::mt19937_64 &random, bool round_robin) {
  return {1 + static_cast<int64_t>(random() % 4), round_robin ? 0 : static_cast<int64_t>(random() % 4), static_cast<int64_t>(random() % 12),
          round_robin};
}

int64_t age_bound(const Schedule &schedule) { return (2 * schedule.staleness + 1) * (schedule.workers - 1); }

constexpr int64_t kSchedules = 10'000;
constexpr int64_t kQuick = 1'000;

int64_t schedules() { return full_tests() ? kSchedules : kQuick; }

TEST(PushOrder, NoWorkerIsFurtherAheadThanTheBoundAndNoPushOlder) {
  std::mt19937_64 random(1);
  std::vector<int64_t> furthest(4);
  bool reached_age = false;
  for (int64_t number = 0; number < schedules(); ++number) {
    const Schedule schedule = random_schedule(random, false);
    Played run(schedule, random());
    if (number % 5 == 0) run.lose_one_after(static_cast<int64_t>(random() % 8));
    run.play();
    ASSERT_FALSE(HasFatalFailure()) << "schedule " << number;
    ASSERT_LE(run.served().greatest_lead, schedule.staleness) << "schedule " << number;
    ASSERT_LE(run.served().greatest_age, age_bound(schedule)) << "schedule " << number;
    ASSERT_EQ(run.order().counts().greatest_age, run.served().greatest_age);
    ASSERT_EQ(run.order().record(), run.served().record);
    int64_t &furthest_lead = furthest[static_cast<size_t>(schedule.staleness)];
    furthest_lead = std::max(furthest_lead, run.served().greatest_lead);
    reached_age = reached_age || (schedule.workers > 1 && run.served().greatest_age == age_bound(schedule));
  }
  // The bounds are sharp: they do not hold merely because nobody comes near.
  EXPECT_EQ(furthest, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_TRUE(reached_age);
}

TEST(PushOrder, RoundsApplyPushesByRankAndShowThemWhole) {
  std::mt19937_64 random(2);
  for (int64_t number = 0; number < schedules() / 4; ++number) {
    const Schedule schedule = random_schedule(random, true);
    Played run(schedule, random());
    run.play();
    ASSERT_FALSE(HasFatalFailure()) << "schedule " << number;
    int64_t pushes = 0;
    for (const uint16_t call : run.served().record) {
      if ((call & kPull) != 0) {
        ASSERT_EQ(pushes % schedule.workers, 0) << "a pull saw a part of a round, schedule " << number;
      } else {
        ASSERT_EQ(call, pushes++ % schedule.workers) << "schedule " << number;
      }
    }
    ASSERT_EQ(pushes, schedule.workers * schedule.rounds);
  }
}

TEST(PushOrder, AReplayServesInTheRecordedOrderHoweverRequestsArrive) {
  std::mt19937_64 random(3);
  for (int64_t number = 0; number < schedules() / 4; ++number) {
    const Schedule schedule = random_schedule(random, false);
    Played recorded(schedule, random());
    recorded.play();
    Played replayed(schedule, random());
    ASSERT_TRUE(replayed.order().follow(recorded.order().record()).ok());
    replayed.play();
    ASSERT_FALSE(HasFatalFailure()) << "schedule " << number;
    ASSERT_EQ(replayed.served().record, recorded.served().record) << "schedule " << number;
    ASSERT_TRUE(replayed.order().check(1).ok());
  }
}

TEST(PushOrder, ARecordThatDoesNotFitIsRefused) {
  const std::vector<uint16_t> record = {kPull | 1, 0, 1};
  PushOrder few(1, 0, false);
  EXPECT_EQ(few.follow(record).code(), ZERO_E_INVALID_ARGUMENT);

  PushOrder other(2, 0, false);
  ASSERT_TRUE(other.follow(record).ok());
  other.arrive(0, ServerCall::push);
  EXPECT_EQ(other.next(), -1);
  EXPECT_EQ(other.waits_for(0), 1);
  EXPECT_TRUE(other.check(3).ok());
  other.arrive(1, ServerCall::push);
  const Status kind = other.check(3);
  EXPECT_EQ(kind.code(), ZERO_E_MISMATCH);
  EXPECT_STREQ(kind.text(),
               "request 0 of the record is a pull of rank 4, which comes with a push; replay makes the calls of the recorded run");

  PushOrder gone(2, 0, false);
  ASSERT_TRUE(gone.follow(record).ok());
  gone.end(1, false);
  EXPECT_EQ(gone.check(3).code(), ZERO_E_MISMATCH);

  PushOrder longer(2, 0, false);
  ASSERT_TRUE(longer.follow({}).ok());
  EXPECT_TRUE(longer.check(3).ok());
  longer.arrive(1, ServerCall::pull);
  EXPECT_STREQ(longer.check(3).text(),
               "the record has 0 requests and all were served, but rank 4 comes with a pull; replay a run of the same length");
}

TEST(PushOrder, AgesFallIntoTheirClasses) {
  PushOrder order(2, 100, false);
  order.arrive(0, ServerCall::pull);
  order.serve(0);
  for (int64_t push = 0; push < 20; ++push) {
    order.arrive(1, ServerCall::pull);
    order.serve(1);
    order.arrive(1, ServerCall::push);
    order.serve(1);
  }
  order.arrive(0, ServerCall::push);
  order.serve(0);
  EXPECT_EQ(order.counts().greatest_age, 20);
  EXPECT_EQ(order.counts().ages, (std::array<int64_t, ServedCounts::kAgeClasses>{20, 0, 0, 0, 0, 1}));
  EXPECT_EQ(order.counts().pulls, 21);
}

}  // namespace
}  // namespace zero::test::push_order_test
