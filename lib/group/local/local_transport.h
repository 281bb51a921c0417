/// @file The local transport: ranks of one host, threads or processes, exchange pieces through segments of shared memory.
/// Knows bytes and ranks; never dtypes, sums or deadlines of collectives.
#pragma once

#include "core/peer_copy.h"
#include "group/local/local_processes.h"
#include "group/local/local_segment.h"
#include "group/local/rendezvous.h"
#include "group/local/turns.h"
#include "group/transport.h"

#include <mutex>

namespace zero {

struct LocalOptions {
  int64_t rendezvous_ms = 60'000;
  int64_t staging_nbytes = 1 << 20;  ///< for rounds, both halves together
};

/// Meets the ranks that give the same name and makes a transport of them. A world of one meets nobody and uses no sockets.
Task connect_local(std::string name, int64_t rank, int64_t size, LocalOptions options, std::shared_ptr<Transport> *out);

/// Segments by rank.
using SegmentTable = std::vector<Segment>;

class LocalTransport final : public Transport {
 public:
  LocalTransport(int64_t rank, int64_t size, int64_t round_nbytes);
  LocalTransport(const LocalTransport &) = delete;
  ~LocalTransport() override;

  /// Makes it usable; once, before anything else. A transport that descends from another has a parent, and its members' ranks there.
  Task connect(std::string name, int64_t deadline_ms, LocalTransport *parent, std::vector<int64_t> members);

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return size_; }
  Place place() const override;
  const char *name() const override { return "local"; }
  void keep(std::shared_ptr<const void> footing) override { footing_ = std::move(footing); }
  bool copies_offers() const override { return true; }
  Task copy_through(std::shared_ptr<const Reducer> copier, int64_t deadline_ms) override;
  bool shares_memory() const override { return true; }
  int64_t staging_nbytes() const override { return Segment::staging_nbytes(size_, round_nbytes_); }
  bool within_process() const override { return processes_.all_here(); }
  int64_t round_nbytes() const override { return round_nbytes_; }

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

