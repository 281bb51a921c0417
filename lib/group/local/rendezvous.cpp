/// @file The path of a rank through a meeting: it leads the meeting if the name is free, otherwise
/// it joins. If the root has gone, it starts again.
#include "group/local/rendezvous.h"

#include "core/descriptor_room.h"
#include "group/local/rendezvous_root.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace zero {
namespace {

/// Time that a client waits for a more precise error: after the deadline for that of the root,
/// after the root's end for that of the watch.
constexpr int64_t kDecisionMs = 200;

/// Ready at a later poll. Other tasks can run in between, and after many tries the thread can
/// sleep.
class Pause final : public Waitable {
 public:
  explicit Pause(int64_t tries) : until_ns_(now_ns() + std::min(kLongestNs, tries * kStepNs)) {}

  Status poll(bool *out_ready) override {
    *out_ready = std::exchange(looked_, true) && now_ns() >= until_ns_;
    return {};
  }

 private:
  static constexpr int64_t kStepNs = 100'000;
  static constexpr int64_t kLongestNs = 5'000'000;

  int64_t until_ns_;
  bool looked_ = false;
};

Status timed_out(const MeetingTerms &terms, int64_t root_process) {
  std::string knows = "no rank answered";
  if (terms.names.empty()) knows += " (a process forked while ranks met keeps the name taken; another name is free)";
  if (root_process != 0) knows = "the meeting led by process " + std::to_string(root_process) + " was not complete";
  return Status::error(terms.late_code(), "rank %lld, one of %lld, waited %lld ms to meet the others %s: %s%s", terms.name_of(terms.rank),
                       lld(terms.size), lld(terms.deadline_ms), terms.purpose().c_str(), knows.c_str(), terms.advice());
}

/// A rank that has joined a meeting and waits for its table.
class Client final : public Waitable {
 public:
  /// All arguments but the socket must outlive the client.
  Client(OwnedFd socket, const MeetingTerms &terms, const Joiner &mine, std::vector<Joiner> *table)
      : socket_(std::move(socket)), terms_(terms), mine_(mine), table_(table), identity_(identify(socket_.get())) {
    table_->clear();
    table_->resize(static_cast<size_t>(terms.size));
  }

  /// Ready when the table is complete, or when the meeting has ended before any entry arrived (then
  /// complete() is false).
  Status poll(bool *out_ready) override {
    if (!said_hello_) ZERO_TRY(say_hello());
    while (!ended_) {
      Packet packet;
      const Received received = receive_packet(socket_.get(), &packet);
      ZERO_CHECK(received != Received::no_descriptors, ZERO_E_SYSTEM,
                 "rank %lld (process %lld) has too few file descriptors for %lld ranks to meet (%s)", terms_.name_of(terms_.rank),
                 lld(::getpid()), lld(terms_.size), descriptor_limit_text().c_str());
      ZERO_CHECK(received != Received::refused, ZERO_E_SYSTEM, "rank %lld (process %lld) cannot receive what the others bring: %s",
                 terms_.name_of(terms_.rank), lld(::getpid()), std::strerror(errno));
      if (received == Received::nothing) break;
      if (received == Received::packet) {
        ZERO_TRY(take(std::move(packet)));
        *out_ready = complete();
      } else {
        ended_ = true;
        *out_ready = entries_ == 0;
      }
      if (*out_ready) return {};
    }
    // An error of the root comes first, because it is more precise. The root has the same deadline,
    // so the client waits a moment longer.
    if (terms_.watch) ZERO_TRY(terms_.watch());
    if (!ended_ && !terms_.deadline.passed()) return {};
    // The sockets of a process close before its end is visible. The watch, which can name its rank,
    // also gets a moment.
    if (!decision_) decision_ = Deadline::after_ms(ended_ && !terms_.watch ? 0 : kDecisionMs);
    if (!decision_->passed()) return {};
    return ended_ ? abandoned() : timed_out(terms_, identity_.process);
  }

  bool complete() const { return entries_ == terms_.size - 1; }

 private:
  Status say_hello() {
    ZERO_CHECK(identity_.user == ::geteuid(), ZERO_E_RENDEZVOUS, "user %u holds the meeting \"%s\"; choose another name", identity_.user,
               terms_.name.c_str());
    PacketHeader hello;
    hello.rank = terms_.rank;
    hello.size = terms_.size;
    hello.process = mine_.process;
    hello.agree = terms_.agree;
    // If the root is already gone, the first look at the socket reports it.
    std::shared_ptr<const Mapping> held;
    const bool stays = terms_.lend != nullptr && identity_.process == mine_.process;
    const int fd = stays ? -1 : terms_.descriptor_of(mine_, &held);
    const Sent sent = send_packet(socket_.get(), hello, mine_.blob, fd);
    ZERO_CHECK(sent != Sent::refused, ZERO_E_SYSTEM, "rank %lld (process %lld) cannot send the others what it brings: %s",
               terms_.name_of(terms_.rank), lld(::getpid()), std::strerror(errno));
    said_hello_ = sent != Sent::full;
    return {};
  }

  Status abandoned() const {
    return Status::error(ZERO_E_RENDEZVOUS,
                         "process %lld, which led the meeting %s, ended, or its program closed descriptors, before rank %lld knew all "
                         "ranks",
                         lld(identity_.process), terms_.purpose().c_str(), terms_.name_of(terms_.rank));
  }

