/// @file Rank 0 collects hellos, sends the entries of all ranks, then waits until they are
/// connected. Nothing ever blocks.
#include "group/tcp/tcp_bootstrap_root.h"

#include "group/ready_sockets.h"

#include <algorithm>

namespace zero {
namespace {

using Came = TcpLink::Received;

constexpr int kMostNamed = 16;

/// Build a list of at most kMostNamed names.
void name_next(std::string *list, int64_t count, const std::string &name) {
  if (count > kMostNamed) return;
  if (!list->empty()) *list += ", ";
  *list += name;
}
void name_rest(std::string *list, int64_t count) {
  if (count > kMostNamed) *list += " and " + std::to_string(count - kMostNamed) + " more";
}

void refuse(const Status &cause, TcpLink *link) {
  link->send({write_refusal(cause).bytes()});
  if (link->open()) end_connection(link->socket());
}

bool hung_up(TcpLink *link) {
  std::vector<std::byte> nothing;
  return link->receive(&nothing) != Came::nothing;
}

}  // namespace

TcpBootstrapRoot::TcpBootstrapRoot(OwnedFd listener, const TcpPlan &plan, std::vector<TcpPeer> *out, uint64_t *out_name)
    : plan_(plan), out_(out), out_name_(out_name), clients_(static_cast<size_t>(plan.terms.size)) {
  accept_queue_.emplace(std::move(listener), kLongestGreeting);
}

Status TcpBootstrapRoot::poll(bool *out_ready) {
  Status status = advance(out_ready);
  if (status.ok() && !*out_ready && plan_.deadline.passed()) status = too_late();
  if (!status.ok()) refuse_all(status);
  return status;
}

Status TcpBootstrapRoot::advance(bool *out_ready) {
  if (accept_queue_) ZERO_TRY(collect());
  if (accept_queue_) return {};
  if (!went_) ZERO_TRY(receive_from_clients());
  for (Client &client : clients_) {
    if (client.joined() && !went_) tell(&client);
  }
  if (!went_ && ready_ == plan_.terms.size) say_go();
  *out_ready = went_ && (all_flushed() || plan_.deadline.passed());
  if (*out_ready) finish();
  return {};
}

Status TcpBootstrapRoot::collect() {
  forget_gone();
  std::vector<TcpArrival> arrivals;
  ZERO_TRY(accept_queue_->look(&arrivals));
  Status status;
  for (TcpArrival &arrival : arrivals) {
    TcpHello hello;
    const bool known = read_hello(arrival.frame, &hello) && hello.token == plan_.place.token;
    // Ignores a rank whose connection ended after its hello: poll() reports nothing of a closed
    // link.
    if (!known || !arrival.link->open()) continue;
    if (status.ok()) status = admit(&arrival.link, hello);
    // Ranks that arrive together with one that does not belong here receive the same error.
    if (!status.ok() && arrival.link != nullptr) refuse(status, arrival.link.get());
  }
  // A rank that left while others joined does not count.
  if (status.ok() && joined_ == plan_.terms.size) forget_gone();
  if (status.ok() && joined_ == plan_.terms.size) {
    // Frees the port for the next meeting before any rank can know that this one succeeded.
    close_accept_queue();
    name_ = plan_.random;
  }
  return status;
}

std::vector<int64_t> TcpBootstrapRoot::ranks_with_news() const {
  std::vector<pollfd> polls;
  polls.reserve(clients_.size());
  // poll() ignores negative descriptors.
  for (const Client &client : clients_) polls.push_back({client.joined() ? client.link->socket() : -1, POLLIN, 0});
  std::vector<int64_t> out;
  if (!find_ready(polls)) return out;
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents != 0) out.push_back(static_cast<int64_t>(i));
  }
  return out;
}