  Status health() override;
  Status watch() override;
  Status watch_peer(int64_t peer, const Fingerprint &doing) override;
  void poison(const Status &cause) override { static_cast<void>(fail(cause)); }
  void publish(const Fingerprint *fingerprint) override;
  void publish_message(const Fingerprint &fingerprint, bool ends) override;
  std::string progress_report(const Fingerprint &mine) override;
  std::string suspicions(const Fingerprint &mine) override;
  Doorbell *doorbell() override { return &own().header().bell; }

  Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms) override;
  void unshare(const Mapping &mapping) override;
  Status enter_memory() override;
  uint64_t entries() const override { return own().header().entries.load(std::memory_order_acquire) & ~SegmentHeader::kClosed; }
  uint64_t close_memory() override;
  int64_t descriptors_to_meet() const override;
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  friend class AllHere;
  friend class AllJoined;

  /// A piece of memory that this round offers.
  struct Piece {
    const void *data;
    int64_t nbytes;
    int64_t rest_nbytes;
    int64_t offset;
    uint64_t mapping_id;  ///< 0: staged
  };
  struct Sending {
    Fingerprint fingerprint;
    const std::byte *data = nullptr;
    int64_t nbytes = 0;
    int64_t posted_nbytes = 0;
    bool announced = false;
    bool active = false;
  };
  struct Receiving {
    Fingerprint fingerprint;
    std::byte *data = nullptr;
    int64_t nbytes = 0;
    int64_t taken_nbytes = 0;
    bool announced = false;
    bool active = false;
  };
  /// An own mapping that peers have attached.
  struct Offered {
    const std::byte *begin;
    int64_t nbytes;
    uint64_t id;
  };

  /// Of messages, by peer. Most groups carry none.
  struct Messages {
    explicit Messages(size_t size) : sendings(size), receivings(size), chunk_copies(size) {}
    std::vector<Sending> sendings;
    std::vector<Receiving> receivings;
    std::vector<PeerCopy> chunk_copies;
  };

  const Segment &own() const { return (*segments_)[static_cast<size_t>(rank_)]; }
  const Segment &segment(int64_t peer) const { return (*segments_)[static_cast<size_t>(peer)]; }

  // Rounds.
  uint64_t take_withdrawn();
  Status take_posted(uint64_t index);
  bool looks_at_all();
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
  Status resolve(int64_t peer, const Message &message, int64_t rest_nbytes, const void **out_data);
  void forget_attached(int64_t peer, uint64_t mapping_id);
  bool find_offered(const void *data, int64_t nbytes, uint64_t *out_id, int64_t *out_offset);

  // Point to point.
  Status make_messages();
  void post_chunk(int64_t peer, Sending &sending, Mailbox &mailbox, uint64_t index);
  Status take_chunk(int64_t peer, Receiving &receiving, const Message &message);

  // Health.
  bool has_failed() const;
  bool may_have_read_torn() const;
  Status fail(const Status &cause);
  Status fail_for(const Status *cause);
  void send_to_all(const Status &failure);
  Status check_peer(int64_t peer, const std::atomic<uint64_t> &counter, uint64_t wanted, const Fingerprint *doing);
  Status check_present(int64_t peer, const Fingerprint *doing);
  SegmentHeader &root_header(int64_t peer) const;
  bool awaits(int64_t peer) const;
  bool waits_in(int64_t peer, const Fingerprint &mine) const;
  /// Of the ranks that `mine` waits for, those in the same call or the others.
  std::string standings_of(const Fingerprint &mine, bool in_same_call) const;
  std::string progress_of(int64_t peer) const;
  void ring_all();
  void ring_for(int64_t peer);
  bool is_awaited_by(int64_t peer) const;
  void await(int64_t peer);

  // Derived objects.
  Status make_segment(const LocalTransport *parent, std::span<const int64_t> members);
  Task meet(MeetingTerms terms, LocalTransport *parent, const std::vector<int64_t> &members);
  Status cannot_come(const Status &cause) const;
  Status attach_segments(std::vector<Joiner> joiners);
  Status attach_shared(std::vector<Joiner> joiners, std::vector<PeerMemory> *out);
  void hold_shared(int64_t peer, std::shared_ptr<Mapping> mapping);
  void bring(uint64_t key, uint64_t mapping_id, uint64_t identity, std::span<const int64_t> members);
  Status find_brought(std::span<const int64_t> members, std::span<std::shared_ptr<Mapping>> out);
  Task share_here(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms);
  Task find_here(std::span<const int64_t> members, int64_t self, uint64_t key, int64_t deadline_ms, std::vector<std::shared_ptr<Mapping>> *out);
  Task derive_here(LocalTransport &child, const std::vector<int64_t> &members, int64_t tag, int64_t deadline_ms);
  Task share_by_name(const std::shared_ptr<Mapping> &mine, std::vector<PeerMemory> *out, int64_t deadline_ms);
  Task join_here(std::span<const int64_t> members, int64_t self, int64_t left_ms);
  void ring_members(std::span<const int64_t> members);
  std::string derived_name(const char *what) const;
  Status watch_members(std::span<const int64_t> members);

  std::shared_ptr<const void> footing_;  ///< the first member, so that it goes last
  const int64_t rank_;
  const int64_t size_;
  const int64_t round_nbytes_;
  const int32_t looks_;                    ///< times that a poll looks for what the next moment may bring
  std::shared_ptr<const Reducer> copier_;  ///< nullptr: the host can read all offers
  uint64_t identity_ = 0;                  ///< the same on all ranks, different for every group
  const Turns turns_;                      ///< in which peers are awaited
  std::shared_ptr<SegmentTable> segments_;
  std::shared_ptr<const SegmentTable> root_segments_;  ///< of the group this one descends from; nullptr: it is itself the root
  std::vector<int64_t> root_ranks_;                    ///< ranks there, by rank
  LocalProcesses processes_;
  uint64_t derived_ = 0;  ///< derived objects so far, the same on all ranks

  // The round under way.
  uint64_t rounds_ = 0;  ///< started so far
  Fingerprint current_;
  bool compares_ = false;
  std::span<Arrival> arrivals_;
  std::vector<bool> arrived_;
  int64_t missing_ = 0;
  int64_t turn_ = 0;        ///< whose message is awaited
  int64_t quiet_turn_ = 0;  ///< who is awaited to have read
  int32_t polls_ = 0;
  uint32_t news_seen_ = 0;
  bool untaken_ = false;  ///< it was started and not consumed
  std::vector<Piece> pieces_;
  const void *highest_ = nullptr;  ///< of the pieces' addresses
  std::vector<int32_t> piece_of_;  ///< by peer, where pieces_ has what it is offered
  PeerCopy staging_;               ///< of those that are not read in place
  bool rest_is_there_ = false;     ///< all pieces lie in memory that peers can read, with their rests
  bool reads_in_place_ = false;    ///< arrivals of this round lie in their owners' arenas
  bool may_be_torn_ = false;       ///< a peer failed while they were read, and may have let its caller write there again
  uint64_t offered_in_place_ = 0;  ///< rounds until the last in which peers read this rank's arenas; 0: none since they were quiet

  std::once_flag messages_made_;
  std::unique_ptr<Messages> messages_;  ///< with the first message

  std::mutex sharing_mutex_;
  std::vector<Offered> offered_;
  std::vector<std::vector<std::shared_ptr<Mapping>>> attached_;  ///< by peer: what it shares, held until it withdraws it
  std::vector<uint64_t> withdrawn_;     ///< own mappings whose withdrawal peers have not been told
  std::atomic<bool> withdraws_{false};  ///< there are some

  std::mutex failure_mutex_;
  std::atomic<bool> failed_{false};
  Status failure_;
};

}  // namespace zero
