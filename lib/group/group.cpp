/// @file The frame of every collective: sequence, fingerprint, deadline, poison.
#include "group/group.h"

#include "core/log.h"

#include <algorithm>
#include <new>

namespace zero {
namespace {

size_t counter_index(OperationKind kind) {
  const auto number = static_cast<size_t>(kind);
  return number < kOperationKinds ? number : 0;
}

/// A round's worth, or an element of every sum that blocks of ranks make for one another where that
/// is more.
size_t scratch_nbytes(const Transport &transport) {
  const int64_t block = transport.capabilities().host_block;
  return block == 1
             ? 0
             : static_cast<size_t>(std::max(transport.capabilities().round_nbytes, 2 * transport.size() / block * int64_t{sizeof(double)}));
}

}  // namespace

Group::Group(std::shared_ptr<Transport> transport, std::shared_ptr<const Reducer> reducer, int64_t deadline_ms)
    : transport_(std::move(transport)),
      reducer_(std::move(reducer)),
      place_(transport_->capabilities().place),
      deadline_ms_(deadline_ms),
      messages_(transport_->size()),
      scratch_(scratch_nbytes(*transport_)) {}

/// Peers get the abort of a group above before they see that this rank has left.
Group::~Group() {
  try {
    if (const Status aborted = aborted_above(); !aborted.ok()) fail(aborted);
  } catch (const std::bad_alloc &) {
    // They see that it has left.
  }
}

Status Group::usable() {
  const Status health = transport_->peers().health();
  if (health.ok() && !failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(failure_mutex_);
  if (failure_.ok()) failure_ = health;
  failed_.store(true, std::memory_order_release);
  return failure_;
}

Status Group::look() {
  if (const Status aborted = aborted_above(); !aborted.ok()) fail(aborted);
  return usable();
}

/// A group that this one heeds may not have received the abort: the aborting rank may have left it.
Status Group::aborted_above() const {
  ZERO_TRY(aborted_among(above_));
  const std::shared_ptr<Group> heeded = heeded_.lock();
  return heeded != nullptr ? aborted_among(heeded->above_) : Status();
}

Status Group::aborted_among(const std::vector<std::weak_ptr<Group>> &groups) {
  for (const std::weak_ptr<Group> &group : groups) {
    const std::shared_ptr<Group> living = group.lock();
    if (living == nullptr) continue;
    Status standing = living->usable();
    if (standing.code() == ZERO_E_ABORTED) return standing;
  }
  return {};
}

void Group::fail(const Status &cause) {
  const Status told = told_to_peers(cause, transport_->peers().name_of(rank()));
  std::vector<std::weak_ptr<Group>> children;
  bool first = false;
  {
    const std::lock_guard lock(failure_mutex_);
    if (cause.code() == ZERO_E_ABORTED) {
      aborted_ = cause;
      children.swap(children_);
    }
    first = failure_.ok();
    if (first) failure_ = poisons_group(cause.code()) ? cause : told;
    failed_.store(true, std::memory_order_release);
  }
  // Also if another thread is about to: no call returns a failure before the peers that read its
  // memory have received it.
  transport_->peers().poison(told);
  if (first) log_line("group of %lld ranks failed on rank %lld: %s", lld(size()), transport_->peers().name_of(rank()), cause.text());
  for (const std::weak_ptr<Group> &child : children) {
    if (const std::shared_ptr<Group> living = child.lock()) living->fail(cause);
  }
}

void Group::adopt(const std::shared_ptr<Group> &child) {
  child->place_.core_sharers = place_.core_sharers;
  child->above_ = above_;
  child->above_.push_back(weak_from_this());
  Status aborted;
  {
    const std::lock_guard lock(failure_mutex_);
    std::erase_if(children_, [](const std::weak_ptr<Group> &other) { return other.expired(); });
    children_.push_back(child);
    aborted = aborted_;
  }
  if (!aborted.ok()) child->fail(aborted);
}

Traffic Group::traffic(OperationKind kind) const {
  const Counters &counters = counters_[counter_index(kind)];
  return {counters.calls.load(std::memory_order_relaxed), counters.elements.load(std::memory_order_relaxed),
          counters.nbytes.load(std::memory_order_relaxed)};
}

void Group::count_call(OperationKind kind) { counters_[counter_index(kind)].calls.fetch_add(1, std::memory_order_relaxed); }

void Group::count_sent(OperationKind kind, int64_t elements, int64_t nbytes) {
  Counters &counters = counters_[counter_index(kind)];
  counters.elements.fetch_add(elements, std::memory_order_relaxed);
  counters.nbytes.fetch_add(nbytes, std::memory_order_relaxed);
}

void Group::count_direct(OperationKind kind, int64_t elements, int64_t nbytes) {
  count_call(kind);
  count_sent(kind, elements, nbytes);
}

/// Poisons the group for a call that has failed, and awaits that the transport lets go of the
/// memory that it was given.
class GivingUp final : public Waitable {
 public:
  GivingUp(Group &group, const Status &cause) : peers_(group.transport().peers()) { group.fail(cause); }
  Status poll(bool *out_ready) override {
    *out_ready = peers_.withdrawn();
    return {};
  }

 private:
  PeerHealth &peers_;
};

Task Group::collective(Fingerprint fingerprint, Task body) {
  ZERO_CO_TRY(check_call(sequence_ + 1));
  fingerprint.sequence = ++sequence_;
  fingerprint.caller = caller_;
  current_ = fingerprint;
  first_round_ = true;
  timer_.reset();
  transport_->peers().publish(&current_);
  Status status = co_await body;
  transport_->peers().publish(nullptr);
  if (!status.ok()) {
    GivingUp end(*this, status);
    ZERO_CO_AWAIT(end);
    co_return status;
  }
  count_call(fingerprint.kind);
  co_return status;
}

/// Only what waits needs the clock. A deadline that is set meanwhile is the next call's.
DeadlineTimer &Group::timer() {
  if (!timer_) timer_.emplace(deadline_ms());
  return *timer_;
}

int64_t Group::left_ms() { return timer().left_ms(); }

Status Group::check_deadline(DeadlineTimer &timer, const Fingerprint &fingerprint) {
  const DeadlineTimer::Look look = timer.look();
  if (look == DeadlineTimer::Look::remarks && log_is_on()) {
    log_line("rank %lld has waited %lld of %lld ms in %s: %s", transport_->peers().name_of(rank()), lld(timer.limit_ms() - timer.left_ms()),
             lld(timer.limit_ms()), to_text(fingerprint).c_str(), transport_->peers().progress_report(fingerprint).c_str());
  }
  if (look != DeadlineTimer::Look::ends) return {};
  return Status::error(ZERO_E_TIMEOUT, "rank %lld waited %lld ms in %s: %s", transport_->peers().name_of(rank()), lld(timer.limit_ms()),
                       to_text(fingerprint).c_str(), transport_->peers().progress_report(fingerprint).c_str());
}

Round::~Round() {
  if (arrived_) group_.transport_->rounds().consume();
}

Status Round::start() {
  started_ = true;
  const Fingerprint *fingerprint = group_.first_round_ ? &group_.current_ : nullptr;
  group_.first_round_ = false;
  count_sent(&Offer::nbytes);
  return group_.transport_->rounds().start(fingerprint, offers_, arrivals_);
}

void Round::count_sent(int64_t Offer::*part) {
  const int64_t element = group_.current_.dtype != 0 ? dtype_nbytes(static_cast<DType>(group_.current_.dtype)) : 1;
  int64_t elements = 0;
  int64_t nbytes = 0;
  for (size_t peer = 0; peer < offers_.size(); ++peer) {
    if (static_cast<int64_t>(peer) == group_.rank()) continue;
    const Offer &offer = offers_[peer];
    elements += offer.*part / (offer.element_nbytes != 0 ? offer.element_nbytes : element);
    nbytes += offer.*part;
  }
  group_.count_sent(group_.current_.kind, elements, nbytes);
}

bool Round::rest_is_there() {
  if (!std::all_of(arrivals_.begin(), arrivals_.end(), [](const Arrival &arrival) { return arrival.rest_is_there; })) return false;
  count_sent(&Offer::rest_nbytes);
  return true;
}

Status Round::poll(bool *out_ready) {
  if (!started_) ZERO_TRY(start());
  ZERO_TRY(group_.transport_->rounds().poll(&arrived_));
  *out_ready = arrived_;
  if (arrived_) return {};
  if (const std::shared_ptr<Group> heeded = group_.heeded_.lock()) ZERO_TRY(heeded->usable());
  ZERO_TRY(above_.look(group_));
  ZERO_TRY(group_.check_deadline(group_.timer(), group_.current_));
  group_.progress_messages(nullptr);
  group_.progress_beside();
  return {};
}

Status Quiet::poll(bool *out_ready) {
  ZERO_TRY(group_.transport_->rounds().poll_quiet(out_ready));
  if (*out_ready) return {};
  ZERO_TRY(above_.look(group_));
  return group_.check_deadline(group_.timer(), group_.current_);
}

namespace {

/// Prevents nesting: work that a thread advances for others advances no further work, because its
/// queue may be one that this thread is advancing.
class Helping {
 public:
  Helping() : first_(!helping_) { helping_ = true; }
  Helping(const Helping &) = delete;
  ~Helping() {
    if (first_) helping_ = false;
  }
  bool may() const { return first_; }

 private:
  static thread_local bool helping_;
  const bool first_;
};

thread_local bool Helping::helping_ = false;

}  // namespace

void Group::progress_messages(const OperationQueue *own) {
  if (messages_.under_way()->load(std::memory_order_relaxed) == (own != nullptr ? 1 : 0)) return;
  const Helping helping;
  if (helping.may()) messages_.progress(own);
}

void Group::progress_collectives() {
  const Helping helping;
  if (helping.may()) (void)queue_->progress();
}

void Group::progress_beside() {
  const std::shared_ptr<OperationQueue> queue = beside_.lock();
  if (queue == nullptr || queue->watched()) return;
  const Helping helping;
  if (helping.may()) (void)queue->progress();
}

/// A message under way, in either direction.
class MessageUnderWay final : public Waitable {
 public:
  using PollPeer = Status (Messages::*)(int64_t, bool *);
  MessageUnderWay(Group &group, const Fingerprint &fingerprint, int64_t peer, PollPeer poll_peer, const OperationQueue *queue)
      : group_(group),
        fingerprint_(fingerprint),
        peer_(peer),
        poll_peer_(poll_peer),
        queue_(queue),
        count_(group.messages_.under_way()),
        timer_(group.deadline_ms()) {
    count_->fetch_add(1, std::memory_order_relaxed);
  }
  MessageUnderWay(const MessageUnderWay &) = delete;
  ~MessageUnderWay() { count_->fetch_sub(1, std::memory_order_relaxed); }

  Status poll(bool *out_ready) override {
    ZERO_TRY((group_.transport_->messages().*poll_peer_)(peer_, out_ready));
    if (*out_ready == published_) group_.transport_->peers().publish_message(fingerprint_, std::exchange(published_, !published_));
    if (*out_ready) return {};
    ZERO_TRY(above_.look(group_));
    ZERO_TRY(group_.check_deadline(timer_, fingerprint_));
    group_.progress_messages(queue_);
    group_.progress_collectives();
    return {};
  }
  Doorbell *doorbell() override { return group_.transport_->peers().doorbell(); }

 private:
  Group &group_;
  const Fingerprint &fingerprint_;
  int64_t peer_;
  PollPeer poll_peer_;
  const OperationQueue *queue_;
  const std::shared_ptr<std::atomic<int64_t>> count_;
  DeadlineTimer timer_;
  AbortWatch above_;
  bool published_ = false;  ///< publish_message() was called for it
};

Task Group::message(OperationKind kind, void *data, int64_t count, DType dtype, int64_t peer) {
  const bool sends = kind == OperationKind::send;
  uint64_t &number = sends ? messages_.sent(peer) : messages_.received(peer);
  Messages &messages = transport_->messages();
  ZERO_CO_TRY(check_call(number + 1));
  ZERO_CO_TRY(messages.check_thread(peer));
  Fingerprint fingerprint;
  fingerprint.sequence = ++number;
  fingerprint.kind = kind;
  fingerprint.dtype = static_cast<int32_t>(dtype);
  fingerprint.count = count;
  fingerprint.root = peer;
  const int64_t nbytes = count * dtype_nbytes(dtype);
  Status status = sends ? messages.send_start(peer, fingerprint, {data, nbytes}) : messages.recv_start(peer, fingerprint, data, nbytes);
  MessageUnderWay under_way(*this, fingerprint, peer, sends ? &Messages::send_poll : &Messages::recv_poll,
                            (sends ? messages_.send(peer) : messages_.recv(peer)).get());
  if (status.ok()) status = co_await under_way;
  if (!status.ok()) {
    GivingUp end(*this, status);
    ZERO_CO_AWAIT(end);
    co_return status;
  }
  count_call(kind);
  if (sends) count_sent(kind, count, nbytes);
  co_return status;
}

}  // namespace zero
