/// @file The health of a group over sockets: received frames, poison, ranks that left or lost their
/// connection, and progress reports.
#include "group/tcp/tcp_transport.h"

#include <algorithm>
#include <cstring>

namespace zero {
namespace {

constexpr size_t kLongestText = 4096;
/// All that is known of a rank whose connection has ended.
constexpr const char *kCutOff = "has no connection any more (it ended, its program closed descriptors, or its host cannot be reached)";

}  // namespace

bool TcpTransport::on_frame(int64_t source, TcpFrame &&frame) {
  const auto found = std::find(members_.begin(), members_.end(), source);
  if (found == members_.end()) return false;
  const int64_t rank = found - members_.begin();
  Peer &peer = at(rank);
  switch (frame.kind()) {
    case TcpKind::round:
      return note_round(peer, std::move(frame));
    case TcpKind::poison:
      return note_poison(frame);
    case TcpKind::left:
      peer.left = true;
      return true;
    case TcpKind::answer:
      return note_answer(peer, frame);
    case TcpKind::query:
      return false;  // the mesh answers
    default:
      return messages_.on_frame(rank, std::move(frame));
  }
}

bool TcpTransport::note_poison(const TcpFrame &frame) {
  const std::span<const std::byte> content = frame.content();
  if (content.size() < sizeof(int32_t)) return false;
  const auto code = frame.begin<int32_t>();
  if (code >= 0) return false;
  const auto *text = reinterpret_cast<const char *>(content.data() + sizeof code);
  if (failure_.ok()) failure_ = Status::error(code, "%.*s", static_cast<int>(content.size() - sizeof code), text);
  return true;
}

bool TcpTransport::note_answer(Peer &peer, const TcpFrame &frame) {
  if (frame.content().size() != sizeof(PeerStatus)) return false;
  peer.answered = true;
  peer.answer = frame.begin<PeerStatus>();
  return true;
}

PeerStatus TcpTransport::answer() const { return published_.status(failure_); }

void TcpTransport::tell_failure() {
  const int32_t code = failure_.code();
  const std::string_view text(failure_.text());
  send_to_all(TcpKind::poison, bytes_of(code), std::as_bytes(std::span(text.substr(0, kLongestText))));
}

/// The first cause wins.
Status TcpTransport::fail(const Status &cause) {
  if (!failure_.ok()) return failure_;
  failure_ = cause;
  tell_failure();
  return failure_;
}

std::string TcpTransport::describe(int64_t peer) const {
  const TcpPeer &known = mesh_->peer(mesh_rank(peer));
  return "rank " + std::to_string(name_of(peer)) + " (process " + std::to_string(known.process) + " on " + known.host_name + ")";
}

/// Checks that the group still works. A rank whose connection has ended is an error only for a rank
/// that waits for others: it may have finished. All frames that ranks sent before their connection
/// ended have been handed out.
Status TcpTransport::look(const Fingerprint *doing, bool waits) {
  ZERO_TRY(failure_);
  for (int64_t peer = 0; peer < size(); ++peer) {
    const TcpMesh::State state = this->state(peer);
    if (state == TcpMesh::State::none || state == TcpMesh::State::open || at(peer).left) continue;
    const bool ended = state == TcpMesh::State::ended;
    if (ended && !waits) continue;
    const std::string what = doing != nullptr ? "in " + to_text(*doing) : "in no call of this group";
    return fail(Status::error(ended ? ZERO_E_PEER_LOST : ZERO_E_TRANSPORT, "%s %s, while rank %lld was %s", describe(peer).c_str(),
                              ended ? kCutOff : "sent what no rank would send", name_of(rank()), what.c_str()));
  }
  return {};
}

Status TcpTransport::check_left(int64_t peer, const Fingerprint *doing) {
  if (!at(peer).left) return {};
  const std::string what = doing != nullptr ? "in " + to_text(*doing) : "in no call of this group";
  return fail(Status::error(ZERO_E_PEER_LEFT, "%s released its group or optimizer while rank %lld was %s", describe(peer).c_str(),
                            name_of(rank()), what.c_str()));
}

Status TcpTransport::health() {
  const auto guard = lock();
  mesh_->progress();
  return look(doing(), false);
}

Status TcpTransport::watch() {
  const auto guard = lock();
  mesh_->progress();
  ZERO_TRY(look(doing(), true));
  for (int64_t peer = 0; peer < size(); ++peer) ZERO_TRY(check_left(peer, doing()));
  return {};
}

Status TcpTransport::watch_peer(int64_t peer, const Fingerprint &doing) {
  const auto guard = lock();
  mesh_->progress();
  ZERO_TRY(look(&doing, true));
  return check_left(peer, &doing);
}

void TcpTransport::poison(const Status &cause) {
  const auto guard = lock();
  static_cast<void>(fail(cause));
}

void TcpTransport::publish(const Fingerprint *fingerprint) {
  const auto guard = lock();
  published_.publish(fingerprint);
}

void TcpTransport::publish_message(const Fingerprint &fingerprint, bool ends) {
  const auto guard = lock();
  published_.publish_message(fingerprint, ends);
}

/// The ranks that a timeout in `mine` concerns: the peer of a message, ranks that have not arrived,
/// or ranks that do not read what was sent to them.
std::vector<int64_t> TcpTransport::awaited(const Fingerprint &mine) const {
  if (is_message(mine.kind)) return {mine.root};
  std::vector<int64_t> ranks;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (missing_ > 0 ? at(peer).awaited : !mesh_->flushed(mesh_rank(peer))) ranks.push_back(peer);
  }
  return ranks;
}

