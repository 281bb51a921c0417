/// @file What became of calls that are to fail, and how long they took.
#pragma once

#include "core/clock.h"
#include "core/status.h"
#include "tests/status_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace zero::test {

inline int64_t ms_since(int64_t begin_ns) { return (now_ns() - begin_ns) / 1'000'000; }

struct TimedOutcome {
  Status status;
  int64_t waited_ms = 0;
};

/// Of a call that returns a Status.
template <class Call>
TimedOutcome timed(Call &&call) {
  const int64_t begin = now_ns();
  Status status = call();
  return {std::move(status), ms_since(begin)};
}

/// All have that error, whose text has these words, and came within the limit.
inline void expect_errors(const std::vector<TimedOutcome> &outcomes, int32_t code, std::initializer_list<std::string_view> words,
                          int64_t limit_ms) {
  for (const TimedOutcome &outcome : outcomes) {
    EXPECT_EQ(outcome.status.code(), code) << status_name(outcome.status.code()) << ": " << outcome.status.text();
    for (const std::string_view each : words) EXPECT_TRUE(contains(outcome.status, each)) << outcome.status.text();
    EXPECT_LE(outcome.waited_ms, limit_ms) << outcome.status.text();
  }
}

}  // namespace zero::test
