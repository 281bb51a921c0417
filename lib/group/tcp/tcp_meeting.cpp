/// @file Entering a meeting over TCP: rank 0 leads it, the others connect to rank 0.
#include "group/tcp/tcp_meeting.h"

#include "core/system_random.h"
#include "group/host.h"
#include "group/tcp/tcp_bootstrap_client.h"
#include "group/tcp/tcp_bootstrap_root.h"
#include "group/tcp/tcp_socket.h"

#include <unistd.h>

namespace zero {
namespace {

std::string name_of_this_host() {
  char name[kLongestName + 1] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "a host without a name";
  return name;
}

Status make_plan(TcpTerms terms, TcpPlan *out) {
  const auto rank = lld(terms.rank);
  ZERO_CHECK(terms.rank >= 0 && terms.rank < terms.size, ZERO_E_INVALID_ARGUMENT, "rank %lld is not within 0 .. %lld", rank,
             lld(terms.size - 1));
  ZERO_TRY(parse_tcp_id(terms.id, &out->place));
  ZERO_TRY(random_u64(&out->random));
  out->deadline = Deadline::after_ms(terms.deadline_ms);
  out->self.host_id = terms.host_id != 0 ? terms.host_id : host_id();
  out->self.process = ::getpid();
  out->self.host_name = name_of_this_host();
  out->terms = std::move(terms);
  return {};
}

void meet_alone(const TcpPlan &plan, std::vector<TcpPeer> *out, uint64_t *out_name) {
  out->clear();
  out->push_back({plan.self.host_id, plan.self.process, plan.self.host_name, nullptr});
  *out_name = plan.random;
}

}  // namespace

Task meet_over_tcp(TcpTerms terms, std::vector<TcpPeer> *out, uint64_t *out_name) {
  TcpPlan plan{{}, {}, {}, Deadline::after_ms(0), 0};
  ZERO_CO_TRY(make_plan(std::move(terms), &plan));
  OwnedFd listener;
  if (plan.terms.rank == 0) listener = take_listener(plan.terms.id);
  if (plan.terms.size == 1) {
    meet_alone(plan, out, out_name);
    co_return Status();
  }
  const uint16_t port = plan.terms.rank == 0 ? plan.place.port : 0;
  if (!listener.valid()) ZERO_CO_TRY(listen_on(port, &listener));
  if (plan.terms.rank == 0) {
    TcpBootstrapRoot root(std::move(listener), plan, out, out_name);
    co_return co_await root;
  }
  TcpBootstrapClient client(std::move(listener), plan, out, out_name);
  co_return co_await client;
}

}  // namespace zero
