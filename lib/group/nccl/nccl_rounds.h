/// @file NcclRounds: rounds of groups that reach devices.
///
/// In such a round each rank tells every other what it offers and where that lies (1); pieces on devices set out over NCCL, those on the
/// host over the transport underneath (2); a last round says that all have what they wait for (3), so that a rank which has left or ended
/// before it is missed by those whose pieces are still under way. A piece on the host that is too long for the transport underneath is
/// copied to the device first, and is one of those on devices from then on. Where a rank lacks room for what arrives, all wait for it to
/// make some before (2). Where the host's memory takes part, a rank begins (2) when its caller's stream has come to the call. Where each
/// rank offers one piece to all others, and all have places for what comes, NCCL spreads them its own way (broadcasts, or an all-gather in
/// place): between hosts a piece then need not travel once per rank.
#pragma once

#include "core/reduction.h"
#include "group/nccl/nccl_broadcast_from_all.h"
#include "group/nccl/nccl_comm.h"
#include "group/transport.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero {

class NcclRounds final : public Rounds {
 public:
  /// All of them outlive it.
  NcclRounds(Transport &under, const Reducer &reducer, SideStream &lane, NcclComm &comm);
  NcclRounds(const NcclRounds &) = delete;

  /// Bytes of a round of a group over this transport.
  static int64_t round_nbytes(const Transport &under);
  /// Allocates the area for what arrives. Before any round.
  Status open();

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  /// True while it waits for NCCL or for a stream, which ring for nothing. Any thread.
  bool looks() const { return phase_ == Phase::moving || phase_ == Phase::catching_up; }
  /// Text of the work that NCCL or a stream has not done yet; empty while nothing waits for it.
  std::string progress() const;
  /// Any thread.
  int64_t staging_nbytes() const { return area_nbytes_.load(std::memory_order_relaxed); }

 private:
  enum class Phase { idle, telling, making_room, catching_up, moving, hosting, ending };

  /// About all that a rank, or every rank, offers and awaits.
  struct Common {
    int64_t longest_on_host = 0;  ///< of the pieces that stay there
    bool any_on_device = false;   ///< a piece lies there, or was copied there
    bool moves_rests = false;     ///< all pieces lie there with their rests, and all that is awaited has a place there
    bool lacks_room = false;      ///< what is awaited may outgrow the area of a rank
    bool broadcasts = false;      ///< rests are moved, and the round can be an NcclBroadcastFromAll
    bool in_order = false;        ///< and that is in order
    bool reserved[3] = {};

    void join(const Common &others);
  };
  /// Tells another rank about this one's part of a round. Sent as it is.
  struct Word {
    int64_t nbytes = 0;       ///< that it offers to that rank
    int64_t rest_nbytes = 0;  ///< behind them
    int64_t on_device = 0;    ///< whether what it offers to that rank lies there, or was copied there
    Common common;
  };
  /// A piece on the host that leaves from the device.
  struct Lifted {
    const void *data;
    int64_t nbytes;
    std::byte *copy;
  };

  int64_t rank() const { return under_.rank(); }
  Status allocate_area(int64_t nbytes, std::shared_ptr<Mapping> *area);
  /// Room for the pieces of a round, each on lines of its own.
  int64_t round_area_nbytes() const;

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
  int64_t moved_nbytes(const Word &word) const { return word.nbytes + (all_.moves_rests ? word.rest_nbytes : 0); }
  Status poll_moves();
  Status begin_host_pieces();
  void take_host_pieces();
  Status begin_last();
  Status say(Phase phase);
  int64_t host_step() const;

  Transport &under_;
  const Reducer &reducer_;
  SideStream &lane_;
  NcclComm &comm_;
  NcclAreas areas_;                                 ///< where pieces arrive that have no place, and where lifted ones leave from
  std::vector<std::shared_ptr<Mapping>> outgrown_;  ///< areas
  std::atomic<int64_t> area_nbytes_{0};

  // The round under way.
  std::atomic<Phase> phase_ = Phase::idle;  ///< messages look at it too
  std::span<const Offer> offers_;
  std::span<Arrival> arrivals_;
  std::vector<Word> told_;       ///< by this rank, by peer
  std::vector<Word> heard_;      ///< from each peer
  Common all_;                   ///< of this rank; of all, once they were heard
  std::vector<bool> has_place_;  ///< on the device
  std::vector<Lifted> lifted_;
  std::vector<Offer> under_offers_;
  std::vector<Arrival> under_arrivals_;
  std::vector<zero_nccl_move> moves_;
  int64_t hosted_nbytes_ = 0;                   ///< of each piece on the host, so far
  std::vector<std::vector<std::byte>> hosted_;  ///< pieces from the host, by peer
};

}  // namespace zero
