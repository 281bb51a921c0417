/// @file Transport: the defaults for transports that reach only memory of the host, and none of
/// other ranks.
#include "group/transport.h"

#include <cstring>
#include <utility>

namespace zero {

Task Transport::copy_through(std::shared_ptr<const Reducer> /*reducer*/, int64_t /*deadline_ms*/) {
  co_return Status::error(ZERO_E_UNSUPPORTED, "transport %s sends memory of the host only", capabilities_.name.c_str());
}

Task Transport::share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t) {
  out->assign(static_cast<size_t>(size()), {});
  (*out)[static_cast<size_t>(rank())].mapping = std::move(mine);
  co_return Status();
}

Status told_to_peers(const Status &cause, int64_t rank) {
  // The reporting rank is already named, by its number in the group above in which the error arose.
  if (poisons_group(cause.code()) && std::strstr(cause.text(), "(reported by rank ") != nullptr) return cause;
  if (poisons_group(cause.code())) return Status::error(cause.code(), "%s (reported by rank %lld)", cause.text(), lld(rank));
  return Status::error(ZERO_E_PEER_FAILED, "rank %lld failed: %s: %s", lld(rank), status_name(cause.code()), cause.text());
}

}  // namespace zero
