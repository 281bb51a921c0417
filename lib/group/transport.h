/// @file Transport: what a group needs of the thing that moves bytes between its ranks. Knows bytes and ranks; never dtypes, sums or users.
///
/// Collectives are sequences of rounds. In a round every rank offers one piece (possibly empty) to every other rank and sees the pieces the
/// others offered to it. All ranks run the same rounds in the same order. The first round of a collective carries its fingerprint; the
/// transport compares it with every peer's before any byte of user memory changes, so that round is also a barrier. In later rounds a rank
/// waits for those that it expects bytes from; whether for others too is the transport's affair.
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

/// What this rank offers to one peer. The memory stays untouched until the transport is quiet again.
struct Offer {
  const void *data = nullptr;
  int64_t nbytes = 0;
  int64_t rest_nbytes = 0;     ///< behind data + nbytes, offered in later rounds unless peers can read them now
  int64_t element_nbytes = 0;  ///< for the counters; 0: as the collective's dtype says
};

/// What this rank expects from one peer. The transport sets data when it has arrived; valid until consume().
struct Arrival {
  const void *data = nullptr;
  int64_t nbytes = 0;
  int64_t rest_nbytes = 0;     ///< that the peer's offer has behind data + nbytes
  void *place = nullptr;       ///< where it is wanted, with its rest; a transport may put it there: then data == place
  bool rest_is_there = false;  ///< set with data: the rests of all offers of that rank can be read now
};

/// One rank's share() result: the same memory as seen from here, or nullptr where it cannot be addressed.
struct PeerMemory {
  std::shared_ptr<Mapping> mapping;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  virtual Place place() const = 0;
  /// For groups that span hosts: the largest power of two for which every run of so many ranks, from rank 0 on, shares a host. The sum of
  /// such a run is a complete subtree of the fixed tree. 1: no ranks of one host can sum among themselves first.
  virtual int64_t host_block() const { return 1; }
  /// "local", "mpi", "tcp", and of what stands on others "local and mpi", "nccl over local and tcp".
  virtual const char *name() const = 0;
  /// True when only the thread that made it may call it, so that no progress thread may advance its rounds.
  virtual bool single_thread() const { return false; }
  /// ZERO_OK where this thread may begin a message with the peer, otherwise why not.
  virtual Status check_thread(int64_t /*peer*/) const { return {}; }
  /// True when all ranks are threads of this process.
  virtual bool within_process() const { return false; }
  /// True when share() makes the mappings of all ranks addressable.
  virtual bool shares_memory() const { return false; }
  /// Bytes of staging memory this transport holds for this rank.
  virtual int64_t staging_nbytes() const = 0;

  /// True when offers may lie where the host cannot read them, once copy_through() was called.
  virtual bool copies_offers() const { return false; }
  /// Reaches memory as the reducer does from now on. Only where copies_offers(), before anything else is done with it. Collective.
  virtual Task copy_through(std::shared_ptr<const Reducer> reducer, int64_t deadline_ms);
  /// The ranks that texts name instead, for a transport that serves a part of a larger group. Before anything else is done with it.
  virtual void name_ranks(std::vector<int64_t> names) { names_ = std::move(names); }
  /// What texts call a rank.
  long long name_of(int64_t rank) const { return names_.empty() ? rank : names_[static_cast<size_t>(rank)]; }
  /// Keeps what it was made with for as long as it lives, and so do those derived from it. Whoever lets
  /// go of that may have to wait, so it goes only after peers have been told that this rank has left.
  virtual void keep(std::shared_ptr<const void>) {}

  /// Most bytes a rank may offer in one round over all distinct pieces, and so what collectives cut their rounds by. Equal on all ranks.
  virtual int64_t round_nbytes() const = 0;

  /// Longest piece of a round, and longest message, that is meant to travel this way: what is longer takes another way where there is one.
  virtual int64_t longest_nbytes() const { return INT64_MAX; }

