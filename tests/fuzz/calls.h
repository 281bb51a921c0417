/// @file The calls of one rank: each is written down with its outcome and its time, waited for or begun and tested by chance, and left out
/// or changed where this rank is to deviate. Knows nothing of trainings.
#pragma once

#include "core/clock.h"
#include "tests/fuzz/program.h"

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace zero::test::fuzz {

/// What a rank does otherwise than the others.
struct Deviation {
  enum class Kind { none, skips, aborts, leaves, lingers, comes_late, meets_elsewhere, asks_otherwise } kind = Kind::none;
  int64_t rank = 0;
  int64_t at = 0;  ///< number of the collective; of the argument for asks_otherwise

  std::string text() const;
};

/// Thrown where a rank cannot go on.
struct Stopped {};

class Calls {
 public:
  /// limit_ms: what no call may take; 0: errors are not expected.
  Calls(zero_group *group, uint64_t seed, int64_t limit_ms, Deviation deviation)
      : group_(group), random_(seed), limit_ms_(limit_ms), deviation_(deviation) {}

  /// Writes down one call.
  template <class Call>
  int32_t make(const std::string &text, Call &&call) {
    const int64_t begin = now_ns();
    const int32_t status = call();
    close(text, status, (now_ns() - begin) / 1'000'000);
    return status;
  }

  /// A function that waits for other ranks, or its twin.
  template <class... A>
  int32_t meet(const std::string &text, int32_t (*function)(A...), std::type_identity_t<int32_t (*)(A..., zero_request **)> twin,
               std::type_identity_t<A>... arguments) {
    if (deviates()) return ZERO_OK;
    const int64_t way = random_.below(4);
    if (way >= 2) return make(text, [&] { return function(arguments...); });
    Request request;
    const int32_t begun = make(text + " begun", [&] { return twin(arguments..., &request.handle); });
    if (begun != ZERO_OK) return begun;
    if (meanwhile) meanwhile();
    return make(text, [&] { return way == 0 ? zero_request_wait(request.handle) : test(request.handle); });
  }

  /// The call had to succeed. Stops the rank otherwise.
  void must(int32_t status);
  /// The call had to be refused so.
  void refused(int32_t status, int32_t wanted);
  /// Where all ranks agree.
  void expect(bool holds, const std::string &what) {
    if (!may_fail()) check(holds, what);
  }
  /// 0 .. n - 1: the given argument, or another one where this rank deviates.
  int64_t vary(int64_t value, int64_t n);

  bool may_fail() const { return limit_ms_ > 0; }
  Random &random() { return random_; }
  const std::vector<std::string> &lines() const { return lines_; }
  const std::vector<std::string> &failures() const { return failures_; }
  int64_t errors() const { return errors_; }

  std::function<void()> meanwhile;  ///< calls made while an operation is under way

 private:
  void check(bool holds, const std::string &what);
  struct Request {
    Request() = default;
    Request(const Request &) = delete;
    ~Request() { zero_request_release(handle); }
    zero_request *handle = nullptr;
  };
  static int32_t test(zero_request *request) {
    int64_t done = 0;
    for (;;) {
      const int32_t status = zero_request_test(request, &done);
      if (status != ZERO_OK || done == 1) return status;
      std::this_thread::yield();
    }
  }
  /// Whether this collective is left out; whatever else this rank does is done.
  bool deviates();
  void close(const std::string &text, int32_t status, int64_t took_ms);

  zero_group *group_;
  Random random_;
  const int64_t limit_ms_;
  const Deviation deviation_;
  int64_t collectives_ = 0;
  int64_t arguments_ = 0;
  int64_t errors_ = 0;
  std::vector<std::string> lines_;
  std::vector<std::string> failures_;
};

}  // namespace zero::test::fuzz
