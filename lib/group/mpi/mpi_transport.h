/// @file The transport over MPI: rounds and messages by non-blocking point-to-point, polled.
/// Everything MPI reads or writes is library memory, so a group that fails can leave at once. Knows
/// MPI only through its root.
#pragma once

#include "group/mpi/mpi_links.h"
#include "group/mpi/mpi_message.h"
#include "group/peer_status.h"
#include "group/transport.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace zero {

struct MpiOptions {
  std::string module_path;  ///< "" = where load_mpi_module looks
  int64_t rendezvous_ms = 60000;
  int64_t staging_nbytes = 1 << 20;  ///< most bytes offered in a round; equal on all ranks
};

class MpiTransport;

/// Makes a transport over the ranks of a communicator (a Fortran handle, or ZERO_MPI_WORLD), and
/// starts MPI if it is not running. Only the calling thread may poll it: the thread support of MPI
/// is known only afterwards (mpi_needs_single_thread).
Task connect_mpi(int64_t comm, MpiOptions options, std::shared_ptr<MpiTransport> *out);

class MpiTransport final : public HostsTransport, private Rounds, private Messages, private PeerHealth, private MpiMember {
 public:
  MpiTransport(std::shared_ptr<MpiRoot> root, int64_t number, std::vector<int64_t> members, int64_t rank, int64_t round_nbytes);
  ~MpiTransport() override;

  /// Sets the place. Call it once the hosts of all ranks are known.
  void find_place() { capabilities_.place = place_of(hosts(), rank()); }
  std::vector<int64_t> hosts() const override;
  void leave_hosts_out() override;
  std::shared_ptr<const void> footing() const override { return links_.shared_root(); }
  int64_t staging_nbytes() const override;

  Task derive_within(std::vector<int64_t> members, int64_t tag, int64_t most_round_nbytes, int64_t deadline_ms,
                     std::shared_ptr<Transport> *out) override;

 private:
  Status start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) override;
  Status poll(bool *out_arrived) override;
  void consume() override;
  Status poll_quiet(bool *out_quiet) override;

  Status check_thread(int64_t) const override { return links_.root().check_thread(); }
  Status send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) override;
  Status send_poll(int64_t peer, bool *out_done) override;
  Status recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) override;
  Status recv_poll(int64_t peer, bool *out_done) override;

  Status health() override;
  Status watch() override;
  Status watch_peer(int64_t peer, const Fingerprint &doing) override;
  void poison(const Status &cause) override;
  void publish(const Fingerprint *fingerprint) override;
  void publish_message(const Fingerprint &fingerprint, bool ends) override;
  std::string progress_report(const Fingerprint &mine) override;
  std::string suspicions(const Fingerprint &mine) override;

  enum class Awaiting : uint8_t { nothing, envelope, piece };
  struct Envelope;
  static constexpr int64_t kSendBlocks = 2;  ///< rounds whose sends may be under way together

  void on_control(int64_t source, const MpiControl &message) override;
  void answer(MpiControl *out) const override;

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(links_.root().mutex()); }
  /// Control messages, then whether the group still works.
  Status look();
  /// Posts what has not been posted yet.
  Status post();
  Status post_receives();
  Status post_piece(int64_t peer);
  Status post_sends();
  Status send_envelope(MpiBlock &block, int64_t peer);
  Status send_piece(MpiBlock &block, int64_t peer);
  int64_t stage(MpiBlock &block, bool copy);
  /// Takes what has come; all has when nothing is awaited any more.
  Status receive(bool *out_arrived);
  Status receive_from(int64_t peer);
  Status open_envelope(int64_t peer);
  /// True for ranks that first messages go to.
  bool meets(int64_t peer) const;
  bool travels_in_envelope(int64_t nbytes) const;
  Status poll_message(MpiMessage &message, bool *out_done);
  /// Ranks whose part of the round under way has not arrived.
  std::vector<int64_t> missing() const;
  std::vector<int64_t> awaited(const Fingerprint &mine) const;
  void ask(const std::vector<int64_t> &ranks);
  bool answered(int64_t peer) const { return answers_[static_cast<size_t>(peer)].kind == MpiControl::answer; }
  PeerStatus answer_of(int64_t peer) const;
  /// Asks the ranks that `mine` waits for, and where none of them is to blame others.
  std::vector<int64_t> find_suspects(const Fingerprint &mine, std::vector<int64_t> *out_awaited);
  std::string texts_of(const std::vector<int64_t> &ranks) const;
  bool send_blocks_idle(int64_t peer) const;
  std::string progress_of(int64_t peer) const;
  void tell_failure();

  mutable MpiLinks links_;
  std::vector<int64_t> left_out_hosts_;  ///< hosts(), when nothing moves between ranks of one host

  // The round under way.
  const Fingerprint *fingerprint_ = nullptr;
  std::span<const Offer> offers_;
  std::span<Arrival> arrivals_;
  bool receives_posted_ = true;
  bool sends_posted_ = true;
  std::vector<Awaiting> awaiting_;
  std::vector<int64_t> piece_offsets_;     ///< in the receiving block
  std::vector<const std::byte *> staged_;  ///< address of each peer's piece in the sending block
  MpiBlock *sending_ = nullptr;            ///< one of send_blocks_

  std::vector<std::unique_ptr<MpiBlock>> send_blocks_;
  std::unique_ptr<MpiBlock> recv_block_;
  std::vector<MpiMessage> sends_;
  std::vector<MpiMessage> recvs_;

  Status failure_;
  PublishedCalls published_;
  std::vector<MpiControl> answers_;  ///< to what was asked last; kind 0 = none yet
};

}  // namespace zero
