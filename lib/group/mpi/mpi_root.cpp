/// @file The communicator of a root, its control messages, and memory that outlives its group.
#include "group/mpi/mpi_root.h"

#include "group/peer_status.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kControlTag = 0;

int64_t used_nbytes(const MpiControl &message) {
  return static_cast<int64_t>(offsetof(MpiControl, text) + ::strnlen(message.text, sizeof message.text - 1) + 1);
}

}  // namespace

void MpiBlock::reserve(int64_t nbytes) {
  if (nbytes <= nbytes_) return;
  data_ = std::make_unique<std::byte[]>(static_cast<size_t>(nbytes));
  nbytes_ = nbytes;
}

bool MpiBlock::idle() const {
  return std::none_of(requests_.begin(), requests_.end(), [](const MpiRequest &request) { return request.active; });
}

MpiRoot::MpiRoot(const MpiProcess &process, int64_t linger_ms) : process_(process), linger_ms_(linger_ms) {}

bool MpiRoot::may_call() const { return process_.thread_level >= ZERO_MPI_THREAD_MULTIPLE || std::this_thread::get_id() == process_.owner; }

Status MpiRoot::check_thread() const {
  ZERO_CHECK(
      may_call(), ZERO_E_STATE,
      "MPI did not grant MPI_THREAD_MULTIPLE, so groups over MPI can be used only from the thread that created the first; initialise "
      "MPI with MPI_Init_thread and MPI_THREAD_MULTIPLE, or let libzero initialise it");
  return {};
}

Status MpiRoot::check_alive() const {
  ZERO_CHECK(process_.table->alive() != 0, ZERO_E_STATE,
             "MPI was finalised while a group over it was in use; release all groups before MPI_Finalize");
  return {};
}

Status MpiRoot::error(int32_t code, const char *what) const {
  char text[512];
  process_.table->error_text(code, text, sizeof text);
  return Status::error(ZERO_E_TRANSPORT, "MPI could not %s: %s", what, text);
}

Status MpiRoot::begin_duplicate(int64_t comm) {
  const int32_t code = process_.table->comm_duplicate(comm, &comm_, &duplicate_.word);
  if (code != 0) {
    char text[512];
    process_.table->error_text(code, text, sizeof text);
    return Status::error(ZERO_E_INVALID_ARGUMENT, "%lld is not the Fortran handle of an intra-communicator, nor ZERO_MPI_WORLD: %s",
                         lld(comm), text);
  }
  duplicate_.active = true;
  return {};
}

Status MpiRoot::test_duplicate(bool *out_ready) {
  ZERO_TRY(check_alive());
  ZERO_TRY(test(&duplicate_));
  *out_ready = !duplicate_.active;
  return {};
}

Status MpiRoot::open() {
  const int32_t code = process_.table->comm_open(&comm_, &rank_, &size_);
  if (code != 0) return error(code, "use its duplicate of the communicator");
  opened_ = true;
  listening_ = true;
  return listen();
}

Status MpiRoot::send(const void *data, int64_t nbytes, int64_t peer, int64_t tag, MpiRequest *request) {
  const int32_t code = process_.table->send(&comm_, data, nbytes, peer, tag, &request->word);
  if (code != 0) return error(code, "send");
  request->active = true;
  request->receiving = false;
  return {};
}

Status MpiRoot::recv(void *data, int64_t nbytes, int64_t peer, int64_t tag, MpiRequest *request) {
  const int32_t code = process_.table->recv(&comm_, data, nbytes, peer, tag, &request->word);
  if (code != 0) return error(code, "receive");
  request->active = true;
  request->receiving = true;
  return {};
}

Status MpiRoot::test(MpiRequest *request) {
  if (!request->active) return {};
  int32_t done = 0;
  const int32_t code = process_.table->test(&request->word, &done, &request->peer, &request->nbytes);
  if (code != 0) {
    request->active = false;  // a request that has failed has ended
    return error(code, "complete a message");
  }
  request->active = done == 0;
  return {};
}

Status MpiRoot::test(MpiBlock *block, bool *out_idle) {
  Status first;
  for (MpiRequest &request : block->requests()) {
    Status status = test(&request);
    if (first.ok()) first = std::move(status);
  }
  *out_idle = block->idle();
  return first;
}

Status MpiRoot::listen() { return recv(&inbox_, sizeof inbox_, -1, kControlTag, &inbox_request_); }

