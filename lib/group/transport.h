/// @file Transport: the interface to the code that moves bytes between the ranks of a group. It
/// consists of three interfaces (rounds, messages, the health of peers) and facts. Knows bytes and
/// ranks; never dtypes, sums or users.
///
/// Collectives are sequences of rounds. In a round every rank offers one piece (possibly empty) to
/// every other rank and sees the pieces the others offered to it. All ranks run the same rounds in
/// the same order. The first round of a collective carries its fingerprint; the transport compares
/// it with every peer's before any byte of user memory changes, so that round is also a barrier. In
/// later rounds a rank waits for those that it expects bytes from; whether for others too is the
/// transport's affair.
#pragma once

#include "core/doorbell.h"
#include "core/mapping.h"
#include "core/reduction.h"
#include "core/status.h"
#include "core/task.h"
#include "group/fingerprint.h"
#include "group/host.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// A piece that this rank offers to one peer. The memory stays untouched until the transport is
/// quiet again.
struct Offer {
  const void *data = nullptr;
  int64_t nbytes = 0;
  /// Behind data + nbytes, offered in later rounds unless peers can read them now.
  int64_t rest_nbytes = 0;
  int64_t element_nbytes = 0;  ///< for the counters; 0: as the collective's dtype says
};

/// A piece that this rank expects from one peer. The transport sets data when the piece has
/// arrived; it is valid until consume().
struct Arrival {
  const void *data = nullptr;
  int64_t nbytes = 0;
  int64_t rest_nbytes = 0;  ///< bytes that the peer's offer has behind data + nbytes
  /// The wanted address, with room for the rest; a transport may put the piece there: then data ==
  /// place.
  void *place = nullptr;
  /// Set with data: the rests of all offers of that rank can be read now.
  bool rest_is_there = false;
};

/// One rank's share() result: the same memory as seen from here, or nullptr where it cannot be
/// addressed.
struct PeerMemory {
  std::shared_ptr<Mapping> mapping;
};

/// Facts about a transport. Fixed once it is connected, or, where copy_through() is called, once
/// that has ended.
struct Capabilities {
  /// "local", "mpi", "tcp"; of a transport over others "local and mpi", "nccl over local and tcp".
  std::string name;
  Place place = {};
  /// For groups that span hosts: the largest power of two for which every run of so many ranks,
  /// from rank 0 on, shares a host. The sum of such a run is a complete subtree of the fixed tree.
  /// 1: no ranks of one host can sum among themselves first.
  int64_t host_block = 1;
  /// Most bytes a rank may offer in one round over all distinct pieces, by which collectives cut
  /// their rounds. Equal on all ranks.
  int64_t round_nbytes = 0;
  /// Longest piece of a round, and longest message, that is meant to travel this way. Longer ones
  /// take another way where there is one.
  int64_t longest_nbytes = INT64_MAX;
  /// File descriptors that this process needs, for a moment, to share memory or to derive a
  /// transport.
  int64_t descriptors_to_meet = 0;
  /// Only the thread that made it may call it, so that no progress thread may advance its rounds.
  bool single_thread = false;
  bool within_process = false;  ///< all ranks are threads of this process
  bool shares_memory = false;   ///< share() makes the mappings of all ranks addressable
  /// Offers may be in memory that the host cannot read, once copy_through() was called.
  bool copies_offers = false;
};

/// Rounds, one at a time: start, poll until arrived, use the arrivals, consume.
class Rounds {
 public:
  /// offers and arrivals have an entry per rank and stay valid until consume(). Own ones are
  /// ignored, but rest_is_there tells this rank what it tells its peers. Equal data pointers in
  /// offers are one piece. `fingerprint` is not nullptr in the first round of a collective and then
  /// stays valid too.
  virtual Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) = 0;
  /// Ready when every arrival has its data. Errors: mismatch, lost or left peers, poison by a peer,
  /// transport errors.
  virtual Status poll(bool *out_arrived) = 0;
  virtual void consume() = 0;
  /// Ready when no peer reads memory that was offered in earlier rounds.
  virtual Status poll_quiet(bool *out_quiet) = 0;

 protected:
  ~Rounds() = default;
};

/// Messages from rank to rank, independent of rounds; at most one send and one receive per peer at
/// a time. Each is announced by a fingerprint, which both sides compare.
class Messages {
 public:
  /// ZERO_OK where this thread may begin a message with the peer, otherwise why not.
  virtual Status check_thread(int64_t /*peer*/) const { return {}; }
  virtual Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) = 0;
  virtual Status send_poll(int64_t peer, bool *out_done) = 0;
  /// The data goes straight to `data`.
  virtual Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) = 0;
  virtual Status recv_poll(int64_t peer, bool *out_done) = 0;

 protected:
  ~Messages() = default;
};

