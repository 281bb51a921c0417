/// @file Waits for answers, and formats them.
#include "group/peer_status.h"

#include "core/clock.h"

#include <time.h>

#include <algorithm>

namespace zero {
namespace {

constexpr int64_t kAnswerMs = 100;
constexpr int64_t kPauseNs = 200'000;
constexpr size_t kMostRanksInText = 8;
constexpr int64_t kMostOthersAsked = 64;

}  // namespace

void await_answers(const std::function<bool()> &complete) {
  const Deadline deadline = Deadline::after_ms(kAnswerMs);
  while (!deadline.passed()) {
    const timespec time = {0, kPauseNs};
    ::nanosleep(&time, nullptr);
    if (complete()) return;
  }
}

bool waits_in(const PeerStatus *answer, const Fingerprint &mine) {
  if (answer == nullptr || answer->state != PeerStatus::inside || is_message(mine.kind)) return false;
  const Fingerprint &where = answer->where;
  return where.sequence == mine.sequence && where.kind == mine.kind && where.caller == mine.caller;
}

std::vector<int64_t> others_to_ask(int64_t size, const std::vector<int64_t> &asked) {
  const int64_t stride = (size + kMostOthersAsked - 1) / kMostOthersAsked;
  std::vector<int64_t> others;
  for (int64_t rank = 0; rank < size; rank += stride) {
    if (std::find(asked.begin(), asked.end(), rank) == asked.end()) others.push_back(rank);
  }
  return others;
}

std::string peer_status_text(const std::string &name, const PeerStatus *answer) {
  if (answer == nullptr) return name + " did not answer (stopped, ended, unreachable, or busy outside libzero)";
  switch (answer->state) {
    case PeerStatus::inside:
      return name + " is in " + to_text(answer->where);
    case PeerStatus::failed:
      return name + " has met an error";
    case PeerStatus::messaging:
      return name + " has " + to_text(answer->where) + " under way";
    case PeerStatus::gone:
      return name + " has left the group";
    default:
      return name + " is in no collective of this group";
  }
}

std::string progress_text(const std::vector<int64_t> &ranks, const std::function<std::string(int64_t)> &text_of) {
  std::string text;
  for (size_t i = 0; i < std::min(ranks.size(), kMostRanksInText); ++i) text += (i > 0 ? "; " : "") + text_of(ranks[i]);
  if (ranks.size() > kMostRanksInText) text += "; and " + std::to_string(ranks.size() - kMostRanksInText) + " more";
  return text;
}

}  // namespace zero
