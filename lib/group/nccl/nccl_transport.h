/// @file The transport of groups that reach devices: memory of the host moves over the transport underneath, memory of a device over NCCL.
/// The one underneath also compares fingerprints, notices ranks that end, and carries poison; NCCL moves data between ranks that agree.
///
/// A round of such a group: each rank tells every other what it offers and where that lies (1); pieces on devices set out over NCCL, those
/// on the host over the transport underneath (2); a last round says that all have what they wait for (3), so that a rank which has left or
/// ended before it is missed by those whose pieces are still under way. A piece on the host that is too long for the transport underneath
/// is copied to the device first, and is one of those on devices from then on. Where a rank lacks room for what arrives, all wait for it to
/// make some before (2). Where the host's memory takes part, a rank begins (2) when its caller's stream has come to the call. Where each
/// rank offers one piece to all others, and all have places for what comes, NCCL spreads them its own way (broadcasts, or an all-gather in
/// place): between hosts a piece then need not travel once per rank. Messages: nccl_message.h.
#pragma once

#include "core/reduction.h"
#include "group/nccl/nccl_comm.h"
#include "group/nccl/nccl_message.h"
#include "group/nccl/nccl_broadcast_from_all.h"
#include "group/transport.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace zero {

class NcclTransport final : public Transport {
 public:
  /// Until copy_through() everything goes to `under`. A failure of `parent`, where there is one, ends copy_through().
  NcclTransport(std::shared_ptr<Transport> under, const zero_nccl_table &nccl, std::shared_ptr<Transport> parent = nullptr);
  NcclTransport(const NcclTransport &) = delete;
  ~NcclTransport() override;

  int64_t rank() const override { return under_->rank(); }
  int64_t size() const override { return under_->size(); }
  Place place() const override { return under_->place(); }
  int64_t host_block() const override { return reaches() ? 1 : under_->host_block(); }
  const char *name() const override { return name_.c_str(); }
  bool single_thread() const override { return under_->single_thread(); }
  Status check_thread(int64_t peer) const override { return under_->check_thread(peer); }
  bool within_process() const override { return !reaches() && under_->within_process(); }
  bool shares_memory() const override { return !reaches() && under_->shares_memory(); }
  int64_t staging_nbytes() const override;
  bool copies_offers() const override { return true; }
  /// Makes a communicator on the reducer's device.
  Task copy_through(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms) override;
  void name_ranks(std::vector<int64_t> names) override { under_->name_ranks(std::move(names)); }
  int64_t round_nbytes() const override;
  int64_t longest_nbytes() const override { return reaches() ? INT64_MAX : under_->longest_nbytes(); }

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

  Status health() override { return under_->health(); }
  Status watch() override { return under_->watch(); }
  Status watch_peer(int64_t peer, const Fingerprint &doing) override { return under_->watch_peer(peer, doing); }
  void poison(const Status &cause) override;
  bool withdrawn() override;
  bool holds_memory() override { return nccl_holds_memory(); }
  void publish(const Fingerprint *fingerprint) override { under_->publish(fingerprint); }
  void publish_message(const Fingerprint &fingerprint, bool ends) override { under_->publish_message(fingerprint, ends); }
  std::string progress_report(const Fingerprint &mine) override;
  /// Neither NCCL nor a stream rings.
  Doorbell *doorbell() override;

  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override;
  void unshare(const Mapping &mapping) override { under_->unshare(mapping); }
  Status enter_memory() override { return under_->enter_memory(); }
  uint64_t entries() const override { return under_->entries(); }
  uint64_t close_memory() override { return under_->close_memory(); }
  int64_t descriptors_to_meet() const override { return under_->descriptors_to_meet(); }
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  enum class Phase { idle, telling, making_room, catching_up, moving, hosting, ending };