/// The health of the ranks of a group: failures, ranks that left or ended, and the call that each
/// rank is in.
class PeerHealth {
 public:
  /// The error that a peer, a death or the transport has brought upon the group since the last
  /// look; ZERO_OK otherwise. Any thread.
  virtual Status health() = 0;
  /// As health(); also looks for peers that left or ended. Only while none can leave in good order.
  virtual Status watch() { return health(); }
  /// The same about one peer, which cannot leave in good order before the message under way with
  /// it, `doing`, has ended here.
  virtual Status watch_peer(int64_t /*peer*/, const Fingerprint & /*doing*/) { return health(); }
  /// Tells every peer that the group has failed and why, before it returns; once is enough. Waits
  /// for no peer. Any thread; the first cause wins.
  virtual void poison(const Status &cause) = 0;
  /// After a failure: whether nothing uses memory any more that was offered or is a place; true too
  /// when waiting for that has been given up.
  virtual bool withdrawn() { return true; }
  /// True if memory of a failed call, in this group or another of its kind in the process, may
  /// still be in use. Any thread.
  virtual bool holds_memory() { return false; }
  /// Publishes what this rank is doing, for the texts of other ranks' timeouts. `fingerprint`
  /// nullptr = outside the group.
  virtual void publish(const Fingerprint *fingerprint) = 0;
  /// The same for a message that this rank waits for, until it `ends`. With several messages, the
  /// latest counts.
  virtual void publish_message(const Fingerprint & /*fingerprint*/, bool /*ends*/) {}
  /// For the text of a timeout: the state of each rank that has not arrived, as far as this rank
  /// can find it within ~200 ms. Ranks that wait in the same call are named only if no other rank
  /// may be the cause.
  virtual std::string progress_report(const Fingerprint &mine) = 0;
  /// The same without those that wait in the same call, so empty where they are all. Also names
  /// ranks that do not answer although nothing is awaited from them: those in the same call may
  /// wait for them.
  virtual std::string suspicions(const Fingerprint &mine) { return progress_report(mine); }
  /// Rung when something that this rank waits for may have come; nullptr: nothing rings.
  virtual Doorbell *doorbell() { return nullptr; }
  /// The ranks that texts name instead, for a transport that serves a part of a larger group.
  /// Before anything else is done with it.
  virtual void name_ranks(std::vector<int64_t> names) { names_ = std::move(names); }
  /// The number by which texts name a rank.
  long long name_of(int64_t rank) const { return names_.empty() ? rank : names_[static_cast<size_t>(rank)]; }

 protected:
  ~PeerHealth() = default;

 private:
  std::vector<int64_t> names_;  ///< by rank; empty: ranks as they are
};

class Transport {
 public:
  Transport(const Transport &) = delete;
  virtual ~Transport() = default;

  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  const Capabilities &capabilities() const { return capabilities_; }
  Rounds &rounds() const { return *rounds_; }
  Messages &messages() const { return *messages_; }
  PeerHealth &peers() const { return *peers_; }

  /// Bytes of staging memory this transport holds for this rank.
  virtual int64_t staging_nbytes() const = 0;
  /// Reaches memory as the reducer does from now on. Only where it copies_offers, before anything
  /// else is done with it. Collective.
  virtual Task copy_through(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms);
  /// Keeps an object that it was made with as long as it exists, and so do transports derived from
  /// it. Releasing that object may block, so it is released only after peers have been told that
  /// this rank has left.
  virtual void keep(std::shared_ptr<const void>) {}

  /// @name Derived objects
  /// Collective over the transport: all ranks run them in the same order, between collectives.
  /// @{
  /// Makes every rank's mapping (nullptr: none) addressable by the others where possible; out has
  /// size() entries. Offers in a shared mapping are then read in place instead of being copied,
  /// unless they are small.
  virtual Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms);
  /// Stops offering a shared mapping in place; call it before letting go of the mapping.
  virtual void unshare(const Mapping & /*mapping*/) {}
  /// A transport over some of the ranks: members are ranks of this one in the new order (empty:
  /// this rank is in none; out stays nullptr). `tag` is the same on all members and differs between
  /// groups made by one call.
  Task derive(std::vector<int64_t> members, int64_t tag, int64_t deadline_ms, std::shared_ptr<Transport> *out) {
    return derive_within(std::move(members), tag, INT64_MAX, deadline_ms, out);
  }
  /// Its rounds carry no more than those of this one, and at most `most_round_nbytes`, the same on
  /// all members.
  virtual Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                             std::shared_ptr<Transport> *out) = 0;
  /// @}

  /// @name Shared memory into which peers write
  /// A rank enters the memory of its peers before it writes there. A rank that has failed closes
  /// its own memory, and no peer enters it any more. Any thread.
  /// @{
  /// Enters the memory of every peer. If a peer has closed its memory this returns the failure, and
  /// the rank must not write.
  virtual Status enter_memory() { return {}; }
  /// The number of times that peers have entered this rank's memory.
  virtual uint64_t entries() const { return 0; }
  /// Closes this rank's memory and returns entries() of that moment, which is final.
  virtual uint64_t close_memory() { return 0; }
  /// @}

 protected:
  Transport(int64_t rank, int64_t size, Capabilities capabilities = {})
      : capabilities_(std::move(capabilities)), rank_(rank), size_(size) {}
  /// Before anything is done with it. They live as long as it does.
  void set_interfaces(Rounds &rounds, Messages &messages, PeerHealth &peers) {
    rounds_ = &rounds;
    messages_ = &messages;
    peers_ = &peers;
  }

  Capabilities capabilities_;

 private:
  const int64_t rank_;
  const int64_t size_;
  Rounds *rounds_ = nullptr;
  Messages *messages_ = nullptr;
  PeerHealth *peers_ = nullptr;
};

/// A transport between hosts, beside which ranks of one host have a faster way.
class HostsTransport : public Transport {
 public:
  using Transport::Transport;
  /// Index of each rank's host. Ranks of one host have the same.
  virtual std::vector<int64_t> hosts() const = 0;
  /// From now on nothing moves between ranks of one host, also in groups derived from this one:
  /// rounds between them go another way.
  virtual void leave_hosts_out() = 0;
  /// An object that must live as long as any group whose ranks met over this transport: MPI in this
  /// process. nullptr: none.
  virtual std::shared_ptr<const void> footing() const { return nullptr; }
};

/// Returns the error that peers of a rank with the error `cause` receive.
Status told_to_peers(const Status &cause, int64_t rank);

}  // namespace zero
