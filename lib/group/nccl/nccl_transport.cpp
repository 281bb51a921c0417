/// @file NcclTransport: calls passed to the transport underneath, and the end of communicators.
#include "group/nccl/nccl_transport.h"

#include <utility>

namespace zero {

NcclTransport::NcclTransport(std::shared_ptr<Transport> under, const zero_nccl_table &nccl, std::shared_ptr<Transport> parent)
    : Transport(under->rank(), under->size(), under->capabilities()), under_(std::move(under)), nccl_(nccl), parent_(std::move(parent)) {
  capabilities_.name = "nccl over " + capabilities_.name;
  capabilities_.copies_offers = true;
  set_interfaces(under_->rounds(), under_->messages(), *this);
}

/// All communicators come to their ends together, and each is awaited only then, after peers have
/// been told that this rank has left: what is awaited may be theirs to do.
NcclTransport::~NcclTransport() {
  end_comms(true);
  under_.reset();
}

void NcclTransport::end_comms(bool in_order) {
  if (!reaches()) return;
  messages_->end(in_order);
  comm_->end(in_order);
}

int64_t NcclTransport::staging_nbytes() const {
  const int64_t under = under_->staging_nbytes();
  return reaches() ? under + rounds_->staging_nbytes() + messages_->staging_nbytes() : under;
}

Doorbell *NcclTransport::doorbell() {
  const bool looks = reaches() && (rounds_->looks() || messages_->looks());
  return looks ? nullptr : under_->peers().doorbell();
}

void NcclTransport::poison(const Status &cause) {
  under_->peers().poison(cause);
  end_comms(false);
}

/// Also if the group had failed before, so that no peer was poisoned for this failure.
bool NcclTransport::withdrawn() {
  if (!reaches()) return true;
  end_comms(false);
  const bool over = messages_->over();
  const bool given_up = messages_->given_up();
  if (!comm_->over() || !over) return false;
  // The communicator's end comes after the reducer's work, which the caller's stream may keep from
  // ever being done.
  if (!comm_->given_up() && !given_up) (void)reducer_->settle();
  return true;
}

std::string NcclTransport::progress_report(const Fingerprint &mine) {
  std::string text;
  if (reaches()) text = is_message(mine.kind) ? messages_->progress(mine) : rounds_->progress();
  return text.empty() ? under_->peers().progress_report(mine) : text;
}

}  // namespace zero
