/// @file The steps of a client in a meeting. Until it has received entries of ranks, it starts
/// again whenever rank 0 is lost.
#include "group/tcp/tcp_bootstrap_client.h"

#include <algorithm>

namespace zero {
namespace {

using Came = TcpLink::Received;

/// Time after the deadline in which a client waits for the report of rank 0.
constexpr int64_t kDecisionMs = 500;
constexpr int64_t kSecondNs = 1'000'000'000;
/// If a host has several addresses and one connects but does not answer, the next one is tried.
constexpr int64_t kWelcomeNs = 5 * kSecondNs;

}  // namespace

TcpBootstrapClient::TcpBootstrapClient(OwnedFd listener, const TcpPlan &plan, std::vector<TcpPeer> *out, uint64_t *out_name)
    : plan_(plan), accept_queue_(std::move(listener), kLongestGreeting), out_(out), out_name_(out_name), instance_(plan.random) {}

Status TcpBootstrapClient::poll(bool *out_ready) {
  Status status = advance(out_ready);
  if (status.ok() && !*out_ready && plan_.deadline.passed()) status = at_deadline();
  // Once all ranks have met, a rank that fails must report it: the others cannot know the cause of
  // their wait.
  if (!status.ok() && met() && !told_ && root_link_ != nullptr) {
    root_link_->send({write_refusal(status).bytes()});
    if (root_link_->open()) end_connection(root_link_->socket());
  }
  return status;
}

Status TcpBootstrapClient::advance(bool *out_ready) {
  if (root_link_ == nullptr && !plan_.deadline.passed()) reach_root();
  if (root_link_ != nullptr) ZERO_TRY(receive_from_root());
  if (met() && !go_) ZERO_TRY(connect_peers());
  *out_ready = go_;
  if (go_) finish();
  return {};
}

/// Resolves the name again and again, because names may appear and change while ranks start.
void TcpBootstrapClient::resolve() {
  const bool due = (!dial_ || dial_->tried_all()) && now_ns() >= resolve_ns_;
  if (!due) return;
  std::vector<TcpAddress> addresses;
  const std::string error = resolve_host(plan_.place.host, plan_.place.port, &addresses);
  resolve_ns_ = now_ns() + (error.empty() ? 5 : 1) * kSecondNs;
  if (!error.empty()) trouble_ = "the host's name is not known: " + error;
  if (error.empty() && !(dial_ && dial_->goes_to(addresses))) dial_.emplace(std::move(addresses));
}

void TcpBootstrapClient::reach_root() {
  resolve();
  if (!dial_) return;
  root_link_ = dial_->look();
  if (root_link_ == nullptr) {
    trouble_ = dial_->trouble();
    return;
  }
  TcpHello hello{plan_.place.token, instance_, plan_.terms.rank, plan_.terms.size, plan_.terms.agree, plan_.self};
  hello.who.address.port = accept_queue_.port();
  root_link_->send({write_hello(hello).bytes()});
  hello_ns_ = now_ns();
}

void TcpBootstrapClient::lose_root(const std::string &why) {
  root_link_.reset();
  welcome_ = false;
  dial_->again(why);
  trouble_ = dial_->trouble();
}

Status TcpBootstrapClient::receive_from_root() {
  root_link_->flush();
  while (root_link_ != nullptr && !go_) {
    std::vector<std::byte> frame;
    const Came received = root_link_->receive(&frame);
    if (received == Came::frame) {
      ZERO_TRY(welcome_ ? take(frame) : take_first(frame));
    } else if (received == Came::nothing) {
      const bool silent = !welcome_ && dial_->addresses() > 1 && now_ns() > hello_ns_ + kWelcomeNs;
      if (silent) lose_root("connected, but nobody answered");
      return {};
    } else {
      told_ = known_ > 0;
      ZERO_CHECK(known_ == 0, ZERO_E_RENDEZVOUS,
                 "rank 0 (%s), which led the meeting at %s, ended before rank %lld was connected to all ranks", root_name_.c_str(),
                 plan_.place.text().c_str(), lld(plan_.terms.rank));
      const bool joined = welcome_;
      lose_root(joined ? "rank 0 (" + root_name_ + ") ended before all ranks had come"
                       : "the connection was closed without a word; is rank 0 of another version, or does another program listen there?");
    }
  }
  return {};
}

/// Any program may listen at the address, until it has sent the welcome of rank 0.
Status TcpBootstrapClient::take_first(std::span<const std::byte> frame) {
  TcpReader reader(frame);
  if (reader.word() == TcpBootstrapWord::refusal) return take(frame);
  const int64_t process = reader.signed_number();
  const std::string host_name = reader.text(kLongestName);
  welcome_ = reader.word() == TcpBootstrapWord::welcome && reader.whole();
  if (welcome_) {
    root_name_ = "process " + std::to_string(process) + " on " + host_name;
  } else {
    lose_root("what answers there does not speak the protocol of this version");
  }
  return {};
}

Status TcpBootstrapClient::take(std::span<const std::byte> frame) {
  TcpReader reader(frame);
  if (reader.word() == TcpBootstrapWord::refusal) {
    told_ = true;
    return read_refusal(&reader);
  }
  if (reader.word() == TcpBootstrapWord::entries && !met()) return take_entries(&reader);
  if (reader.word() != TcpBootstrapWord::go || !ready_) return breach();
  go_ = true;
  return {};
}

Status TcpBootstrapClient::breach() const {
  return Status::error(ZERO_E_RENDEZVOUS, "rank 0 (%s) leads the meeting at %s but does not keep to the protocol", root_name_.c_str(),
                       plan_.place.text().c_str());
}

Status TcpBootstrapClient::take_entries(TcpReader *reader) {
  name_ = reader->number();
  const int64_t first = reader->signed_number();
  const int64_t count = reader->signed_number();
  if (first != known_ || count < 1 || count > plan_.terms.size - known_) return breach();
  for (int64_t i = 0; i < count; ++i) ranks_.push_back(reader->rank());
  if (!reader->whole()) return breach();
  known_ += count;
  if (met()) plan_ways();
  return {};
}

void TcpBootstrapClient::plan_ways() {
  ways_.resize(static_cast<size_t>(plan_.terms.size));
  complain_ns_ = now_ns() + kSecondNs;
  for (int64_t rank = 1; rank < plan_.terms.size; ++rank) {
    const TcpRank &other = ranks_[static_cast<size_t>(rank)];
    way(rank).wanted = rank != plan_.terms.rank && other.host_id != plan_.self.host_id;
    if (!way(rank).wanted || rank > plan_.terms.rank) continue;
    // A rank on rank 0's host has the address at which this rank reached rank 0.
    TcpAddress address = other.address.kind == TcpAddress::Kind::none ? peer_address(root_link_->socket()) : other.address;
    address.port = other.address.port;
    way(rank).dial.emplace(std::vector<TcpAddress>{address});
  }
}

Status TcpBootstrapClient::connect_peers() {
  // Accepts connections until all ranks are ready: a rank that has not received the reply connects
  // again.
  ZERO_TRY(receive_peers());
  if (ready_) return {};
  for (int64_t rank = 1; rank < plan_.terms.rank; ++rank) {
    if (way(rank).wanted && !way(rank).there) reach(rank);
  }
  ready_ = std::all_of(ways_.begin(), ways_.end(), [](const Way &each) { return each.there || !each.wanted; });
  if (ready_) root_link_->send({TcpWriter(TcpBootstrapWord::ready).bytes()});
  if (!ready_) complain();
  return {};
}

/// Advances the connection to a lower rank: connects, sends the greeting, and checks the reply.
void TcpBootstrapClient::reach(int64_t rank) {
  Way &to = way(rank);
  if (to.link == nullptr) {
    to.link = to.dial->look();
    if (to.link == nullptr) return;
    to.link->send({TcpWriter(TcpBootstrapWord::greeting).number(name_).number(plan_.terms.rank).bytes()});
  }
  std::vector<std::byte> frame;
  const Came received = to.link->receive(&frame);
  if (received == Came::nothing) return;
  TcpReader reader(frame);
  to.there = received == Came::frame && reader.word() == TcpBootstrapWord::greeted && reader.number() == name_ && reader.whole();
  if (to.there) return;
  to.link.reset();
  to.dial->again("the connection was closed, or what answers is not the rank");
}

Status TcpBootstrapClient::receive_peers() {
  std::vector<TcpArrival> arrivals;
  ZERO_TRY(accept_queue_.look(&arrivals));
  for (TcpArrival &arrival : arrivals) {
    TcpReader reader(arrival.frame);
    const bool greeting = reader.word() == TcpBootstrapWord::greeting && reader.number() == name_;
    const int64_t rank = reader.signed_number();
    const bool fits = greeting && reader.whole() && rank > plan_.terms.rank && rank < plan_.terms.size && way(rank).wanted;
    if (!fits) continue;
    // A rank that connects again has lost its first connection; the new one replaces it.
    arrival.link->send({TcpWriter(TcpBootstrapWord::greeted).number(name_).bytes()});
    way(rank).link = std::move(arrival.link);
    way(rank).there = true;
  }
  return {};
}

/// Reports the missing connection to rank 0. At the deadline rank 0 sends the reports to all ranks,
/// because each rank knows only its own part.
void TcpBootstrapClient::complain() {
  if (now_ns() < complain_ns_ || !root_link_->flush()) return;
  complain_ns_ = now_ns() + kSecondNs;
  root_link_->send({TcpWriter(TcpBootstrapWord::complaint).text(lacking()).bytes()});
}

std::string TcpBootstrapClient::lacking() const {
  for (int64_t rank = 1; rank < known_; ++rank) {
    const Way &each = ways_[static_cast<size_t>(rank)];
    const std::string who = ranks_[static_cast<size_t>(rank)].text(rank);
    if (each.there || !each.wanted) continue;
    return each.dial ? "no connection to " + who + " at " + each.dial->trouble() : who + " has not connected to it";
  }
  return "";
}

/// The state of the meeting, for the text of a timeout.
std::string TcpBootstrapClient::knows() const {
  const std::string place = plan_.place.text();
  if (root_link_ == nullptr) return "nobody answered at " + place + (trouble_.empty() ? "" : " (" + trouble_ + ")");
  if (!welcome_) return "nobody answered at " + place + " (connected, but rank 0 did not answer)";
  const std::string meeting = "the meeting at " + place + ", led by " + root_name_ + ", ";
  if (!met()) return meeting + "was not complete";
  const std::string lacks = lacking();
  return meeting + (lacks.empty() ? "did not go on: other ranks were not connected to each other" : "did not go on: " + lacks);
}

Status TcpBootstrapClient::at_deadline() {
  // Rank 0 knows more, so its report takes precedence. It gets a moment after the deadline, which
  // is its own as well.
  if (!decision_) decision_ = Deadline::after_ms(root_link_ == nullptr ? 0 : kDecisionMs);
  if (root_link_ != nullptr && !decision_->passed()) return {};
  return Status::error(ZERO_E_RENDEZVOUS,
                       "rank %lld of %lld waited %lld ms to meet the others: %s. Start all ranks with the same id, see that their hosts "
                       "reach each other, or raise ZERO_KEY_RENDEZVOUS_MS",
                       lld(plan_.terms.rank), lld(plan_.terms.size), lld(plan_.terms.deadline_ms), knows().c_str());
}

void TcpBootstrapClient::finish() {
  out_->clear();
  for (int64_t rank = 0; rank < plan_.terms.size; ++rank) {
    const TcpRank &who = ranks_[static_cast<size_t>(rank)];
    std::unique_ptr<TcpLink> link = std::move(rank == 0 ? root_link_ : way(rank).link);
    if (who.host_id == plan_.self.host_id) link.reset();
    out_->push_back({who.host_id, who.process, who.host_name, std::move(link)});
  }
  *out_name_ = name_;
}

}  // namespace zero
