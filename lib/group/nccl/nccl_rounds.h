/// @file NcclRounds: rounds of groups that reach devices.
///
/// Steps of such a round:
/// 1. Each rank tells every other the sizes of its offers, and whether they are on a device.
/// 2. Pieces on devices move over NCCL, those on the host over the transport underneath.
/// 3. In a last round all ranks report that they have everything. A rank that has left or ended
/// earlier is therefore noticed by the peers whose pieces are still in progress.
///
/// A piece on the host that is too long for the transport underneath is copied to the device first,
/// and then treated as a piece on a device. If a rank lacks room for its arrivals, all wait before
/// step 2 until it has allocated some. If memory of the host takes part, a rank starts step 2 when
/// its caller's stream has reached the call.
///
/// If each rank offers one piece to all others, and all have places for their arrivals, NCCL
/// distributes them by its own algorithms (broadcasts, or an all-gather in place). Between hosts a
/// piece then need not travel once per rank.
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
    int64_t longest_on_host = 0;  ///< largest piece that stays on the host
    bool any_on_device = false;   ///< a piece is on a device, or was copied there
    /// All pieces are on devices with their rests, and all arrivals have a place there.
    bool moves_rests = false;
    bool lacks_room = false;  ///< arrivals may exceed the area of a rank
    bool broadcasts = false;  ///< rests are moved, and the round can be an NcclBroadcastFromAll
    bool in_order = false;    ///< and that is in order
    bool reserved[3] = {};

    void join(const Common &others);
  };
  /// Tells another rank about this one's part of a round. Sent as it is.
  struct Word {
    int64_t nbytes = 0;       ///< that it offers to that rank
    int64_t rest_nbytes = 0;  ///< behind them
    /// Nonzero: the offer to that rank is in device memory, or was copied there.
    int64_t on_device = 0;
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
  /// For arrivals without a place, and for lifted pieces to leave from.
  NcclAreas areas_;
  std::vector<std::shared_ptr<Mapping>> outgrown_;  ///< areas
  std::atomic<int64_t> area_nbytes_{0};

  // The round under way.
  std::atomic<Phase> phase_ = Phase::idle;  ///< messages look at it too
  std::span<const Offer> offers_;
  std::span<Arrival> arrivals_;
  std::vector<Word> told_;   ///< by this rank, by peer
  std::vector<Word> heard_;  ///< from each peer
  /// This rank's; combined over all ranks once their words have arrived.
  Common all_;
  std::vector<bool> has_place_;  ///< on the device
  std::vector<Lifted> lifted_;
  std::vector<Offer> under_offers_;
  std::vector<Arrival> under_arrivals_;
  std::vector<zero_nccl_move> moves_;
  int64_t hosted_nbytes_ = 0;                   ///< bytes of each host piece moved so far
  std::vector<std::vector<std::byte>> hosted_;  ///< pieces from the host, by peer
};

}  // namespace zero
