/// @file The health of a group over MPI: poison, and what ranks tell each other about where they stand.
#include "core/clock.h"
#include "group/mpi/mpi_transport.h"

#include <time.h>

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

constexpr int64_t kAnswerMs = 100;  ///< how long a rank that is alive may take to say where it stands
constexpr int64_t kPauseNs = 200'000;
constexpr size_t kMostRanksInText = 8;

void pause() {
  const timespec time = {0, kPauseNs};
  ::nanosleep(&time, nullptr);
}

std::string standing_text(int64_t rank, const MpiControl &answer) {
  const std::string name = "rank " + std::to_string(rank);
  if (answer.kind != MpiControl::answer) return name + " did not answer (stopped, ended, or busy outside libzero)";
  switch (answer.code) {
    case MpiControl::inside:
      return name + " is in " + to_text(answer.where);
    case MpiControl::failed:
      return name + " has met an error";
    case MpiControl::gone:
      return name + " has released the group";
    default:
      return name + " is in no call of this group";
  }
}

}  // namespace

Status MpiTransport::look() {
  ZERO_TRY(links_.root().progress());
  return failure_;
}

Status MpiTransport::health() {
  const auto guard = lock();
  return look();
}

Status MpiTransport::watch() {
  for (int64_t peer = 0; peer < size(); ++peer) ZERO_TRY(watch_peer(peer, Fingerprint()));
  return {};
}

Status MpiTransport::watch_peer(int64_t peer, const Fingerprint &) {
  Status status;
  {
    const auto guard = lock();
    ZERO_TRY(look());
    status = links_.check_present(peer);
  }
  if (!status.ok()) poison(status);
  return status;
}

void MpiTransport::poison(const Status &cause) {
  const auto guard = lock();
  if (!failure_.ok()) return;
  // What comes after needs memory.
  links_.root().note_failure();
  failure_ = cause;
  tell_failure();
}

void MpiTransport::tell_failure() {
  MpiControl message;
  message.kind = MpiControl::poison;
  message.code = failure_.code();
  std::strncpy(message.text, failure_.text(), sizeof message.text - 1);
  links_.tell_all(message);
}

void MpiTransport::stand(const Fingerprint *fingerprint) {
  const auto guard = lock();
  inside_ = fingerprint != nullptr;
  if (inside_) where_ = *fingerprint;
}

void MpiTransport::on_control(int64_t source, const MpiControl &message) {
  const int64_t peer = links_.rank_of(source);
  if (peer < 0) return;
  if (message.kind == MpiControl::left) links_.note_left(peer, message);
  if (message.kind == MpiControl::answer && !answers_.empty()) answers_[static_cast<size_t>(peer)] = message;
  if (message.kind == MpiControl::poison && failure_.ok()) failure_ = Status::error(message.code, "%s", message.text);
}

void MpiTransport::answer(MpiControl *out) const {
  out->code = !failure_.ok() ? MpiControl::failed : inside_ ? MpiControl::inside : MpiControl::outside;
  out->where = where_;
}

std::vector<int64_t> MpiTransport::missing() const {
  std::vector<int64_t> ranks;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (awaiting_[static_cast<size_t>(peer)] != Awaiting::nothing) ranks.push_back(peer);
  }
  return ranks;
}

/// The ranks a timeout in `mine` is about.
std::vector<int64_t> MpiTransport::suspects(const Fingerprint &mine) const {
  if (mine.kind == OperationKind::send || mine.kind == OperationKind::recv) return {mine.root};
  std::vector<int64_t> ranks = missing();
  for (int64_t peer = 0; ranks.empty() && peer < size(); ++peer) {
    if (!send_blocks_idle(peer)) ranks.push_back(peer);
  }
  return ranks;
}

bool MpiTransport::send_blocks_idle(int64_t peer) const {
  return std::none_of(send_blocks_.begin(), send_blocks_.end(), [&](const std::unique_ptr<MpiBlock> &block) {
    return block->request(peer).active || block->request(size() + peer).active;
  });
}

std::string MpiTransport::standings(const Fingerprint &mine) {
  // Where this thread cannot know, it may be what all wait for.
  if (const Status allowed = links_.root().check_thread(); !allowed.ok()) return allowed.text();
  std::vector<int64_t> asked;
  {
    const auto guard = lock();
    asked = suspects(mine);
    answers_.assign(static_cast<size_t>(size()), MpiControl());
    MpiControl query;
    query.kind = MpiControl::query;
    for (const int64_t peer : asked) links_.tell(peer, query);
  }
  const Deadline deadline = Deadline::after_ms(kAnswerMs);
  for (bool complete = false; !complete && !deadline.passed();) {
    pause();
    const auto guard = lock();
    // An error here changes nothing: the caller is about to report one.
    if (!links_.root().progress().ok()) break;
    complete = std::all_of(asked.begin(), asked.end(), [&](int64_t peer) { return answers_[static_cast<size_t>(peer)].kind != 0; });
  }
  const auto guard = lock();
  return standings_text(asked);
}

std::string MpiTransport::standings_text(const std::vector<int64_t> &asked) const {
  std::string text;
  for (size_t i = 0; i < std::min(asked.size(), kMostRanksInText); ++i) {
    text += (i > 0 ? "; " : "") + standing_text(asked[i], answers_[static_cast<size_t>(asked[i])]);
  }
  if (asked.size() > kMostRanksInText) text += "; and " + std::to_string(asked.size() - kMostRanksInText) + " more";
  return text;
}

}  // namespace zero