  /// @name Rounds. One at a time: start, poll until arrived, use the arrivals, consume.
  /// @{
  /// offers and arrivals have size() entries and stay valid until consume(). Own ones are ignored, but rest_is_there tells this rank what
  /// it tells its peers. Equal data pointers in offers are one piece. `fingerprint` is not nullptr in the first round of a collective and
  /// then stays valid too.
  virtual Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) = 0;
  /// Ready when every arrival has its data. Errors: mismatch, lost or left peers, poison by a peer, transport errors.
  virtual Status poll(bool *out_arrived) = 0;
  virtual void consume() = 0;
  /// Ready when no peer reads memory that was offered in earlier rounds.
  virtual Status poll_quiet(bool *out_quiet) = 0;
  /// @}

  /// @name Point to point. Independent of rounds; at most one send and one receive per peer at a time. Each message is announced by a
  /// fingerprint, compared on both sides.
  /// @{
  virtual Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) = 0;
  virtual Status send_poll(int64_t peer, bool *out_done) = 0;
  /// The data goes straight to `data`.
  virtual Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) = 0;
  virtual Status recv_poll(int64_t peer, bool *out_done) = 0;
  /// @}

  /// @name Health
  /// @{
  /// The error that a peer, a death or the transport has brought upon the group since the last look; ZERO_OK otherwise. Any thread.
  virtual Status health() = 0;
  /// As health(); also looks for peers that left or ended. Only while none can leave in good order.
  virtual Status watch() { return health(); }
  /// The same about one peer, which cannot leave in good order before the message under way with it, `doing`, has ended here.
  virtual Status watch_peer(int64_t /*peer*/, const Fingerprint & /*doing*/) { return health(); }
  /// Tells every peer that the group has failed and why, before it returns; once is enough. Waits for no peer. Any thread; the first cause
  /// wins.
  virtual void poison(const Status &cause) = 0;
  /// After a failure: whether nothing uses memory any more that was offered or is a place; true too when waiting for that has been given
  /// up.
  virtual bool withdrawn() { return true; }
  /// Whether memory of a failed call, of this group or another of its kind in the process, may still be used. Any thread.
  virtual bool holds_memory() { return false; }
  /// Publishes what this rank is doing, for the texts of other ranks' timeouts. `fingerprint` nullptr = outside the group.
  virtual void publish(const Fingerprint *fingerprint) = 0;
  /// The same of a message that this rank waits for, until it `ends`. Of several, the one that came last.
  virtual void publish_message(const Fingerprint & /*fingerprint*/, bool /*ends*/) {}
  /// For the text of a timeout: where each rank that has not arrived stands, as far as this rank can find out within ~200 ms. Those that
  /// wait in the same call are named only where nobody else may be what all wait for.
  virtual std::string progress_report(const Fingerprint &mine) = 0;
  /// The same without those that wait in the same call, so empty where they are all. Also names ranks that do not answer although nothing
  /// is awaited from them: those in the same call may wait for them.
  virtual std::string suspicions(const Fingerprint &mine) { return progress_report(mine); }
  virtual Doorbell *doorbell() { return nullptr; }
  /// @}

  /// @name Derived objects. Collective over the transport: all ranks run them in the same order, between collectives.
  /// @{
  /// Makes every rank's mapping (nullptr: none) addressable by the others where possible; out has size() entries. Offers that lie in a
  /// shared mapping are then read in place instead of being copied, unless they are little.
  virtual Task share(std::shared_ptr<Mapping> mine, std::vector<PeerMemory> *out, int64_t deadline_ms);
  /// Stops offering a shared mapping in place; call it before letting go of the mapping.
  virtual void unshare(const Mapping & /*mapping*/) {}
  /// @name Shared memory into which peers write. A rank enters the memory of its peers before it writes there. A rank that has failed closes
  /// its own memory, and no peer enters it any more. Any thread.
  /// @{
  /// Enters the memory of every peer. If a peer has closed its memory this returns the failure, and the rank must not write.
  virtual Status enter_memory() { return {}; }
  /// The number of times that peers have entered this rank's memory.
  virtual uint64_t entries() const { return 0; }
  /// Closes this rank's memory and returns entries() of that moment, which is final.
  virtual uint64_t close_memory() { return 0; }
  /// @}
  /// File descriptors that this process needs, for a moment, to share memory or to derive a transport.
  virtual int64_t descriptors_to_meet() const { return 0; }
  /// A transport over some of the ranks: members are ranks of this one in the new order (empty: this rank is in none; out stays nullptr).
  /// `tag` is the same on all members and differs between groups made by one call.
  Task derive(std::vector<int64_t> members, int64_t tag, int64_t deadline_ms, std::shared_ptr<Transport> *out) {
    return derive_within(std::move(members), tag, INT64_MAX, deadline_ms, out);
  }
  /// Its rounds carry no more than those of this one, and at most `most_round_nbytes`, the same on all members.
  virtual Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                             std::shared_ptr<Transport> *out) = 0;
  /// @}

 protected:
  std::vector<int64_t> names_;  ///< by rank; empty: ranks as they are
};

/// A transport between hosts, beside which ranks of one host have a faster way.
class HostsTransport : public Transport {
 public:
  /// Index of each rank's host. Ranks of one host have the same.
  virtual std::vector<int64_t> hosts() const = 0;
  /// From now on nothing moves between ranks of one host, also in groups derived from this one: rounds between them go another way.
  virtual void leave_hosts_out() = 0;
  /// What must stay for as long as a group lives whose ranks met over this transport: MPI in this
  /// process. nullptr: nothing.
  virtual std::shared_ptr<const void> footing() const { return nullptr; }
};

/// What the peers of a rank with this error are told.
Status told_to_peers(const Status &cause, int64_t rank);

}  // namespace zero