/// A client that has joined sends nothing until all have joined. Input means that its connection
/// has ended, or that it breaches the protocol.
void TcpBootstrapRoot::forget_gone() {
  for (const int64_t rank : ranks_with_news()) {
    Client &client = clients_[static_cast<size_t>(rank)];
    if (!hung_up(client.link.get())) continue;
    client = {};
    --joined_;
  }
}

Status TcpBootstrapRoot::check_terms(const TcpHello &hello) const {
  const std::string mine = plan_.self.text(0);
  const std::string other = hello.who.text(hello.rank);
  ZERO_CHECK(hello.size == plan_.terms.size, ZERO_E_RENDEZVOUS, "%s expects %lld ranks, %s expects %lld; give all ranks the same size",
             other.c_str(), lld(hello.size), mine.c_str(), lld(plan_.terms.size));
  ZERO_CHECK(hello.rank >= 0 && hello.rank < plan_.terms.size, ZERO_E_RENDEZVOUS, "%s came to a meeting of %lld ranks, 0 .. %lld",
             other.c_str(), lld(plan_.terms.size), lld(plan_.terms.size - 1));
  ZERO_CHECK(hello.agree == plan_.terms.agree, ZERO_E_RENDEZVOUS,
             "%s and %s differ in their build of libzero or in ZERO_KEY_STAGING_BYTES; use one build and the same value on all ranks",
             other.c_str(), mine.c_str());
  return {};
}

/// Takes the link if its rank has joined.
Status TcpBootstrapRoot::admit(std::unique_ptr<TcpLink> *link, const TcpHello &hello) {
  ZERO_TRY(check_terms(hello));
  Client &client = clients_[static_cast<size_t>(hello.rank)];
  // A rank whose connection broke may connect again before the end of the first connection is seen.
  const bool again = client.joined() && (client.instance == hello.instance || hung_up(client.link.get()));
  ZERO_CHECK(hello.rank != 0 && (!client.joined() || again), ZERO_E_RENDEZVOUS,
             "%s came, but %s is here already; give each rank once, and each group that is made at the same time an id of its own",
             hello.who.text(hello.rank).c_str(), rank(hello.rank).text(hello.rank).c_str());
  if (!again) ++joined_;
  client = {};
  client.link = std::move(*link);
  client.instance = hello.instance;
  client.who = hello.who;
  client.who.address = peer_address(client.link->socket());
  // A loopback address is valid on this host only, so Kind::none is sent: the address of rank 0.
  if (client.who.address.loopback()) client.who.address = {};
  client.who.address.port = hello.who.address.port;
  client.link->send({TcpWriter(TcpBootstrapWord::welcome).number(plan_.self.process).text(plan_.self.host_name).bytes()});
  return {};
}

Status TcpBootstrapRoot::receive_from_clients() {
  for (const int64_t rank : ranks_with_news()) ZERO_TRY(receive(rank));
  return {};
}

/// Receives the messages of a rank while it connects to the others.
Status TcpBootstrapRoot::receive(int64_t rank) {
  Client &client = clients_[static_cast<size_t>(rank)];
  for (;;) {
    std::vector<std::byte> frame;
    const Came received = client.link->receive(&frame);
    if (received == Came::nothing) return {};
    ZERO_CHECK(received == Came::frame, ZERO_E_RENDEZVOUS, "%s ended before all ranks were connected to each other",
               client.who.text(rank).c_str());
    TcpReader reader(frame);
    if (reader.word() == TcpBootstrapWord::refusal) return read_refusal(&reader);
    const bool first_ready = reader.word() == TcpBootstrapWord::ready && !client.ready;
    const bool fits = first_ready || reader.word() == TcpBootstrapWord::complaint;
    ZERO_CHECK(fits, ZERO_E_RENDEZVOUS, "%s does not keep to the protocol of the meeting at %s", client.who.text(rank).c_str(),
               plan_.place.text().c_str());
    if (!first_ready) client.complaint = reader.text(TcpWriter::kLongestText);
    if (first_ready) {
      client.ready = true;
      ++ready_;
    }
  }
}

