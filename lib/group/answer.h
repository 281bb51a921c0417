/// @file Answer: where a rank stands, as it says itself when another asks, and the text of those that were asked. For transports whose
/// ranks cannot look into one another's memory.
#pragma once

#include "group/fingerprint.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zero {

/// Sent as it is.
struct Answer {
  enum Standing : int32_t { outside = 0, inside = 1, failed = 2, gone = 3 };
  int64_t standing = outside;
  Fingerprint where;
};

/// Calls complete() until it is true, but no longer than a rank that is alive may take to answer.
void await_answers(const std::function<bool()> &complete);

/// `name` "is in #17 ..."; `answer` nullptr: none has come.
std::string answer_text(const std::string &name, const Answer *answer);
/// text_of(rank) of the first of them, and how many more there are.
std::string standings_text(const std::vector<int64_t> &ranks, const std::function<std::string(int64_t)> &text_of);

}  // namespace zero
