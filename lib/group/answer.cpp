/// @file Waiting for answers, and their texts.
#include "group/answer.h"

#include "core/clock.h"

#include <time.h>

#include <algorithm>

namespace zero {
namespace {

constexpr int64_t kAnswerMs = 100;
constexpr int64_t kPauseNs = 200'000;
constexpr size_t kMostRanksInText = 8;

}  // namespace

void await_answers(const std::function<bool()> &complete) {
  const Deadline deadline = Deadline::after_ms(kAnswerMs);
  while (!deadline.passed()) {
    const timespec time = {0, kPauseNs};
    ::nanosleep(&time, nullptr);
    if (complete()) return;
  }
}

std::string answer_text(const std::string &name, const Answer *answer) {
  if (answer == nullptr) return name + " did not answer (stopped, ended, or busy outside libzero)";
  switch (answer->standing) {
    case Answer::inside:
      return name + " is in " + to_text(answer->where);
    case Answer::failed:
      return name + " has met an error";
    case Answer::gone:
      return name + " has left the group";
    default:
      return name + " is in no collective of this group";
  }
}

std::string standings_text(const std::vector<int64_t> &ranks, const std::function<std::string(int64_t)> &text_of) {
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanksInText); ++i) text += (i > 0 ? "; " : "") + text_of(ranks[i]);
  if (ranks.size() > kMostRanksInText) text += "; and " + std::to_string(ranks.size() - kMostRanksInText) + " more";
  return text;
}

}  // namespace zero
