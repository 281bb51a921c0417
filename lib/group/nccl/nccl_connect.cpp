/// @file Making transports that reach devices: ranks agree on a communicator over the underlying
/// transport, and wait for it.
#include "core/clock.h"
#include "group/bootstrap_round.h"
#include "group/nccl/nccl_module.h"
#include "group/nccl/nccl_transport.h"

#include <cstring>

namespace zero {

/// The message that ranks exchange before they make a communicator. The id of rank 0 counts.
struct NcclTransport::Hello {
  int64_t version;
  std::byte id[ZERO_NCCL_ID_NBYTES];
};

namespace {

/// The error code if ranks do not come in time, to a new group or to a split.
int32_t late_code(const Transport *parent) { return parent != nullptr ? ZERO_E_TIMEOUT : ZERO_E_RENDEZVOUS; }

/// Ready once NCCL has made the communicator.
class Made final : public Waitable {
 public:
  Made(NcclComm &comm, const Transport &under, const Transport *parent, int64_t limit_ms)
      : comm_(comm), under_(under), parent_(parent), limit_ms_(limit_ms), deadline_(Deadline::after_ms(limit_ms)) {}
  Status poll(bool *out_ready) override {
    const Status state = comm_.idle(out_ready);
    if (state.ok() && *out_ready) return {};
    ZERO_TRY(under_.peers().watch());
    if (parent_ != nullptr) ZERO_TRY(parent_->peers().health());
    ZERO_TRY(state);
    ZERO_CHECK(!deadline_.passed(), late_code(parent_), "rank %lld waited %lld ms for NCCL to connect the %lld ranks", lld(under_.rank()),
               lld(limit_ms_), lld(under_.size()));
    return {};
  }

 private:
  NcclComm &comm_;
  const Transport &under_;
  const Transport *const parent_;
  const int64_t limit_ms_;
  const Deadline deadline_;
};

}  // namespace

Task NcclTransport::copy_through(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms) {
  Status status = co_await open_comm(std::move(reducer), deadline_ms);
  if (!status.ok()) under_->peers().poison(told_to_peers(status, rank()));
  parent_.reset();
  co_return status;
}

Status NcclTransport::make_hello(Hello *out) const {
  int32_t error = nccl_.version(&out->version);
  if (error == 0 && rank() == 0) error = nccl_.unique_id(out->id);
  char text[512] = "";
  if (error != 0) nccl_.error_text(error, text, sizeof text);
  ZERO_CHECK(error == 0, ZERO_E_TRANSPORT, "NCCL names no communicator: %s", text);
  return {};
}

/// Exchanges the versions of NCCL between all ranks, and the communicator's id of rank 0.
Task NcclTransport::greet(int64_t deadline_ms, Hello *hello) {
  const auto size = static_cast<size_t>(under_->size());
  std::vector<Offer> offers(size, Offer{hello, sizeof *hello});
  std::vector<Arrival> arrivals(size, Arrival{.nbytes = sizeof *hello});
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::split;
  ZERO_CO_TRY(under_->rounds().start(&fingerprint, offers, arrivals));
  BootstrapRound round(*under_, fingerprint, deadline_ms, late_code(parent_.get()), parent_.get());
  ZERO_CO_AWAIT(round);
  Status status;
  Hello first = *hello;
  for (int64_t peer = under_->size() - 1; peer >= 0 && status.ok(); --peer) {
    if (peer == under_->rank()) continue;
    Hello theirs;
    std::memcpy(&theirs, arrivals[static_cast<size_t>(peer)].data, sizeof theirs);
    if (peer == 0) first = theirs;
    if (theirs.version == hello->version) continue;
    status = Status::error(ZERO_E_RENDEZVOUS, "rank %lld has NCCL %s but rank %lld %s; install the same everywhere", lld(under_->rank()),
                           nccl_version_text(hello->version).c_str(), lld(peer), nccl_version_text(theirs.version).c_str());
  }
  under_->rounds().consume();
  *hello = first;
  co_return status;
}

/// No rank uses the communicator before all ranks have it. Time that late ranks take is not
/// available to NCCL again.
Task NcclTransport::open_comm(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms) {
  const Deadline deadline = Deadline::after_ms(deadline_ms);
  ZERO_CO_CHECK(size() <= reducer->most_sources(), ZERO_E_UNSUPPORTED,
                "the group has %lld ranks, but devices add contributions of %lld at most", lld(size()), lld(reducer->most_sources()));
  std::shared_ptr<SideStream> lane;
  ZERO_CO_TRY(reducer->open_lane(&lane));
  Hello hello{};
  ZERO_CO_TRY(make_hello(&hello));
  ZERO_CO_AWAIT(greet(deadline.left_ms(), &hello));
  auto comm = std::make_unique<NcclComm>(nccl_, lane);
  ZERO_CO_TRY(comm->begin(hello.id, rank(), size()));
  Made made(*comm, *under_, parent_.get(), deadline.left_ms());
  ZERO_CO_AWAIT(made);
  ZERO_CO_AWAIT(greet(deadline.left_ms(), &hello));
  reducer_ = std::move(reducer);
  lane_ = std::move(lane);
  rounds_ = std::make_unique<NcclRounds>(*under_, *reducer_, *lane_, *comm);
  messages_ = std::make_unique<NcclMessages>(*under_, nccl_, *reducer_, *lane_);
  comm_ = std::move(comm);
  ZERO_CO_TRY(rounds_->open());
  set_interfaces(*rounds_, *messages_, *this);
  capabilities_.host_block = 1;
  capabilities_.round_nbytes = NcclRounds::round_nbytes(*under_);
  capabilities_.longest_nbytes = INT64_MAX;
  capabilities_.within_process = false;
  capabilities_.shares_memory = false;
  co_return Status();
}

/// Ranks of devices reach each other over NCCL alone.
Task NcclTransport::share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) {
  if (!reaches()) co_return co_await under_->share(std::move(mine), out, deadline_ms);
  co_return co_await Transport::share(std::move(mine), out, deadline_ms);
}

Task NcclTransport::derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                                  std::shared_ptr<Transport> *out) {
  std::shared_ptr<Transport> under;
  ZERO_CO_AWAIT(under_->derive_within(std::move(members), tag, most_round_nbytes, deadline_ms, &under));
  out->reset();
  if (under != nullptr) *out = std::make_shared<NcclTransport>(std::move(under), nccl_, under_);
  co_return Status();
}

}  // namespace zero
