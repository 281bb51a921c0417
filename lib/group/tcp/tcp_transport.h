/// @file The transport over sockets between hosts: rounds of words, messages of words, and the health of ranks. It is what ranks agree and
/// watch each other by where MPI is not there; data takes another way. Ranks of one host have no way here.
#pragma once

#include "group/tcp/tcp_meeting.h"
#include "group/tcp/tcp_mesh.h"
#include "group/transport.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace zero {

class TcpTransport;

/// A transport over the ranks of a meeting. `out_name` is random and the same on all ranks.
Task connect_tcp(TcpTerms terms, std::shared_ptr<TcpTransport> *out, uint64_t *out_name);

class TcpTransport final : public HostsTransport, private TcpMember {
 public:
  static constexpr int64_t kRoundNbytes = 65536;
  static constexpr int64_t kLongestNbytes = 4096;
  static constexpr uint64_t kFirstNumber = 0;  ///< of the group of all ranks of a meeting

  /// members[r] is the rank in the mesh of the group's rank r.
  TcpTransport(std::shared_ptr<TcpMesh> mesh, uint64_t number, std::vector<int64_t> members, int64_t rank);
  TcpTransport(const TcpTransport &) = delete;
  ~TcpTransport() override;

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return static_cast<int64_t>(members_.size()); }
  Place place() const override;
  std::vector<int64_t> hosts() const override;
  /// Nothing moves between them anyway.
  void leave_hosts_out() override {}
  const char *name() const override { return "tcp"; }
  int64_t staging_nbytes() const override;
  int64_t round_nbytes() const override { return kRoundNbytes; }
  int64_t longest_nbytes() const override { return kLongestNbytes; }

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

  /// Also ZERO_E_TRANSPORT when a rank sent what none would send. That a connection ended is told to those who wait.
  Status health() override;
  Status watch() override;
  Status watch_peer(int64_t peer, const Fingerprint &doing) override;
  void poison(const Status &cause) override;
  void publish(const Fingerprint *fingerprint) override;
  void publish_message(const Fingerprint &fingerprint, bool ends) override;
  std::string progress_report(const Fingerprint &mine) override;
  std::string suspicions(const Fingerprint &mine) override;

  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  /// A message to a peer. Both sides announce it, so both compare, and the data sets out only when it is wanted.
  struct Sending {
    Fingerprint fingerprint;
    const std::byte *data = nullptr;
    int64_t nbytes = 0;
    int64_t sent_nbytes = 0;
    int64_t taken_nbytes = 0;
    bool met = false;
    bool active = false;
    bool complete() const { return met && taken_nbytes == nbytes; }
  };
  struct Receiving {
    Fingerprint fingerprint;
    std::byte *data = nullptr;
    int64_t nbytes = 0;
    int64_t taken_nbytes = 0;
    bool met = false;
    bool active = false;
    bool complete() const { return met && taken_nbytes == nbytes; }
  };
  /// Frames that have come and are not used yet, in order. A peer waits for this rank before it sends more than a few: for these there is
  /// room from the beginning.
  using Frames = std::vector<TcpFrame>;
  static constexpr size_t kMostRounds = 2;         ///< the one that this rank is in, and the next
  static constexpr size_t kMostMessageFrames = 8;  ///< a notice and the chunks under way, and the next notice
  static bool keep(Frames *frames, size_t most, TcpFrame &&frame);
  struct Peer {
    Peer() {
      rounds.reserve(kMostRounds);
      replies.reserve(kMostMessageFrames);
      coming.reserve(kMostMessageFrames);
    }

    bool left = false;
    bool awaited = false;  ///< by the round under way
    Frames rounds;
    TcpFrame piece;  ///< what the arrival of the round under way points into
    Frames replies;  ///< request, taken
    Frames coming;   ///< offer, chunk
    Sending sending;
    Receiving receiving;
    bool answered = false;  ///< the progress_report under way
    PeerStatus answer;
  };

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mesh_->mutex()); }
  Peer &at(int64_t peer) { return peers_[static_cast<size_t>(peer)]; }
  const Peer &at(int64_t peer) const { return peers_[static_cast<size_t>(peer)]; }
  int64_t mesh_rank(int64_t peer) const { return members_[static_cast<size_t>(peer)]; }
  TcpMesh::State state(int64_t peer) const { return mesh_->state(mesh_rank(peer)); }
  bool linked(int64_t peer) const { return state(peer) != TcpMesh::State::none; }
  void tell(int64_t peer, TcpKind kind, std::span<const std::byte> content = {}, std::span<const std::byte> rest = {}) {
    mesh_->send(mesh_rank(peer), kind, number_, content, rest);
  }
  void send_to_all(TcpKind kind, std::span<const std::byte> content = {}, std::span<const std::byte> rest = {});

  // Rounds.
  Status check_pieces(std::span<const Offer> offers, std::span<const Arrival> arrivals) const;
  Status take_pieces();
  Status accept(int64_t peer, Arrival *out);
  bool flushed() const;

  // Point to point.
  Status check_way(int64_t peer) const;
  Status move_send(int64_t peer);
  void send_chunks(int64_t peer);
  Status take_reply(int64_t peer, const TcpFrame &frame);
  Status move_recv(int64_t peer);
  Status take_coming(int64_t peer, const TcpFrame &frame);

  // Health. Under the lock.
  bool on_frame(int64_t source, TcpFrame &&frame) override;
  PeerStatus answer() const override;
  bool note_round(Peer &peer, TcpFrame &&frame);
  bool note_poison(const TcpFrame &frame);
  bool note_answer(Peer &peer, const TcpFrame &frame);
  Status fail(const Status &cause);
  void tell_failure();
  Status look(const Fingerprint *doing, bool waits);
  Status check_left(int64_t peer, const Fingerprint *doing);
  const Fingerprint *doing() const;
  std::string describe(int64_t peer) const;
  std::vector<int64_t> awaited(const Fingerprint &mine) const;
  void ask(const std::vector<int64_t> &ranks);
  /// Asks the ranks that `mine` waits for, and where none of them is to blame others.
  std::vector<int64_t> find_suspects(const Fingerprint &mine, std::vector<int64_t> *out_awaited);
  std::string texts_of(const std::vector<int64_t> &ranks) const;
  bool heard_of(int64_t peer) const;
  std::string progress_of(int64_t peer) const;

  const std::shared_ptr<TcpMesh> mesh_;
  const uint64_t number_;
  const std::vector<int64_t> members_;
  const int64_t rank_;
  std::vector<Peer> peers_;
  std::map<uint64_t, uint64_t> derived_;  ///< groups so far, by a hash of who is in them

  // The round under way.
  Fingerprint current_;
  bool compares_ = false;
  bool under_way_ = false;
  std::span<Arrival> arrivals_;
  int64_t missing_ = 0;

  Status failure_;
  bool inside_ = false;
  Fingerprint where_;
  bool in_message_ = false;
  Fingerprint message_;  ///< that this rank waits for
};

}  // namespace zero
