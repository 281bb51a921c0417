/// @file Writing calls down and judging them.
#include "tests/fuzz/calls.h"

namespace zero::test::fuzz {
namespace {

/// What a rank may be told when ranks do not agree: anything but that the library or the process is broken.
bool may_come(int32_t status, const std::string &line) {
  // A rank that was left in the middle of a step says so when it reads what lies on it.
  if (status == ZERO_E_CORRUPT) return line.find("was half applied when ranks were lost") != std::string::npos;
  if (status >= ZERO_E_DEVICE && status <= ZERO_E_INVALID_ARGUMENT) return status != ZERO_E_BAD_HANDLE && status != ZERO_E_BUSY;
  if (status == ZERO_E_REPLICAS_DIFFER || status == ZERO_E_POOL_LIMIT) return true;
  return status >= ZERO_E_TRANSPORT && status <= ZERO_E_TIMEOUT;
}

std::string last_text() {
  std::array<char, 1024> text;
  zero_last_error_copy(text.data(), std::ssize(text));
  return text.data();
}

}  // namespace

std::string Deviation::text() const {
  static constexpr const char *kNames[] = {"agrees",  "skips",      "aborts",          "leaves",
                                           "lingers", "comes late", "meets elsewhere", "asks otherwise"};
  return "rank " + std::to_string(rank) + " " + kNames[static_cast<int>(kind)] + " at " + std::to_string(at);
}

void Calls::close(const std::string &text, int32_t status, int64_t took_ms) {
  std::string line = text;
  if (status != ZERO_OK) {
    ++errors_;
    line += std::string(" -> ") + zero_status_name(status) + ": " + last_text();
  }
  if (took_ms > 100) line += " (" + std::to_string(took_ms) + " ms)";
  lines_.push_back(line);
  if (limit_ms_ == 0) return;
  check(took_ms <= limit_ms_, "took too long: " + line);
  check(status == ZERO_OK || may_come(status, line), "is no error for this: " + line);
}

void Calls::must(int32_t status) {
  if (status == ZERO_OK) return;
  expect(false, "had to succeed: " + lines_.back());
  throw Stopped();
}

void Calls::refused(int32_t status, int32_t wanted) {
  if (status == wanted) return;
  expect(false, std::string("had to be ") + zero_status_name(wanted) + ": " + lines_.back());
  throw Stopped();
}

void Calls::check(bool holds, const std::string &what) {
  if (!holds) failures_.push_back(what);
}

int64_t Calls::vary(int64_t value, int64_t n) {
  const bool otherwise = deviation_.kind == Deviation::Kind::asks_otherwise && arguments_++ == deviation_.at && n > 1;
  if (!otherwise) return value;
  lines_.push_back("# asks otherwise");
  return (value + 1) % n;
}

bool Calls::deviates() {
  if (deviation_.kind == Deviation::Kind::none || deviation_.kind == Deviation::Kind::asks_otherwise) return false;
  if (collectives_++ != deviation_.at) return false;
  lines_.push_back("# " + deviation_.text());
  switch (deviation_.kind) {
    case Deviation::Kind::skips:
      return true;
    case Deviation::Kind::aborts:
      zero_group_abort(group_, "by chance");
      return false;
    case Deviation::Kind::leaves:
      throw Stopped();
    case Deviation::Kind::lingers:
      std::this_thread::sleep_for(std::chrono::milliseconds(limit_ms_ / 2));
      return false;
    case Deviation::Kind::comes_late:
      std::this_thread::sleep_for(std::chrono::milliseconds(limit_ms_ / 8));
      return false;
    default:
      must(make("group_barrier", [&] { return zero_group_barrier(group_); }));
      return false;
  }
}

}  // namespace zero::test::fuzz
