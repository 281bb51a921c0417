/// @file The health of a group over MPI: poison, and progress reports of ranks.
#include "group/mpi/mpi_transport.h"
#include "group/peer_status.h"

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
  // Recorded first, because the rest needs memory.
  links_.root().note_failure();
  failure_ = cause;
  tell_failure();
}

void MpiTransport::tell_failure() {
  MpiControl message;
  message.kind = MpiControl::poison;
  message.code = failure_.code();
  std::strncpy(message.text, failure_.text(), sizeof message.text - 1);
  links_.send_to_all(message);
}

void MpiTransport::publish(const Fingerprint *fingerprint) {
  const auto guard = lock();
  published_.publish(fingerprint);
}

void MpiTransport::publish_message(const Fingerprint &fingerprint, bool ends) {
  const auto guard = lock();
  published_.publish_message(fingerprint, ends);
}

void MpiTransport::on_control(int64_t source, const MpiControl &message) {
  const int64_t peer = links_.rank_of(source);
  if (peer < 0) return;
  if (message.kind == MpiControl::left) links_.note_left(peer, message);
  if (message.kind == MpiControl::answer && !answers_.empty()) answers_[static_cast<size_t>(peer)] = message;
  if (message.kind == MpiControl::poison && failure_.ok()) failure_ = Status::error(message.code, "%s", message.text);
}

void MpiTransport::answer(MpiControl *out) const {
  const PeerStatus mine = published_.status(failure_);
  out->code = static_cast<int32_t>(mine.state);
  out->where = mine.where;
}

std::vector<int64_t> MpiTransport::missing() const {
  std::vector<int64_t> ranks;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (awaiting_[static_cast<size_t>(peer)] != Awaiting::nothing) ranks.push_back(peer);
  }
  return ranks;
}

/// The ranks that a timeout in `mine` concerns.
std::vector<int64_t> MpiTransport::awaited(const Fingerprint &mine) const {
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

void MpiTransport::ask(const std::vector<int64_t> &ranks) {
  if (ranks.empty()) return;
  {
    const auto guard = lock();
    answers_.resize(static_cast<size_t>(size()));
    MpiControl query;
    query.kind = MpiControl::query;
    for (const int64_t peer : ranks) {
      answers_[static_cast<size_t>(peer)] = MpiControl();
      links_.tell(peer, query);
    }
  }
  await_answers([&] {
    const auto guard = lock();
    // Ignores an error: the caller is about to report one.
    if (!links_.root().progress().ok()) return true;
    return std::all_of(ranks.begin(), ranks.end(), [&](int64_t peer) { return answered(peer); });
  });
}

std::vector<int64_t> MpiTransport::find_suspects(const Fingerprint &mine, std::vector<int64_t> *out_awaited) {
  {
    const auto guard = lock();
    *out_awaited = awaited(mine);
  }
  ask(*out_awaited);
  std::vector<int64_t> suspects;
  {
    const auto guard = lock();
    for (const int64_t peer : *out_awaited) {
      const PeerStatus told = answer_of(peer);
      if (!waits_in(answered(peer) ? &told : nullptr, mine)) suspects.push_back(peer);
    }
  }
  if (!suspects.empty() || is_message(mine.kind)) return suspects;
  std::vector<int64_t> others = others_to_ask(size(), *out_awaited);
  std::erase_if(others, [this](int64_t peer) { return !meets(peer); });
  ask(others);
  const auto guard = lock();
  std::erase_if(others, [this](int64_t peer) { return answered(peer); });
  return others;
}

/// A thread that must not call MPI cannot ask the ranks: it may itself be the cause of the wait.
std::string MpiTransport::suspicions(const Fingerprint &mine) {
  if (const Status allowed = links_.root().check_thread(); !allowed.ok()) return allowed.text();
  std::vector<int64_t> asked;
  return texts_of(find_suspects(mine, &asked));
}

std::string MpiTransport::progress_report(const Fingerprint &mine) {
  if (const Status allowed = links_.root().check_thread(); !allowed.ok()) return allowed.text();
  std::vector<int64_t> asked;
  const std::vector<int64_t> suspects = find_suspects(mine, &asked);
  return texts_of(suspects.empty() ? asked : suspects);
}

std::string MpiTransport::texts_of(const std::vector<int64_t> &ranks) const {
  const auto guard = lock();
  return progress_text(ranks, [this](int64_t peer) { return progress_of(peer); });
}

PeerStatus MpiTransport::answer_of(int64_t peer) const {
  const MpiControl &told = answers_[static_cast<size_t>(peer)];
  return {told.code, told.where};
}

std::string MpiTransport::progress_of(int64_t peer) const {
  const PeerStatus answer = answer_of(peer);
  return peer_status_text("rank " + std::to_string(peer), answered(peer) ? &answer : nullptr);
}

}  // namespace zero
