/// @file Group: N ranks over a transport, with the policy that transports do not have: order,
/// fingerprints, deadlines, poisoning, counters. Knows no kernels (it is given a Reducer) and no
/// users' handles.
#pragma once

#include "core/reduction.h"
#include "core/task.h"
#include "group/deadline_timer.h"
#include "group/message_queues.h"
#include "group/transport.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace zero {

/// Traffic of one operation on this rank.
struct Traffic {
  int64_t call_count = 0;
  int64_t sent_elements = 0;
  int64_t sent_nbytes = 0;
};

class Group : public std::enable_shared_from_this<Group> {
 public:
  Group(std::shared_ptr<Transport> transport, std::shared_ptr<const Reducer> reducer, int64_t deadline_ms);
  Group(const Group &) = delete;
  ~Group();

  int64_t rank() const { return transport_->rank(); }
  int64_t size() const { return transport_->size(); }
  const Place &place() const { return place_; }
  Transport &transport() { return *transport_; }
  const Transport &transport() const { return *transport_; }
  const std::shared_ptr<const Reducer> &reducer() const { return reducer_; }

  /// Memory for the collective under way; a round's worth when the group spans hosts with several
  /// ranks, otherwise empty.
  std::span<std::byte> scratch() { return scratch_; }
  /// Bytes of staging memory that this rank holds for rounds.
  int64_t staging_nbytes() const { return transport_->staging_nbytes() + static_cast<int64_t>(scratch_.size()); }

  int64_t deadline_ms() const { return deadline_ms_.load(std::memory_order_relaxed); }
  void set_deadline_ms(int64_t milliseconds) { deadline_ms_.store(milliseconds, std::memory_order_relaxed); }

  /// Collectives asked for by the group's user run here, in the order they came in.
  const std::shared_ptr<OperationQueue> &queue() { return queue_; }
  /// Messages to one peer, and from one peer, run in queues of their own.
  const std::shared_ptr<OperationQueue> &send_queue(int64_t peer) { return messages_.send(peer); }
  const std::shared_ptr<OperationQueue> &recv_queue(int64_t peer) { return messages_.recv(peer); }

  /// ZERO_OK, or the error that poisoned the group.
  Status usable();
  /// The same, and first whether a group above was aborted.
  Status look();
  /// Poisons the group here and on every peer, unless it is poisoned already. ZERO_E_ABORTED goes
  /// on to the groups split from it.
  void fail(const Status &cause);
  /// False while, after a failure, something may still use memory that was given to calls.
  bool quiet() const { return !transport_->peers().holds_memory(); }
  /// Remembers a group that was split from this one: to abort this one, on any rank, aborts it; its
  /// cores are shared as those of this one. Before anything else is done with it.
  void adopt(const std::shared_ptr<Group> &child);
  /// The numbers by which texts call this group's ranks, by rank. Before anything is done with it.
  void name_ranks(const std::vector<int64_t> &names) { transport_->peers().name_ranks(names); }
  /// A round that waits here ends when `other` fails, with its failure. Before any that does.
  void heed(std::weak_ptr<Group> other) { heeded_ = std::move(other); }
  /// A round that waits here advances `queue` meanwhile, unless a progress thread does: ranks that
  /// this one waits for may need what is in it first. Before any round does.
  void advance_beside(std::weak_ptr<OperationQueue> queue) { beside_ = std::move(queue); }

  Traffic traffic(OperationKind kind) const;
  /// Counts data that moved through peer views as the collective that it replaces.
  void count_direct(OperationKind kind, int64_t elements, int64_t nbytes);

  /// Milliseconds that are left to the collective under way, at least 1.
  int64_t left_ms();

  /// Returns the next number, from 1 on, for objects that all ranks create in the same order. Call
  /// it only in a turn in which a collective may run.
  uint64_t next_number() { return ++numbered_; }
  /// Names the caller of the collectives from now on. Only for a thread that may run one.
  void set_caller(Caller caller) { caller_ = caller; }

  /// Runs one collective: checks that the group is usable, numbers it, sets its deadline, and
  /// poisons the group when the body fails.
  Task collective(Fingerprint fingerprint, Task body);

  /// Advances what was given to the queues of messages.
  void progress_message_queues() { messages_.progress(); }

  /// Point to point, one message at a time per peer and direction.
  Task send(const void *data, int64_t count, DType dtype, int64_t peer) {
    return message(OperationKind::send, const_cast<void *>(data), count, dtype, peer);
  }
  Task recv(void *data, int64_t count, DType dtype, int64_t peer) { return message(OperationKind::recv, data, count, dtype, peer); }

 private:
  friend class AbortWatch;
  friend class Round;
  friend class Quiet;
  friend class MessageUnderWay;