void MpiRoot::tell(int64_t peer, const MpiControl &message) {
  if (!opened_) return;
  auto outgoing = std::make_unique<Outgoing>();
  outgoing->peer = peer;
  outgoing->message = message;
  outbox_.push_back(std::move(outgoing));
  if (may_call() && process_.table->alive() != 0) flush();
}

void MpiRoot::flush() {
  for (const std::unique_ptr<Outgoing> &outgoing : outbox_) {
    if (outgoing->started) continue;
    outgoing->started = true;
    // If this fails, the peer notices at its deadline.
    if (!send(&outgoing->message, used_nbytes(outgoing->message), outgoing->peer, kControlTag, &outgoing->request).ok()) failed_ = true;
  }
}

Status MpiRoot::progress() {
  if (!may_call() || !opened_) return {};
  ZERO_TRY(check_alive());
  flush();
  ZERO_TRY(receive());
  reap();
  return {};
}

/// Handles each message once: only a receive that has just ended without an error holds a new one.
Status MpiRoot::receive() {
  while (listening_) {
    if (!inbox_request_.active) ZERO_TRY(listen());  // the last receive has failed
    ZERO_TRY(test(&inbox_request_));
    if (inbox_request_.active) break;
    const MpiControl message = inbox_;
    const int64_t source = inbox_request_.peer;
    Status listened = listen();
    dispatch(source, message);
    ZERO_TRY(std::move(listened));
  }
  return {};
}

void MpiRoot::dispatch(int64_t source, const MpiControl &message) {
  if (message.kind == MpiControl::query) return reply(source, message);
  if (message.kind == MpiControl::bye) {
    ++byes_;
    if (message.code != 0) peer_failed_ = true;
    return;
  }
  if (message.kind == MpiControl::poison) failed_ = true;
  if (const auto member = members_.find(message.group); member != members_.end()) {
    member->second->on_control(source, message);
  } else if (former_.count(message.group) == 0) {
    early_[message.group].emplace_back(source, message);
  }
}

void MpiRoot::reply(int64_t source, const MpiControl &query) {
  MpiControl answer;
  answer.kind = MpiControl::answer;
  answer.group = query.group;
  answer.code = former_.count(query.group) != 0 ? PeerStatus::gone : PeerStatus::outside;
  if (const auto member = members_.find(query.group); member != members_.end()) member->second->answer(&answer);
  tell(source, answer);
}

void MpiRoot::reap() {
  while (!outbox_.empty() && outbox_.front()->started) {
    if (!test(&outbox_.front()->request).ok()) failed_ = true;
    if (outbox_.front()->request.active) break;
    outbox_.pop_front();
  }
  for (std::unique_ptr<MpiBlock> *place = &lingering_; *place != nullptr;) {
    bool idle = false;
    // Ignores a failed message, because its group was released. Others of its block may still be in
    // progress.
    (void)test(place->get(), &idle);
    if (idle) {
      *place = std::move((*place)->next);
    } else {
      place = &(*place)->next;
    }
  }
}

int64_t MpiRoot::new_group_number() {
  // Unique without communication: the counter is this rank's, and its rank is part of the number. 0
  // is the root's own group.
  const int64_t number = 1 + next_group_ * size_ + rank_;
  if (tag_of(number, kMessages) > process_.tag_limit) return -1;
  ++next_group_;
  return number;
}

void MpiRoot::enroll(int64_t number, MpiMember *member) {
  members_[number] = member;
  const auto early = early_.extract(number);
  if (early.empty()) return;
  for (const auto &[source, message] : early.mapped()) member->on_control(source, message);
}

void MpiRoot::leave(int64_t number) {
  forget(number);
  former_.insert(number);
}

void MpiRoot::keep(std::unique_ptr<MpiBlock> block) noexcept {
  if (block == nullptr || block->idle()) return;
  const bool callable = may_call() && process_.table->alive() != 0;
  // Cancels receives, which would otherwise wait for ever without a sender. Sends cannot be
  // cancelled.
  for (MpiRequest &request : block->requests()) {
    if (request.active && request.receiving && callable) process_.table->cancel(&request.word);
  }
  block->next = std::move(lingering_);
  lingering_ = std::move(block);
}

int64_t MpiRoot::quarantined_nbytes() const {
  int64_t nbytes = 0;
  for (const MpiBlock *block = lingering_.get(); block != nullptr; block = block->next.get()) nbytes += block->nbytes();
  return nbytes;
}

}  // namespace zero