  Status take(Packet packet) {
    const PacketHeader &header = packet.header;
    ZERO_CHECK(header.version == kMeetingVersion, ZERO_E_RENDEZVOUS,
               "process %lld leads the meeting in version %u, rank %lld speaks version %u; use one build of libzero",
               lld(identity_.process), header.version, lld(terms_.rank), kMeetingVersion);
    if (header.kind == PacketKind::refusal) {
      const auto *text = reinterpret_cast<const char *>(packet.blob.data());
      const auto code = static_cast<int32_t>(static_cast<int64_t>(header.agree));
      return Status::error(code < 0 ? code : ZERO_E_RENDEZVOUS, "%.*s", static_cast<int>(packet.blob.size()), text);
    }
    const bool fits = header.kind == PacketKind::entry && header.rank >= 0 && header.rank < terms_.size && header.rank != terms_.rank;
    ZERO_CHECK(fits, ZERO_E_RENDEZVOUS, "process %lld leads the meeting \"%s\" but does not keep to the protocol", lld(identity_.process),
               terms_.name.c_str());
    (*table_)[static_cast<size_t>(header.rank)] = {header.process, header.same_process != 0, std::move(packet.blob), std::move(packet.fd)};
    ++entries_;
    return {};
  }

  OwnedFd socket_;
  const MeetingTerms &terms_;
  const Joiner &mine_;
  std::vector<Joiner> *table_;
  PeerIdentity identity_;
  int64_t entries_ = 0;
  bool said_hello_ = false;
  bool ended_ = false;  ///< the root's socket has ended
  std::optional<Deadline> decision_;
};

}  // namespace

/// Never leads a meeting: that takes descriptors, of which this rank may have only one. Each root
/// tells the ranks that have joined it. Later ranks have another root, so this rank keeps trying.
Task call_off(MeetingTerms terms, Status cause) {
  constexpr int64_t kMomentMs = 1000;
  terms.deadline = Deadline::after_ms(std::min(kMomentMs, terms.deadline.left_ms()));
  for (int64_t tries = 0; !terms.deadline.passed(); ++tries) {
    const OwnedFd socket = connect_to_root(terms.name);
    if (socket.valid() && identify(socket.get()).user == ::geteuid()) {
      refuse(cause, socket.get(), terms.rank, terms.size);
      if (terms.size == 2) break;
    }
    Pause pause(tries);
    ZERO_CO_AWAIT(pause);
  }
  co_return Status();
}

namespace {

/// Called if this rank lacks a resource for a meeting. Closes its own descriptor, so that it can
/// open a socket to tell the others.
Task give_up(MeetingTerms terms, Joiner mine, Status cause) {
  mine.fd.reset(-1);
  if (!terms.names.empty()) co_return cause;  // ranks of a group notice the failure without it
  Status told = Status::error(ZERO_E_RENDEZVOUS, "rank %lld (process %lld) cannot take part: %s", lld(terms.rank), lld(::getpid()),
                              cause.text());
  Task calling = call_off(std::move(terms), std::move(told));
  ZERO_CO_AWAIT(calling);
  co_return cause;
}

Task lead(OwnedFd listener, const MeetingTerms &terms, Joiner *mine, std::vector<Joiner> *out) {
  RendezvousRoot root(std::move(listener), terms, mine, out);
  co_return co_await root;
}

}  // namespace

Task rendezvous(MeetingTerms terms, Joiner mine, std::vector<Joiner> *out) {
  ZERO_CO_CHECK(terms.rank >= 0 && terms.rank < terms.size, ZERO_E_INVALID_ARGUMENT, "rank %lld is not within 0 .. %lld", lld(terms.rank),
                lld(terms.size - 1));
  ZERO_CO_CHECK(mine.blob.size() <= kMaxBlobBytes, ZERO_E_INVALID_ARGUMENT, "a blob of %zu bytes passes the limit of %zu", mine.blob.size(),
                kMaxBlobBytes);
  mine.process = ::getpid();
  for (int64_t tries = 0;; ++tries) {
    OwnedFd socket;
    Role role = Role::again;
    Status entered = enter_meeting(terms.name, &socket, &role);
    if (role == Role::root) {
      Task leading = lead(std::move(socket), terms, &mine, out);
      entered = co_await leading;
      if (entered.code() != ZERO_E_SYSTEM) co_return entered;
    }
    if (!entered.ok()) {
      Task giving_up = give_up(std::move(terms), std::move(mine), std::move(entered));
      co_return co_await giving_up;
    }
    if (role == Role::client) {
      std::vector<Joiner> table;
      Client client(std::move(socket), terms, mine, &table);
      ZERO_CO_AWAIT(client);
      if (client.complete()) {
        table[static_cast<size_t>(terms.rank)] = std::move(mine);
        *out = std::move(table);
        co_return Status();
      }
    }
    if (terms.watch) ZERO_CO_TRY(terms.watch());
    if (terms.deadline.passed()) co_return timed_out(terms, 0);
    Pause pause(tries);
    ZERO_CO_AWAIT(pause);
  }
}

}  // namespace zero