  /// Sends to the peer or receives from it. A send only reads `data`.
  Task message(OperationKind kind, void *data, int64_t count, DType dtype, int64_t peer);
  /// Advances messages that others wait for while this thread waits for something else: messages
  /// and collectives do not wait for one another. `own` is a queue that this thread is advancing.
  void progress_messages(const OperationQueue *own);
  /// As progress_messages, for a thread that waits for a message.
  void progress_collectives();
  void progress_beside();
  /// Returns an error to a waiting call once the timer has ended. Logs once that a wait has become
  /// long.
  Status check_deadline(DeadlineTimer &timer, const Fingerprint &fingerprint);
  /// That of the collective under way.
  DeadlineTimer &timer();
  /// Starts every call; calls are numbered from 1. It regularly looks at the groups above, because
  /// calls that never wait would otherwise miss that such a group was aborted.
  Status check_call(uint64_t number) { return number % kCallsPerLook == 0 ? look() : usable(); }
  /// The error of a group above, or above the one that this one heeds, that was aborted, also on a
  /// rank that is not in this group.
  Status aborted_above() const;
  static Status aborted_among(const std::vector<std::weak_ptr<Group>> &groups);
  void count_call(OperationKind kind);
  void count_sent(OperationKind kind, int64_t elements, int64_t nbytes);

  static constexpr uint64_t kCallsPerLook = 16;

  struct Counters {
    std::atomic<int64_t> calls{0};
    std::atomic<int64_t> elements{0};
    std::atomic<int64_t> nbytes{0};
  };

  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<const Reducer> reducer_;
  Place place_;
  std::atomic<int64_t> deadline_ms_;
  std::shared_ptr<OperationQueue> queue_ = std::make_shared<OperationQueue>();
  MessageQueues messages_;

  // Touched only by the collective under way.
  std::vector<std::byte> scratch_;
  uint64_t sequence_ = 0;
  uint64_t numbered_ = 0;
  Caller caller_ = Caller::group;
  Fingerprint current_;
  bool first_round_ = false;
  std::optional<DeadlineTimer> timer_;  ///< from its first wait on

  std::mutex failure_mutex_;
  Status failure_;
  std::atomic<bool> failed_{false};  ///< failure_ is set
  /// The cause, when it was aborted, before or after it failed.
  Status aborted_;
  std::vector<std::weak_ptr<Group>> children_;  ///< under failure_mutex_
  std::weak_ptr<Group> heeded_;
  std::weak_ptr<OperationQueue> beside_;
  /// The group that this one was split from, and those above that.
  std::vector<std::weak_ptr<Group>> above_;

  std::array<Counters, kOperationKinds> counters_;
};

/// While it lives, what runs in the group belongs to a call of something that shares it with
/// others.
class CallerScope {
 public:
  CallerScope(Group &group, Caller caller) : group_(group) { group.set_caller(caller); }
  CallerScope(const CallerScope &) = delete;
  ~CallerScope() { group_.set_caller(Caller::group); }

 private:
  Group &group_;
};

/// Looks while something waits whether a group above was aborted: seldom, because their transports
/// may ask the system.
class AbortWatch {
 public:
  Status look(const Group &group) { return ++polls_ % kPollsPerLook == 0 ? group.aborted_above() : Status(); }

 private:
  static constexpr int32_t kPollsPerLook = 16;
  int32_t polls_ = 0;
};

/// One round of the collective under way: await it, use the arrivals; they are given back when it
/// goes out of scope.
class Round final : public Waitable {
 public:
  Round(Group &group, std::span<const Offer> offers, std::span<Arrival> arrivals) : group_(group), offers_(offers), arrivals_(arrivals) {}
  Round(const Round &) = delete;
  ~Round();
  /// Before it is awaited, so that peers see it already. Otherwise the first poll does so.
  Status start();
  Status poll(bool *out_ready) override;
  Doorbell *doorbell() override { return group_.transport_->peers().doorbell(); }

  /// After it was awaited: true when every rank's rests can be read now, so that no later round
  /// offers them. They then count as sent.
  bool rest_is_there();

 private:
  void count_sent(int64_t Offer::*part);

  Group &group_;
  std::span<const Offer> offers_;
  std::span<Arrival> arrivals_;
  bool started_ = false;
  bool arrived_ = false;
  AbortWatch above_;
};

/// Awaits that no peer reads memory offered before.
class Quiet final : public Waitable {
 public:
  explicit Quiet(Group &group) : group_(group) {}
  Status poll(bool *out_ready) override;
  Doorbell *doorbell() override { return group_.transport_->peers().doorbell(); }

 private:
  Group &group_;
  AbortWatch above_;
};

}  // namespace zero
