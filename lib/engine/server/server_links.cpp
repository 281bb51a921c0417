/// @file Making links, and waiting for several.
#include "engine/server/server_links.h"

#include "group/collectives.h"

#include <algorithm>

namespace zero {
namespace {

/// Staging of a pair: messages move in chunks of less.
constexpr int64_t kMostRoundNbytes = 256 * 1024;

}  // namespace

/// Each split pairs every server with a worker, or every worker with a server if workers are fewer.
/// In turn t, server s meets worker s + t, modulo the number of turns. Error texts name ranks of
/// the whole group.
Task ServerLinks::open(Group &whole, int64_t servers) {
  const int64_t workers = whole.size() - servers;
  const int64_t turns = std::max(servers, workers);
  const bool serves = whole.rank() < servers;
  std::vector<ServerLink> made;
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t server = serves ? whole.rank() : (whole.rank() - servers - turn + turns) % turns;
    const int64_t worker = (server + turn) % turns;
    const bool pairs = server < servers && worker < workers;
    std::shared_ptr<Group> pair;
    ZERO_CO_AWAIT(split(whole, pairs ? server : -1, whole.rank(), &pair, nullptr, kMostRoundNbytes));
    if (pair == nullptr) continue;
    pair->name_ranks({server, servers + worker});
    made.push_back(serves ? ServerLink{std::move(pair), servers + worker, 1} : ServerLink{std::move(pair), server, 0});
  }
  std::sort(made.begin(), made.end(), [](const ServerLink &a, const ServerLink &b) { return a.rank < b.rank; });
  links_ = std::move(made);
  co_return Status();
}

void ServerLinks::set_deadline_ms(int64_t milliseconds) const {
  for (const ServerLink &link : links_) link.group->set_deadline_ms(milliseconds);
}

void ServerLinks::fail(const Status &cause) const {
  for (const ServerLink &link : links_) link.group->fail(cause);
}

Status OverLinks::poll(bool *out_ready) {
  *out_ready = true;
  for (Operation &operation : operations_) {
    const bool before = operation.done();
    if (!operation.advance()) {
      *out_ready = false;
    } else if (!before && failure_.ok() && !operation.status().ok()) {
      failure_ = operation.status();
      links_.fail(failure_);
    }
  }
  return {};
}

}  // namespace zero
