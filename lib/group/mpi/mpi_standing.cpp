/// @file The health of a group over MPI: poison, and what ranks tell each other about where they stand.
#include "group/answer.h"
#include "group/mpi/mpi_transport.h"

#include <algorithm>
#include <cstring>

namespace zero {

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
  out->code = !failure_.ok() ? Answer::failed : inside_ ? Answer::inside : Answer::outside;
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
  if (is_message(mine.kind)) return {mine.root};
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
  await_answers([&] {
    const auto guard = lock();
    // An error here changes nothing: the caller is about to report one.
    if (!links_.root().progress().ok()) return true;
    return std::all_of(asked.begin(), asked.end(), [&](int64_t peer) { return answers_[static_cast<size_t>(peer)].kind != 0; });
  });
  const auto guard = lock();
  return standings_text(asked, [this](int64_t peer) { return standing_of(peer); });
}

std::string MpiTransport::standing_of(int64_t peer) const {
  const MpiControl &told = answers_[static_cast<size_t>(peer)];
  const Answer answer{told.code, told.where};
  return answer_text("rank " + std::to_string(peer), told.kind == MpiControl::answer ? &answer : nullptr);
}

}  // namespace zero
