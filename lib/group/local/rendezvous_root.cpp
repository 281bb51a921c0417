/// @file The root first collects hellos, then sends tables. Neither phase blocks.
#include "group/local/rendezvous_root.h"

#include "core/descriptor_room.h"
#include "group/end_listening.h"
#include "group/ready_sockets.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace zero {
namespace {

constexpr int kMostRefused = 4096;  ///< bound on the queue of connections to accept

OwnedFd accept_client(int listener) {
  return open_fd([listener] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
}

ssize_t peek(int socket) {
  char byte;
  return ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

bool has_nothing(int socket) { return peek(socket) < 0 && (errno == EAGAIN || errno == EINTR); }

bool hung_up(int socket) {
  const ssize_t nbytes = peek(socket);
  return nbytes == 0 || (nbytes < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

void refuse(const Status &cause, int socket, int64_t rank, int64_t size) {
  PacketHeader header;
  header.kind = PacketKind::refusal;
  header.rank = rank;
  header.size = size;
  header.agree = static_cast<uint64_t>(static_cast<int64_t>(cause.code()));
  const std::span<const char> text(cause.text(), std::strlen(cause.text()));
  send_packet(socket, header, std::as_bytes(text), -1);
}

RendezvousRoot::RendezvousRoot(OwnedFd listener, const MeetingTerms &terms, Joiner *mine, std::vector<Joiner> *out)
    : listener_(std::move(listener)), terms_(terms), mine_(mine), out_(out), clients_(static_cast<size_t>(terms.size)) {
  mine_->process = ::getpid();
}

std::string RendezvousRoot::too_few() const {
  return "rank " + std::to_string(terms_.name_of(terms_.rank)) + " (process " + std::to_string(mine_->process) +
         ") has too few file descriptors for " + std::to_string(terms_.size) + " ranks to meet";
}

/// Each other rank needs at least one socket here. Threads of this process need another one at
/// their own end.
Status RendezvousRoot::check_room() {
  if (std::exchange(has_room_, true)) return {};
  return check_descriptors(terms_.size - 1, too_few().c_str());
}

Status RendezvousRoot::poll(bool *out_ready) {
  Status status = check_room();
  if (status.ok() && terms_.watch) status = terms_.watch();
  if (status.ok() && listener_.valid()) status = collect();
  bool sent = false;
  if (status.ok() && !listener_.valid()) status = send_tables(&sent);
  if (status.ok() && sent) return finish(out_ready);
  if (status.ok() && terms_.deadline.passed()) {
    status = Status::error(terms_.late_code(), "%lld of %lld ranks met %s within %lld ms; missing: %s%s", lld(joined_), lld(terms_.size),
                           terms_.purpose().c_str(), lld(terms_.deadline_ms), missing_ranks().c_str(), terms_.advice());
  }
  return status.ok() ? status : refuse_all(status);
}

Status RendezvousRoot::collect() {
  forget_gone();
  ZERO_TRY(accept_new());
  ZERO_TRY(receive_from_new());
  // A rank that has left meanwhile, or right after its hello, does not count.
  if (joined_ == terms_.size) forget_gone();
  if (joined_ < terms_.size) return {};
  // No other rank can join this meeting. The name must be free for the next meeting before any rank
  // knows that this one succeeded.
  end_listening(&listener_);
  strangers_.clear();
  return {};
}

void RendezvousRoot::forget_gone() {
  std::vector<pollfd> polls;
  polls.reserve(clients_.size());
  for (const Client &client : clients_) polls.push_back({client.socket.get(), POLLIN, 0});
  if (!find_ready(polls)) return;
  for (size_t i = 0; i < clients_.size(); ++i) {
    // A client that has joined sends nothing more. Anything readable is its end or a violation of
    // the protocol.
    if (polls[i].revents == 0 || has_nothing(polls[i].fd)) continue;
    clients_[i] = {};
    --joined_;
  }
}

Status RendezvousRoot::accept_new() {
  constexpr size_t kMaxStrangers = 256;
  // A limit per call, so that a flood of connections does not keep the caller here.
  constexpr int kMostAtATime = 256;
  for (int i = 0; i < kMostAtATime; ++i) {
    OwnedFd socket = accept_client(listener_.get());
    if (!socket.valid()) {
      ZERO_CHECK(errno != EMFILE && errno != ENFILE, ZERO_E_SYSTEM, "%s: %s", too_few().c_str(), system_error_text(errno).c_str());
      ZERO_CHECK(errno == EAGAIN || errno == EINTR || errno == ECONNABORTED, ZERO_E_SYSTEM,
                 "rank %lld (process %lld), which leads the meeting, cannot accept the others: %s", lld(terms_.name_of(terms_.rank)),
                 lld(mine_->process), std::strerror(errno));
      return {};
    }
    const PeerIdentity identity = identify(socket.get());
    if (identity.user != ::geteuid()) continue;
    strangers_.emplace_back(std::move(socket), identity);
    // A rank that loses its place to a flood of strangers tries again.
    if (strangers_.size() > kMaxStrangers) ZERO_TRY(receive_from_new());
    while (strangers_.size() > kMaxStrangers) strangers_.pop_front();
  }
  return {};
}

Status RendezvousRoot::receive_from_new() {
  for (size_t left = strangers_.size(); left > 0; --left) {
    auto [socket, identity] = std::move(strangers_.front());
    strangers_.pop_front();
    Packet packet;
    const Received received = receive_packet(socket.get(), &packet);
    Status status;
    if (received == Received::packet) status = admit(&socket, identity, std::move(packet));
    if (received == Received::no_descriptors) {
      status = Status::error(ZERO_E_SYSTEM, "%s (%s)", too_few().c_str(), descriptor_limit_text().c_str());
    }
    if (received == Received::refused) {
      status = Status::error(ZERO_E_SYSTEM, "rank %lld (process %lld), which leads the meeting, cannot receive what the others bring: %s",
                             lld(terms_.name_of(terms_.rank)), lld(mine_->process), std::strerror(errno));
    }
    // Keeps the socket of the rank that ends the meeting, so that it gets the reason like those
    // behind it.
    if (received == Received::nothing || !status.ok()) strangers_.emplace_back(std::move(socket), identity);
    ZERO_TRY(status);
  }
  return {};
}

Status RendezvousRoot::check_terms(const PeerIdentity &identity, const PacketHeader &hello) const {
  const long long mine = lld(terms_.rank);
  const long long process = lld(identity.process);
  ZERO_CHECK(hello.version == kMeetingVersion, ZERO_E_RENDEZVOUS,
             "process %lld speaks version %u of the rendezvous, rank %lld (process %lld) version %u; use one build of libzero", process,
             hello.version, mine, lld(mine_->process), kMeetingVersion);
  const long long rank = lld(hello.rank);
  ZERO_CHECK(hello.size == terms_.size, ZERO_E_RENDEZVOUS,
             "rank %lld (process %lld) expects %lld ranks, rank %lld (process %lld) expects %lld; give all ranks the same size", rank,
             process, lld(hello.size), mine, lld(mine_->process), lld(terms_.size));
  ZERO_CHECK(hello.rank >= 0 && hello.rank < terms_.size, ZERO_E_RENDEZVOUS, "process %lld came as rank %lld of %lld", process, rank,
             lld(terms_.size));
  ZERO_CHECK(hello.agree == terms_.agree, ZERO_E_RENDEZVOUS,
             "rank %lld (process %lld) and rank %lld (process %lld) differ in their build of libzero or in ZERO_KEY_STAGING_BYTES; use one "
             "build and the same value on all ranks",
             rank, process, mine, lld(mine_->process));
  ZERO_CHECK(hello.process == identity.process, ZERO_E_RENDEZVOUS,
             "rank %lld is process %lld to itself but %lld to rank %lld; ranks that share memory must share one process namespace: "
             "give their containers one (docker --pid, Kubernetes shareProcessNamespace), or, over MPI or NCCL, each container a ZERO_HOST_ID of "
             "its own",
             rank, lld(hello.process), process, mine);
  return {};
}

/// Returns the cause of a rank that cannot join. Other packets are ignored.
Status RendezvousRoot::check_refusal(const Packet &packet) const {
  const PacketHeader &header = packet.header;
  const auto code = static_cast<int32_t>(static_cast<int64_t>(header.agree));
  const bool fits = header.kind == PacketKind::refusal && header.size == terms_.size && header.rank >= 0 && header.rank < terms_.size;
  if (!fits || code >= 0) return {};
  return Status::error(code, "%.*s", static_cast<int>(packet.blob.size()), reinterpret_cast<const char *>(packet.blob.data()));
}

/// Takes the socket if its rank has joined.
Status RendezvousRoot::admit(OwnedFd *socket, PeerIdentity identity, Packet packet) {
  if (packet.header.version == kMeetingVersion && packet.header.kind != PacketKind::hello) return check_refusal(packet);
  ZERO_TRY(check_terms(identity, packet.header));
  const int64_t rank = packet.header.rank;
  Client &client = clients_[static_cast<size_t>(rank)];
  const bool again = client.joined() && hung_up(client.socket.get());
  const int64_t first = rank == terms_.rank ? mine_->process : client.identity.process;
  ZERO_CHECK(
      rank != terms_.rank && (!client.joined() || again), ZERO_E_RENDEZVOUS,
      "rank %lld came twice, from process %lld and process %lld; give each rank once, and each group that is made at the same time a "
      "name of its own",
      lld(rank), lld(first), lld(identity.process));
  if (!again) ++joined_;
  const bool same_process = identity.process == mine_->process;
  client = {std::move(*socket), identity, {identity.process, same_process, std::move(packet.blob), std::move(packet.fd)}, 0};
  return {};
}

Status RendezvousRoot::send_tables(bool *out_done) {
  *out_done = true;
  for (int64_t to = 0; to < terms_.size; ++to) {
    Client &client = clients_[static_cast<size_t>(to)];
    while (client.joined() && client.next_entry < terms_.size) {
      const int64_t about = client.next_entry;
      const Joiner &joiner = about == terms_.rank ? *mine_ : clients_[static_cast<size_t>(about)].joiner;
      PacketHeader header;
      header.kind = PacketKind::entry;
      header.rank = about;
      header.size = terms_.size;
      header.process = joiner.process;
      header.same_process = joiner.process == client.identity.process ? 1 : 0;
      std::shared_ptr<const Mapping> held;
      int fd = -1;
      if (header.same_process == 0) {
        fd = joiner.process == mine_->process ? terms_.descriptor_of(joiner, &held) : joiner.fd.get();
      }
      const Sent sent = about == to ? Sent::done : send_packet(client.socket.get(), header, joiner.blob, fd);
      ZERO_CHECK(sent != Sent::refused, ZERO_E_SYSTEM, "rank %lld (process %lld), which leads the meeting, cannot answer the others: %s",
                 lld(terms_.name_of(terms_.rank)), lld(mine_->process), std::strerror(errno));
      // A rank that is gone now is noticed by the ranks that use its contribution.
      if (sent == Sent::closed) client.socket.reset(-1);
      if (sent == Sent::full) {
        *out_done = false;
        break;
      }
      ++client.next_entry;
    }
  }
  return {};
}

/// Tells all ranks that have connected, even without a hello. Otherwise they would lead a meeting
/// of their own until the deadline.
Status RendezvousRoot::refuse_all(const Status &cause) {
  for (Client &client : clients_) {
    if (client.joined()) refuse(cause, client.socket.get());
    client.socket.reset(-1);
  }
  for (const auto &stranger : strangers_) refuse(cause, stranger.first.get());
  strangers_.clear();
  // The descriptors of the clients are free again, so more connections can be accepted.
  for (int i = 0; i < kMostRefused && listener_.valid(); ++i) {
    const OwnedFd socket = accept_client(listener_.get());
    if (!socket.valid()) break;
    if (identify(socket.get()).user == ::geteuid()) refuse(cause, socket.get());
  }
  end_listening(&listener_);
  return cause;
}

std::string RendezvousRoot::missing_ranks() const {
  constexpr int kMaxNamed = 16;
  std::string text;
  int64_t missing = 0;
  for (int64_t rank = 0; rank < terms_.size; ++rank) {
    const Client &client = clients_[static_cast<size_t>(rank)];
    const bool taken_all = client.joined() && (listener_.valid() || client.next_entry == terms_.size);
    if (rank == terms_.rank || taken_all) continue;
    if (++missing > kMaxNamed) continue;
    if (!text.empty()) text += ", ";
    text += "rank " + std::to_string(terms_.name_of(rank));
  }
  if (missing > kMaxNamed) text += " and " + std::to_string(missing - kMaxNamed) + " more";
  return text;
}

Status RendezvousRoot::finish(bool *out_ready) {
  out_->clear();
  for (int64_t rank = 0; rank < terms_.size; ++rank) {
    Joiner &joiner = rank == terms_.rank ? *mine_ : clients_[static_cast<size_t>(rank)].joiner;
    if (joiner.same_process) joiner.fd.reset(-1);
    out_->push_back(std::move(joiner));
  }
  *out_ready = true;
  return {};
}

}  // namespace zero
