/// @file A worker's side of the calls.
#include "engine/server/worker_calls.h"

#include "group/deadline_timer.h"

namespace zero {
namespace {

const char *function_name(ServerCall call) {
  switch (call) {
    case ServerCall::push:
      return "zero_server_push";
    case ServerCall::pull:
      return "zero_server_pull";
    case ServerCall::leave:
      break;
  }
  return "zero_server_leave";
}

}  // namespace

Task WorkerCalls::over_links(ServerCall kind, const float *pushed, float *pulled, bool skips, int64_t deadline_ms) {
  links_.set_deadline_ms(deadline_ms);
  const Call call{{.call = kind, .skips = skips ? 1 : 0, .deadline_ms = deadline_ms}, pushed, pulled};
  OverLinks all(links_);
  for (size_t server = 0; server < links_.all().size(); ++server) all.add(over_link(links_.all()[server], parts_[server], call));
  ZERO_CO_AWAIT(all);
  co_return all.failure();
}

Task WorkerCalls::over_link(const ServerLink &link, Range part, const Call &call) const {
  Status blame;
  Status status = co_await link.send(&call.request);
  if (status.ok() && call.request.call != ServerCall::leave) status = co_await await_turn(link, call, &blame);
  if (status.ok() && !part.empty()) {
    if (call.request.call == ServerCall::push && call.request.skips == 0) {
      status = co_await link.send_values(call.pushed + part.begin, part.count());
    } else if (call.request.call == ServerCall::pull) {
      status = co_await link.recv_values(call.pulled + part.begin, part.count());
    }
  }
  co_return status.ok() ? status : named(status, link, call, blame);
}

/// Waits until the server is ready for the data. All waits together last at most the deadline.
Task WorkerCalls::await_turn(const ServerLink &link, const Call &call, Status *out_blame) const {
  const DeadlineTimer timer(call.request.deadline_ms);
  ServerReply reply;
  for (;;) {
    link.group->set_deadline_ms(timer.left_ms());
    ZERO_CO_AWAIT(link.recv(&reply));
    if (reply.goes != 0) break;
    *out_blame = Status::error(ZERO_E_TIMEOUT, "rank %lld, which has made %lld pushes; this rank has made %lld and may be %lld ahead",
                               lld(reply.rank), lld(reply.rank_clock), lld(reply.clock), lld(staleness_));
  }
  link.group->set_deadline_ms(call.request.deadline_ms);
  co_return Status();
}

Status WorkerCalls::named(const Status &status, const ServerLink &link, const Call &call, const Status &blame) const {
  const char *function = function_name(call.request.call);
  if (status.code() == ZERO_E_TIMEOUT && !blame.ok()) {
    return Status::error(ZERO_E_TIMEOUT,
                         "rank %lld waited %lld ms in %s at server rank %lld for %s (ZERO_KEY_SERVER_STALENESS); see why that rank is late",
                         lld(rank_), lld(call.request.deadline_ms), function, lld(link.rank), blame.text());
  }
  return Status::error(status.code(), "rank %lld failed in %s with server rank %lld: %s", lld(rank_), function, lld(link.rank),
                       status.text());
}

}  // namespace zero
