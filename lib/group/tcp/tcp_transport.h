/// @file The transport over sockets between hosts: rounds of words, messages of words, and the
/// health of ranks. It is what ranks agree and watch each other by where MPI is not there; data
/// takes another way. Ranks of one host have no way here.
#pragma once

#include "group/peer_status.h"
#include "group/tcp/tcp_meeting.h"
#include "group/tcp/tcp_mesh.h"
#include "group/tcp/tcp_messages.h"
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

class TcpTransport final : public HostsTransport, private Rounds, private PeerHealth, private TcpMember {
 public:
  static constexpr int64_t kRoundNbytes = 65536;
  static constexpr int64_t kLongestNbytes = 4096;
  static constexpr uint64_t kFirstNumber = 0;  ///< the group of all ranks of a meeting

  /// members[r] is the rank in the mesh of the group's rank r.
  TcpTransport(std::shared_ptr<TcpMesh> mesh, uint64_t number, std::vector<int64_t> members, int64_t rank);
  ~TcpTransport() override;

  std::vector<int64_t> hosts() const override;
  /// Nothing moves between them anyway.
  void leave_hosts_out() override {}
  int64_t staging_nbytes() const override;
  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  friend class TcpMessages;

  static constexpr size_t kMostRounds = 2;  ///< the one that this rank is in, and the next

  struct Peer {
    bool left = false;
    bool awaited = false;  ///< by the round under way
    TcpFrames rounds{kMostRounds};
    TcpFrame piece;         ///< holds the data of the current round's arrival
    bool answered = false;  ///< in the progress report under way
    PeerStatus answer;
  };

  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  /// Also ZERO_E_TRANSPORT if a rank sent an invalid frame. Waiting calls report the end of a
  /// connection.
  Status health() override;
  Status watch() override;
  Status watch_peer(int64_t peer, const Fingerprint &doing) override;
  void poison(const Status &cause) override;
  void publish(const Fingerprint *fingerprint) override;
  void publish_message(const Fingerprint &fingerprint, bool ends) override;
  std::string progress_report(const Fingerprint &mine) override;
  std::string suspicions(const Fingerprint &mine) override;

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mesh_->mutex()); }
  Peer &at(int64_t peer) { return ranks_[static_cast<size_t>(peer)]; }
  const Peer &at(int64_t peer) const { return ranks_[static_cast<size_t>(peer)]; }
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
  const Fingerprint *doing() const { return published_.call() != nullptr ? published_.call() : under_way_ ? &current_ : nullptr; }
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
  std::vector<Peer> ranks_;
  TcpMessages messages_;
  std::map<uint64_t, uint64_t> derived_;  ///< groups so far, by a hash of their members

  // The round under way.
  Fingerprint current_;
  bool compares_ = false;
  bool under_way_ = false;
  std::span<Arrival> arrivals_;
  int64_t missing_ = 0;

  Status failure_;
  PublishedCalls published_;
};

}  // namespace zero
