/// @file LocalRounds: rounds of a local group: pieces are staged or offered in place, posted to
/// every peer, compared, read and taken. Knows nothing of messages, nor of deadlines of
/// collectives.
#pragma once

#include "core/peer_copy.h"
#include "group/local/local_mappings.h"
#include "group/local/turns.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace zero {

class LocalRounds final : public Rounds {
 public:
  LocalRounds(LocalPeers &peers, LocalMappings &mappings);
  LocalRounds(const LocalRounds &) = delete;

  /// Reaches offers as `copier` does from now on.
  void copy_through(std::shared_ptr<const Reducer> copier) { copier_ = std::move(copier); }

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  /// The call whose round is, or was last, under way.
  const Fingerprint &current() const { return current_; }
  /// True when something of the peer is missing in the round under way, or it still reads what was
  /// offered.
  bool awaits(int64_t peer) const;

 private:
  /// A piece of memory that this round offers.
  struct Piece {
    const void *data;
    int64_t nbytes;
    int64_t rest_nbytes;
    int64_t offset;
    uint64_t mapping_id;  ///< 0: staged
  };

  Status take_posted(uint64_t index);
  Status take_in_turn(uint64_t index);
  Status take_from(int64_t peer, uint64_t index);
  bool all_quiet();
  bool is_quiet(int64_t peer) const;
  Status place_pieces(std::span<const Offer> offers, uint64_t half);
  bool travels_in_message(const Offer &offer) const;
  bool pays_to_stage(const Piece &piece) const;
  int32_t piece_for(const Offer &offer);
  void post(int64_t peer, const Fingerprint *fingerprint, const Offer &offer, uint64_t index, uint64_t withdrawn);
  Status accept(int64_t peer, const Message &message, Arrival *out);
  long long name_of(int64_t rank) const { return peers_.name_of(rank); }

  LocalPeers &peers_;
  LocalMappings &mappings_;
  const int64_t rank_;
  const int64_t size_;
  /// Times that a poll looks for what the next moment may bring.
  const int32_t looks_;
  const Turns turns_;                      ///< in which peers are awaited
  std::shared_ptr<const Reducer> copier_;  ///< nullptr: the host can read all offers

  // The round under way.
  uint64_t rounds_ = 0;  ///< started so far
  Fingerprint current_;
  bool compares_ = false;
  std::span<Arrival> arrivals_;
  std::vector<bool> arrived_;
  int64_t missing_ = 0;
  int64_t turn_ = 0;        ///< whose message is awaited
  int64_t quiet_turn_ = 0;  ///< the next peer that must finish reading
  int32_t polls_ = 0;
  bool untaken_ = false;  ///< it was started and not consumed
  std::vector<Piece> pieces_;
  const void *highest_ = nullptr;  ///< highest address of the pieces
  std::vector<int32_t> piece_of_;  ///< by peer, where pieces_ has what it is offered
  PeerCopy staging_;               ///< copies pieces that are not read in place
  /// All pieces are in memory that peers can read, with their rests.
  bool rest_is_there_ = false;
  bool reads_in_place_ = false;  ///< arrivals of this round are in their owners' arenas
  /// A peer failed during the read, and may have let its caller write there again.
  bool may_be_torn_ = false;
  /// Rounds until the last in which peers read this rank's arenas; 0: none since they were quiet.
  uint64_t offered_in_place_ = 0;
};

}  // namespace zero
