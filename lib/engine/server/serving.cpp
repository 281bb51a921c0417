/// @file The loop of a server.
#include "engine/server/serving.h"

#include "core/clock.h"

namespace zero {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

/// True if an error concerns one worker or the connection to it: not this rank, and no abort of the
/// whole group.
bool costs_worker_alone(int32_t code) { return poisons_group(code) && code != ZERO_E_ABORTED; }

}  // namespace

/// Ready once a worker has sent a request or was lost, or once a message about a long wait is due.
class Serving::Arrivals final : public Waitable {
 public:
  explicit Arrivals(Serving &serving) : serving_(serving) {}
  Status poll(bool *out_ready) override {
    for (int64_t worker = 0; worker < serving_.worker_count(); ++worker) {
      std::optional<Operation> &listening = serving_.seat(worker).listening;
      if ((listening.has_value() && listening->advance()) || serving_.owes_word(worker)) *out_ready = true;
    }
    return {};
  }

 private:
  Serving &serving_;
};

/// Ready once no receive is in progress, after all links have failed.
class Serving::Silence final : public Waitable {
 public:
  explicit Silence(Serving &serving) : serving_(serving) {}
  Status poll(bool *out_ready) override {
    *out_ready = true;
    for (Seat &seat : serving_.seats_) {
      if (seat.listening.has_value() && !seat.listening->advance()) *out_ready = false;
    }
    return {};
  }

 private:
  Serving &serving_;
};

Serving::Serving(const ServerSettings &settings, const ServerLinks &links, HeldPart &part, int64_t rank)
    : settings_(settings),
      links_(links),
      part_(part),
      rank_(rank),
      order_(settings.worker_count, settings.staleness, settings.round_robin),
      seats_(static_cast<size_t>(settings.worker_count)) {}

ServerCounts Serving::counts() const {
  ServerCounts counts = counts_;
  counts.served = order_.counts();
  return counts;
}

/// Workers that still wait receive the error that ended the run.
Task Serving::run(int64_t deadline_ms) {
  deadline_ms_ = deadline_ms;
  links_.set_deadline_ms(deadline_ms);
  part_.begin();
  Status status = co_await serve_all();
  if (!status.ok()) {
    links_.fail(status);
    Silence silence(*this);
    ZERO_CO_AWAIT(silence);
  }
  co_return status;
}

Task Serving::serve_all() {
  for (int64_t worker = 0; worker < worker_count(); ++worker) listen(worker);
  while (order_.any_active()) {
    Arrivals arrivals(*this);
    ZERO_CO_AWAIT(arrivals);
    ZERO_CO_TRY(take_arrivals());
    for (int64_t worker = order_.next(); worker >= 0; worker = order_.next()) ZERO_CO_AWAIT(serve(worker));
    ZERO_CO_TRY(order_.check(settings_.server_count));
    ZERO_CO_AWAIT(tell_waiting());
  }
  co_return Status();
}

void Serving::listen(int64_t worker) {
  link(worker).group->set_deadline_ms(deadline_ms_);
  seat(worker).listening.emplace(link(worker).recv(&seat(worker).request));
}

Status Serving::take_arrivals() {
  for (int64_t worker = 0; worker < worker_count(); ++worker) {
    Seat &each = seat(worker);
    if (!each.listening.has_value() || !each.listening->done()) continue;
    const Status status = each.listening->status();
    each.listening.reset();
    if (!status.ok()) {
      ZERO_TRY(lose(worker, status));
    } else if (each.request.call == ServerCall::leave) {
      order_.end(worker, false);
    } else {
      order_.arrive(worker, each.request.call);
      each.arrived_ns = now_ns();
      each.told_of = -1;
      each.new_request = true;
    }
  }
  return {};
}

Status Serving::lose(int64_t worker, const Status &cause) {
  order_.end(worker, true);
  const Status lost = Status::error(cause.code(), "server rank %lld lost worker rank %lld: %s (reported by rank %lld)", lld(rank_),
                                    lld(link(worker).rank), cause.text(), lld(rank_));
  link(worker).group->fail(lost);
  return needs_all() || !costs_worker_alone(cause.code()) ? lost : Status();
}

Task Serving::serve(int64_t worker) {
  const ServerLink &to = link(worker);
  seat(worker).new_request = false;
  to.group->set_deadline_ms(transfer_ms());
  Status status;
  if (order_.call(worker) == ServerCall::push) {
    status = co_await serve_push(to, seat(worker).request);
  } else {
    status = co_await serve_pull(to);
  }
  if (!status.ok()) co_return lose(worker, status);
  order_.serve(worker);
  listen(worker);
  co_return Status();
}

/// Receives the whole push before any parameter changes.
Task Serving::serve_push(const ServerLink &link, const ServerRequest &request) {
  const ServerReply go{.goes = 1};
  ZERO_CO_AWAIT(link.send(&go));
  if (request.skips != 0) {
    ++counts_.skipped;
    co_return Status();
  }
  const int64_t count = part_.range().count();
  if (count > 0) ZERO_CO_AWAIT(link.recv_values(part_.pushed(), count));
  counts_.received_nbytes += count * static_cast<int64_t>(sizeof(float));
  part_.apply();
  co_return Status();
}

Task Serving::serve_pull(const ServerLink &link) {
  const ServerReply go{.goes = 1};
  ZERO_CO_AWAIT(link.send(&go));
  const int64_t count = part_.range().count();
  if (count > 0) ZERO_CO_AWAIT(link.send_values(part_.params(), count));
  counts_.sent_nbytes += count * static_cast<int64_t>(sizeof(float));
  co_return Status();
}

/// True once half of the worker's deadline has passed, and again when it waits for another rank.
/// Shorter waits need no message.
bool Serving::owes_word(int64_t worker) const {
  if (!order_.waits(worker)) return false;
  const Seat &each = seat(worker);
  if (now_ns() - each.arrived_ns < each.request.deadline_ms * kNsPerMs / 2) return false;
  return order_.waits_for(worker) != each.told_of;
}

Task Serving::tell_waiting() {
  for (int64_t worker = 0; worker < worker_count(); ++worker) {
    if (std::exchange(seat(worker).new_request, false)) ++counts_.waited;
    if (!owes_word(worker)) continue;
    const int64_t other = order_.waits_for(worker);
    seat(worker).told_of = other;
    const ServerReply wait{0, link(other).rank, order_.clock(other), order_.clock(worker)};
    link(worker).group->set_deadline_ms(transfer_ms());
    const Status status = co_await link(worker).send(&wait);
    if (!status.ok()) ZERO_CO_TRY(lose(worker, status));
  }
  co_return Status();
}

}  // namespace zero
