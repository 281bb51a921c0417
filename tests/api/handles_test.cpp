/// @file The table of handles by itself.
#include "api/handles.h"

#include "api/barrier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace zero::api::handles_test {
namespace {

/// Counts its living instances.
struct Counted {
  explicit Counted(std::atomic<int64_t> &counter) : living(counter) { ++living; }
  ~Counted() { --living; }
  std::atomic<int64_t> &living;
};

void expect_bad(Kind kind, uint64_t handle, const std::string &named) {
  std::shared_ptr<void> object;
  const Status status = find_handle(kind, handle, "thing", &object);
  EXPECT_EQ(ZERO_E_BAD_HANDLE, status.code());
  EXPECT_NE(std::string::npos, std::string(status.text()).find(named)) << status.text();
  EXPECT_NE(std::string::npos, std::string(status.text()).find("thing")) << status.text();
  EXPECT_EQ(nullptr, object);
}

TEST(Barrier, LetsNoExceptionOutAndKeepsItsText) {
  EXPECT_EQ(guarded([]() -> Status { throw std::bad_alloc(); }), ZERO_E_OUT_OF_MEMORY);
  EXPECT_EQ(guarded([]() -> Status { throw std::runtime_error("the text"); }), ZERO_E_INTERNAL);
  EXPECT_EQ(last_code(), ZERO_E_INTERNAL);
  EXPECT_NE(std::string(last_text()).find("unexpected exception: the text"), std::string::npos) << last_text();
  EXPECT_EQ(guarded([]() -> Status { throw 7; }), ZERO_E_INTERNAL);
  EXPECT_NE(std::string(last_text()).find("unexpected exception"), std::string::npos) << last_text();
}

TEST(Handles, KindsHaveTheNamesOfTheirTypes) {
  EXPECT_STREQ(kind_name(Kind::config), "zero_config");
  EXPECT_STREQ(kind_name(Kind::request), "zero_request");
  EXPECT_STREQ(kind_name(Kind::none), "no handle");
}

TEST(Handles, AreOddAndFindTheirObject) {
  const auto object = std::make_shared<int>(7);
  const uint64_t handle = insert_handle(Kind::group, object);
  EXPECT_EQ(1U, handle & 1);
  std::shared_ptr<void> found;
  EXPECT_TRUE(find_handle(Kind::group, handle, "group", &found).ok());
  EXPECT_EQ(object, found);
  std::shared_ptr<void> removed;
  EXPECT_TRUE(remove_handle(Kind::group, handle, "group", &removed).ok());
  EXPECT_EQ(object, removed);
}

TEST(Handles, NullStaleForeignAndMadeUpOnesAreNamed) {
  const uint64_t live = insert_handle(Kind::buffer, std::make_shared<int>(1));
  const uint64_t stale = insert_handle(Kind::group, std::make_shared<int>(2));
  std::shared_ptr<void> object;
  EXPECT_TRUE(remove_handle(Kind::group, stale, "group", &object).ok());
  object = nullptr;
  expect_bad(Kind::group, 0, "NULL");
  expect_bad(Kind::group, stale, "was released");
  expect_bad(Kind::group, live, "a zero_buffer; expected a zero_group");
  expect_bad(Kind::group, 0xdeadbeef00, "no handle of libzero");
  expect_bad(Kind::group, ~uint64_t{0}, "no handle of libzero");
  const Status twice = remove_handle(Kind::group, stale, "thing", &object);
  EXPECT_EQ(ZERO_E_BAD_HANDLE, twice.code());
  EXPECT_TRUE(remove_handle(Kind::buffer, live, "thing", &object).ok());
}

TEST(Handles, ReusedSlotsNeverGiveAnOldValueAgain) {
  std::set<uint64_t> seen;
  const int64_t live_before = live_handles();
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t handle = insert_handle(Kind::config, std::make_shared<int>(i));
    EXPECT_TRUE(seen.insert(handle).second);
    std::shared_ptr<void> object;
    EXPECT_TRUE(remove_handle(Kind::config, handle, "config", &object).ok());
  }
  EXPECT_EQ(live_before, live_handles());
}

TEST(Handles, RandomValuesFindNothing) {
  std::vector<uint64_t> live;
  for (int i = 0; i < 1000; ++i) live.push_back(insert_handle(Kind::request, std::make_shared<int>(i)));
  const std::set<uint64_t> known(live.begin(), live.end());
  std::mt19937_64 random(20240911);
  int64_t lookups = 0;
  for (; lookups < 1'000'000; ++lookups) {
    uint64_t value = random();
    // Half of them near a live one: one bit changed.
    if (lookups % 2 == 0) value = live[value % live.size()] ^ (uint64_t{1} << (value >> 58));
    if (known.count(value) != 0) continue;
    std::shared_ptr<void> object;
    ASSERT_EQ(ZERO_E_BAD_HANDLE, find_handle(Kind::request, value, "request", &object).code()) << std::hex << value;
  }
  std::printf("random lookups = %lld\n", static_cast<long long>(lookups));
  for (const uint64_t handle : live) {
    std::shared_ptr<void> object;
    EXPECT_TRUE(remove_handle(Kind::request, handle, "request", &object).ok());
  }
}

TEST(Handles, ReleaseByAnotherThreadDoesNotFreeUnderACall) {
  std::atomic<int64_t> living = 0;
  for (int round = 0; round < 500; ++round) {
    const uint64_t handle = insert_handle(Kind::group, std::make_shared<Counted>(living));
    std::atomic<int64_t> removed = 0;
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        std::shared_ptr<void> object;
        if (find_handle(Kind::group, handle, "group", &object).ok()) {
          EXPECT_GE(static_cast<Counted *>(object.get())->living.load(), 1);
        }
        std::shared_ptr<void> mine;
        if (remove_handle(Kind::group, handle, "group", &mine).ok()) ++removed;
      });
    }
    threads.clear();
    EXPECT_EQ(1, removed.load());
    EXPECT_EQ(0, living.load());
  }
}

TEST(Handles, EveryKindHasAName) {
  for (const Kind kind : {Kind::config, Kind::group, Kind::buffer, Kind::optimizer, Kind::request}) {
    EXPECT_EQ(0U, std::string(kind_name(kind)).find("zero_"));
  }
  EXPECT_STREQ("no handle", kind_name(Kind::none));
}

}  // namespace
}  // namespace zero::api::handles_test
