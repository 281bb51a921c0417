/// @file Mappings offered, attached, withdrawn and forgotten.
#include "group/local/local_mappings.h"

#include <utility>

namespace zero {

void LocalMappings::offer(const Mapping &mapping) {
  const std::lock_guard lock(mutex_);
  // Withdrawing must not fail: room for it is made now.
  withdrawn_.reserve(withdrawn_.size() + offered_.size() + 1);
  offered_.push_back({mapping.data(), mapping.nbytes(), mapping.id()});
}

void LocalMappings::withdraw(const Mapping &mapping) {
  const std::lock_guard lock(mutex_);
  const auto removed = std::erase_if(offered_, [&mapping](const Offered &offered) { return offered.id == mapping.id(); });
  // Peers hold the memory until a round tells them: what was offered before must stay readable.
  if (removed == 0) return;
  withdrawn_.push_back(mapping.id());
  withdraws_.store(true, std::memory_order_release);
}

uint64_t LocalMappings::take_withdrawn() {
  if (!withdraws_.load(std::memory_order_acquire)) return 0;
  const std::lock_guard lock(mutex_);
  const uint64_t id = withdrawn_.back();
  withdrawn_.pop_back();
  withdraws_.store(!withdrawn_.empty(), std::memory_order_relaxed);
  return id;
}

bool LocalMappings::find_offered(const void *data, int64_t nbytes, uint64_t *out_id, int64_t *out_offset) const {
  const auto *begin = static_cast<const std::byte *>(data);
  const std::lock_guard lock(mutex_);
  for (const Offered &offered : offered_) {
    if (begin < offered.begin || begin + nbytes > offered.begin + offered.nbytes) continue;
    *out_id = offered.id;
    *out_offset = begin - offered.begin;
    return true;
  }
  return false;
}

void LocalMappings::hold(int64_t peer, std::shared_ptr<Mapping> mapping) {
  const std::lock_guard lock(mutex_);
  if (attached_.empty()) attached_.resize(static_cast<size_t>(peers_.size()));
  attached_[static_cast<size_t>(peer)].push_back(std::move(mapping));
}

void LocalMappings::forget(int64_t peer, uint64_t mapping_id) {
  const std::lock_guard lock(mutex_);
  if (attached_.empty()) return;
  std::erase_if(attached_[static_cast<size_t>(peer)], [=](const std::shared_ptr<Mapping> &shared) { return shared->id() == mapping_id; });
}

Status LocalMappings::resolve(int64_t peer, const Message &message, int64_t rest_nbytes, const void **out_data) const {
  *out_data = message.kind == MessageKind::small ? message.payload.data() : nullptr;
  if (message.kind == MessageKind::none || message.kind == MessageKind::small) return {};
  const Mapping *mapping = nullptr;
  if (message.kind == MessageKind::staged) mapping = peers_.segment(peer).mapping().get();
  if (message.kind == MessageKind::arena) {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; !attached_.empty() && i < attached_[static_cast<size_t>(peer)].size(); ++i) {
      const Mapping *shared = attached_[static_cast<size_t>(peer)][i].get();
      if (shared->id() == message.mapping_id) mapping = shared;
    }
  }
  ZERO_CHECK(mapping != nullptr, ZERO_E_TRANSPORT, "rank %lld offered memory that rank %lld has not attached", peers_.name_of(peer),
             peers_.name_of(peers_.rank()));
  const int64_t nbytes = message.nbytes + rest_nbytes;
  const bool inside = message.offset >= 0 && nbytes <= mapping->nbytes() - message.offset;
  ZERO_CHECK(inside, ZERO_E_TRANSPORT, "rank %lld offered bytes %lld and on of %lld, %lld of them", peers_.name_of(peer),
             lld(message.offset), lld(mapping->nbytes()), lld(nbytes));
  *out_data = mapping->data() + message.offset;
  return {};
}

}  // namespace zero