/// Sends more entries to a client, as fast as it reads them. With many ranks, all entries at once
/// would take much memory.
void TcpBootstrapRoot::tell(Client *client) {
  constexpr int64_t kMostAtOnce = 128;
  const int64_t size = plan_.terms.size;
  while (client->link->flush() && client->link->open() && client->told < size) {
    const int64_t count = std::min(kMostAtOnce, size - client->told);
    TcpWriter writer(TcpBootstrapWord::entries);
    writer.number(name_).number(client->told).number(count);
    for (int64_t i = 0; i < count; ++i) writer.rank(rank(client->told + i));
    client->link->send({writer.bytes()});
    client->told += count;
  }
}

void TcpBootstrapRoot::say_go() {
  for (Client &client : clients_) {
    if (client.joined()) client.link->send({TcpWriter(TcpBootstrapWord::go).bytes()});
  }
  went_ = true;
}

/// Reads nothing: from now on, input belongs to the users of the links.
bool TcpBootstrapRoot::all_flushed() {
  return std::all_of(clients_.begin(), clients_.end(), [](Client &client) { return !client.joined() || client.link->flush(); });
}

Status TcpBootstrapRoot::too_late() const {
  const std::string place = plan_.place.text();
  const long long waited = lld(plan_.terms.deadline_ms);
  const long long size = lld(plan_.terms.size);
  if (accept_queue_) {
    return Status::error(ZERO_E_RENDEZVOUS,
                         "%lld of %lld ranks met at %s within %lld ms; missing: %s. Start all ranks with the same id, see that their hosts "
                         "reach this port, or raise ZERO_KEY_RENDEZVOUS_MS",
                         lld(joined_), size, place.c_str(), waited, missing_ranks().c_str());
  }
  return Status::error(ZERO_E_RENDEZVOUS,
                       "%lld ranks met at %s but were not connected to each other within %lld ms; not ready: %s. See that the hosts reach "
                       "each other on all ports, or raise ZERO_KEY_RENDEZVOUS_MS",
                       size, place.c_str(), waited, unready_ranks().c_str());
}

std::string TcpBootstrapRoot::missing_ranks() const {
  std::string text;
  int64_t missing = 0;
  for (int64_t index = 1; index < plan_.terms.size; ++index) {
    if (!clients_[static_cast<size_t>(index)].joined()) name_next(&text, ++missing, "rank " + std::to_string(index));
  }
  name_rest(&text, missing);
  return text;
}

std::string TcpBootstrapRoot::unready_ranks() const {
  std::string text;
  int64_t unready = 0;
  for (int64_t index = 1; index < plan_.terms.size; ++index) {
    const Client &client = clients_[static_cast<size_t>(index)];
    if (client.ready) continue;
    const std::string why = client.complaint.empty() ? "" : ": " + client.complaint;
    name_next(&text, ++unready, client.who.text(index) + why);
  }
  name_rest(&text, unready);
  return text;
}

void TcpBootstrapRoot::close_accept_queue() {
  if (accept_queue_) accept_queue_->close();
  accept_queue_.reset();
}

void TcpBootstrapRoot::refuse_all(const Status &cause) {
  close_accept_queue();
  for (Client &client : clients_) {
    if (client.joined()) refuse(cause, client.link.get());
    client.link.reset();
  }
}

void TcpBootstrapRoot::finish() {
  out_->clear();
  for (int64_t index = 0; index < plan_.terms.size; ++index) {
    const TcpRank &who = rank(index);
    const bool same_host = who.host_id == plan_.self.host_id;
    std::unique_ptr<TcpLink> link = std::move(clients_[static_cast<size_t>(index)].link);
    if (same_host) link.reset();
    out_->push_back({who.host_id, who.process, who.host_name, std::move(link)});
  }
  *out_name_ = name_;
}

}  // namespace zero
