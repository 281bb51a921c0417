/// @file The transport of groups that reach devices: memory of the host moves over the transport
/// underneath, memory of a device over NCCL. The one underneath also compares fingerprints, notices
/// ranks that end, and carries poison; NCCL moves data between ranks that agree. Rounds:
/// nccl_rounds.h. Messages: nccl_message.h.
#pragma once

#include "core/reduction.h"
#include "group/nccl/nccl_comm.h"
#include "group/nccl/nccl_message.h"
#include "group/nccl/nccl_rounds.h"
#include "group/transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace zero {

class NcclTransport final : public Transport, private PeerHealth {
 public:
  /// Until copy_through() everything goes to `under`. A failure of `parent`, where there is one,
  /// ends copy_through().
  NcclTransport(std::shared_ptr<Transport> under, const zero_nccl_table &nccl, std::shared_ptr<Transport> parent = nullptr);
  ~NcclTransport() override;

  int64_t staging_nbytes() const override;
  /// Makes a communicator on the reducer's device.
  Task copy_through(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms) override;

  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override;
  void unshare(const Mapping &mapping) override { under_->unshare(mapping); }
  Status enter_memory() override { return under_->enter_memory(); }
  uint64_t entries() const override { return under_->entries(); }
  uint64_t close_memory() override { return under_->close_memory(); }
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  struct Hello;

  Status health() override { return under_->peers().health(); }
  Status watch() override { return under_->peers().watch(); }
  Status watch_peer(int64_t peer, const Fingerprint &doing) override { return under_->peers().watch_peer(peer, doing); }
  void poison(const Status &cause) override;
  bool withdrawn() override;
  bool holds_memory() override { return nccl_holds_memory(); }
  void publish(const Fingerprint *fingerprint) override { under_->peers().publish(fingerprint); }
  void publish_message(const Fingerprint &fingerprint, bool ends) override { under_->peers().publish_message(fingerprint, ends); }
  std::string progress_report(const Fingerprint &mine) override;
  /// Neither NCCL nor a stream rings.
  Doorbell *doorbell() override;
  void name_ranks(std::vector<int64_t> names) override { under_->peers().name_ranks(std::move(names)); }

  bool reaches() const { return comm_ != nullptr; }
  void end_comms(bool in_order);
  Status make_hello(Hello *out) const;
  Task greet(int64_t deadline_ms, Hello *hello);
  Task open_comm(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms);

  std::shared_ptr<Transport> under_;
  const zero_nccl_table &nccl_;
  std::shared_ptr<Transport> parent_;  ///< until copy_through() has ended
  std::shared_ptr<const Reducer> reducer_;
  std::shared_ptr<SideStream> lane_;
  // From copy_through() on.
  std::unique_ptr<NcclComm> comm_;
  std::unique_ptr<NcclRounds> rounds_;
  std::unique_ptr<NcclMessages> messages_;
};

}  // namespace zero