  /// What one rank tells another about its part of a round.
  struct Word {
    int64_t nbytes;           ///< that it offers to that rank
    int64_t rest_nbytes;      ///< behind them
    int64_t longest_on_host;  ///< of all that it offers
    int32_t on_device;        ///< whether what it offers to that rank lies there, or was copied there
    int32_t any_on_device;    ///< whether something that it offers does
    int32_t moves_rests;      ///< whether all that it offers lies there with its rest, and all that it awaits has a place there
    int32_t lacks_room;       ///< whether what it awaits may outgrow its area
    int32_t spreads;          ///< whether it moves rests, and its part of the round can be an NcclBroadcastFromAll
    int32_t in_order;         ///< whether that is in order
  };
  struct Hello;
  /// A piece on the host that leaves from the device.
  struct Lifted {
    const void *data;
    int64_t nbytes;
    std::byte *copy;
  };

  bool reaches() const { return comm_ != nullptr; }
  Status allocate_area(int64_t nbytes, std::shared_ptr<Mapping> *area);
  /// Room for the pieces of a round, each on lines of its own.
  int64_t round_area_nbytes() const;
  void end_messages(bool in_order);
  Status make_hello(Hello *out) const;
  Task greet(int64_t deadline_ms, Hello *hello);
  Task open_comm(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms);

  // A round, in the order of its phases.
  Status describe_offers();
  void lift(const Offer &offer);
  Status copy_lifted();
  const void *source_of(const Offer &offer) const;
  Status find_places(bool *out_all);
  Status tell(const Fingerprint *fingerprint);
  Status receive();
  Status make_room();
  Status catch_up();
  Status poll_catch_up();
  Status begin_moves();
  void list_moves();
  void list_pieces();
  NcclBroadcastFromAll broadcast() const { return {offers_, arrivals_, rank()}; }
  int64_t moved_nbytes(const Word &word) const { return word.nbytes + (moves_rests_ ? word.rest_nbytes : 0); }
  Status poll_moves();
  Status begin_host_pieces();
  void take_host_pieces();
  Status begin_last();
  Status say(Phase phase);
  int64_t host_step() const;

  std::shared_ptr<Transport> under_;
  const std::string name_;
  const zero_nccl_table &nccl_;
  std::shared_ptr<Transport> parent_;  ///< until copy_through() has ended
  std::shared_ptr<const Reducer> reducer_;
  std::shared_ptr<SideStream> lane_;
  std::unique_ptr<NcclComm> comm_;
  NcclAreas areas_;                                 ///< where pieces arrive that have no place, and where lifted ones leave from
  std::vector<std::shared_ptr<Mapping>> outgrown_;  ///< areas
  std::atomic<int64_t> area_nbytes_{0};
  std::unique_ptr<NcclWays> ways_;
  std::vector<std::unique_ptr<NcclMessage>> sent_;      ///< by the rank they go to
  std::vector<std::unique_ptr<NcclMessage>> received_;  ///< by the rank they come from

  // The round under way.
  std::atomic<Phase> phase_ = Phase::idle;  ///< messages look at it too
  std::span<const Offer> offers_;
  std::span<Arrival> arrivals_;
  std::vector<Word> told_;       ///< by this rank, by peer
  std::vector<Word> heard_;      ///< from each peer
  std::vector<bool> has_place_;  ///< on the device
  std::vector<Lifted> lifted_;
  std::vector<Offer> under_offers_;
  std::vector<Arrival> under_arrivals_;
  std::vector<zero_nccl_move> moves_;
  bool lacks_room_ = false;                     ///< this rank; of all, once they were heard
  bool moves_rests_ = false;                    ///< so do all ranks
  bool broadcasts_ = false;                        ///< the round is an NcclBroadcastFromAll on all ranks
  bool in_order_ = false;                       ///< and in order
  bool any_on_device_ = false;                  ///< of all ranks' pieces
  int64_t longest_on_host_ = 0;                 ///< of all ranks' pieces that stay there
  int64_t hosted_nbytes_ = 0;                   ///< of each piece on the host, so far
  std::vector<std::vector<std::byte>> hosted_;  ///< pieces from the host, by peer
};

}  // namespace zero