bool TcpTransport::heard_of(int64_t peer) const { return at(peer).answered || at(peer).left || state(peer) != TcpMesh::State::open; }

void TcpTransport::ask(const std::vector<int64_t> &ranks) {
  if (ranks.empty()) return;
  {
    const auto guard = lock();
    for (const int64_t peer : ranks) {
      at(peer).answered = false;
      tell(peer, TcpKind::query);
    }
  }
  await_answers([&] {
    const auto guard = lock();
    mesh_->progress();
    return std::all_of(ranks.begin(), ranks.end(), [this](int64_t peer) { return heard_of(peer); });
  });
}

std::vector<int64_t> TcpTransport::find_suspects(const Fingerprint &mine, std::vector<int64_t> *out_awaited) {
  {
    const auto guard = lock();
    *out_awaited = awaited(mine);
  }
  ask(*out_awaited);
  std::vector<int64_t> suspects;
  {
    const auto guard = lock();
    for (const int64_t peer : *out_awaited) {
      if (at(peer).left || !waits_in(at(peer).answered ? &at(peer).answer : nullptr, mine)) suspects.push_back(peer);
    }
  }
  if (!suspects.empty() || is_message(mine.kind)) return suspects;
  std::vector<int64_t> others = others_to_ask(size(), *out_awaited);
  std::erase_if(others, [this](int64_t peer) { return !linked(peer); });
  ask(others);
  const auto guard = lock();
  std::erase_if(others, [this](int64_t peer) { return at(peer).left || at(peer).answered; });
  return others;
}

std::string TcpTransport::suspicions(const Fingerprint &mine) {
  std::vector<int64_t> asked;
  return texts_of(find_suspects(mine, &asked));
}

std::string TcpTransport::progress_report(const Fingerprint &mine) {
  std::vector<int64_t> asked;
  const std::vector<int64_t> suspects = find_suspects(mine, &asked);
  return texts_of(suspects.empty() ? asked : suspects);
}

std::string TcpTransport::texts_of(const std::vector<int64_t> &ranks) const {
  const auto guard = lock();
  return progress_text(ranks, [this](int64_t peer) { return progress_of(peer); });
}

std::string TcpTransport::progress_of(int64_t peer) const {
  const std::string name = describe(peer);
  const Peer &state = at(peer);
  if (state.left) return name + " has left the group";
  if (this->state(peer) == TcpMesh::State::ended) return name + " " + kCutOff;
  return peer_status_text(name, state.answered ? &state.answer : nullptr);
}

}  // namespace zero
