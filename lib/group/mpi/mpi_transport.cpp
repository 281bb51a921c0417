/// @file MpiTransport: rounds over MPI. The first round of a collective exchanges envelopes
/// (fingerprint, size, small pieces). Larger pieces move only between ranks whose fingerprints
/// agree, so a wrong count can neither overrun a buffer nor leave a message that no rank receives.
#include "group/mpi/mpi_transport.h"

#include "core/partition.h"

#include <algorithm>
#include <cstring>

namespace zero {

/// The first message of a collective between two ranks, with the piece itself where it is small.
struct MpiTransport::Envelope {
  Fingerprint fingerprint;
  int64_t nbytes;
  std::byte piece[1016];
};

namespace {

constexpr int64_t kAlignment = 64;

constexpr int64_t aligned(int64_t nbytes) { return round_up(nbytes, kAlignment); }

std::vector<MpiMessage> one_per_peer(MpiMessage::Direction direction, int64_t size) {
  std::vector<MpiMessage> out;
  for (int64_t peer = 0; peer < size; ++peer) out.emplace_back(direction, peer);
  return out;
}

}  // namespace

MpiTransport::MpiTransport(std::shared_ptr<MpiRoot> root, int64_t number, std::vector<int64_t> members, int64_t rank, int64_t round_nbytes)
    : HostsTransport(rank, std::ssize(members), {.name = "mpi", .round_nbytes = round_nbytes, .single_thread = mpi_needs_single_thread()}),
      links_(std::move(root), number, std::move(members), rank),
      awaiting_(static_cast<size_t>(size()), Awaiting::nothing),
      piece_offsets_(static_cast<size_t>(size())),
      staged_(static_cast<size_t>(size())),
      recv_block_(std::make_unique<MpiBlock>(2 * size())),
      sends_(one_per_peer(MpiMessage::Direction::send, size())),
      recvs_(one_per_peer(MpiMessage::Direction::recv, size())) {
  for (int64_t i = 0; i < kSendBlocks; ++i) send_blocks_.push_back(std::make_unique<MpiBlock>(2 * size()));
  set_interfaces(*this, *this, *this);
  const auto guard = lock();
  links_.root().enroll(number, this);
}

MpiTransport::~MpiTransport() {
  const auto guard = lock();
  MpiRoot &root = links_.root();
  try {
    if (failure_.ok()) {
      links_.tell_left();
    } else {
      tell_failure();  // the rank that noticed it may have ended before it told all
    }
    root.leave(links_.number());
  } catch (...) {
    root.forget(links_.number());  // without memory: peers notice at their deadline
  }
  for (std::unique_ptr<MpiBlock> &block : send_blocks_) root.keep(std::move(block));
  root.keep(std::move(recv_block_));
  for (MpiMessage &message : sends_) root.keep(message.take_block());
  for (MpiMessage &message : recvs_) root.keep(message.take_block());
}

int64_t MpiTransport::staging_nbytes() const {
  const auto guard = lock();
  int64_t nbytes = recv_block_->nbytes();
  for (const std::unique_ptr<MpiBlock> &block : send_blocks_) nbytes += block->nbytes();
  for (const MpiMessage &message : sends_) nbytes += message.staging_nbytes();
  for (const MpiMessage &message : recvs_) nbytes += message.staging_nbytes();
  return nbytes;
}

bool MpiTransport::meets(int64_t peer) const {
  if (left_out_hosts_.empty()) return peer != rank();
  return left_out_hosts_[static_cast<size_t>(peer)] != left_out_hosts_[static_cast<size_t>(rank())];
}

bool MpiTransport::travels_in_envelope(int64_t nbytes) const {
  return fingerprint_ != nullptr && nbytes <= static_cast<int64_t>(sizeof(Envelope::piece));
}

Status MpiTransport::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  const auto guard = lock();
  ZERO_TRY(look());
  fingerprint_ = fingerprint;
  offers_ = offers;
  arrivals_ = arrivals;
  receives_posted_ = false;
  sends_posted_ = false;
  for (int64_t peer = 0; peer < size(); ++peer) {
    Arrival &arrival = arrivals_[static_cast<size_t>(peer)];
    arrival.data = nullptr;
    const Awaiting later = arrival.nbytes > 0 && peer != rank() ? Awaiting::piece : Awaiting::nothing;
    awaiting_[static_cast<size_t>(peer)] = fingerprint != nullptr && meets(peer) ? Awaiting::envelope : later;
  }
  return post();
}

Status MpiTransport::post() {
  if (!links_.root().may_call()) return {};
  if (!receives_posted_) ZERO_TRY(post_receives());
  if (!sends_posted_) ZERO_TRY(post_sends());
  return {};
}

Status MpiTransport::post_receives() {
  int64_t offset = fingerprint_ != nullptr ? size() * static_cast<int64_t>(sizeof(Envelope)) : 0;
  for (int64_t peer = 0; peer < size(); ++peer) {
    const int64_t nbytes = arrivals_[static_cast<size_t>(peer)].nbytes;
    if (peer == rank() || nbytes == 0 || travels_in_envelope(nbytes)) continue;
    piece_offsets_[static_cast<size_t>(peer)] = offset;
    offset += aligned(nbytes);
  }
  recv_block_->reserve(offset);
  for (int64_t peer = 0; peer < size(); ++peer) {
    const Awaiting awaiting = awaiting_[static_cast<size_t>(peer)];
    if (awaiting == Awaiting::piece) ZERO_TRY(post_piece(peer));
    if (awaiting != Awaiting::envelope) continue;
    ZERO_TRY(links_.recv(peer, kEnvelopes, recv_block_->data() + peer * static_cast<int64_t>(sizeof(Envelope)), sizeof(Envelope),
                         &recv_block_->request(peer)));
  }
  receives_posted_ = true;
  return {};
}

Status MpiTransport::post_piece(int64_t peer) {
  awaiting_[static_cast<size_t>(peer)] = Awaiting::piece;
  return links_.recv(peer, kPieces, recv_block_->data() + piece_offsets_[static_cast<size_t>(peer)],
                     arrivals_[static_cast<size_t>(peer)].nbytes, &recv_block_->request(size() + peer));
}

/// Gives each piece that needs it a place in the block, equal neighbours one place; copies when
/// `copy`. Returns the bytes used.
int64_t MpiTransport::stage(MpiBlock &block, bool copy) {
  int64_t offset = fingerprint_ != nullptr ? size() * static_cast<int64_t>(sizeof(Envelope)) : 0;
  const Offer *last = nullptr;
  int64_t last_offset = 0;
  for (int64_t peer = 0; peer < size(); ++peer) {
    const Offer &offer = offers_[static_cast<size_t>(peer)];
    if (peer == rank() || offer.nbytes == 0 || travels_in_envelope(offer.nbytes)) continue;
    const bool repeated = last != nullptr && last->data == offer.data && last->nbytes == offer.nbytes;
    if (!repeated) {
      last = &offer;
      last_offset = offset;
      offset += aligned(offer.nbytes);
      if (copy) std::memcpy(block.data() + last_offset, offer.data, static_cast<size_t>(offer.nbytes));
    }
    if (copy) staged_[static_cast<size_t>(peer)] = block.data() + last_offset;
  }
  return offset;
}

Status MpiTransport::post_sends() {
  MpiBlock *block = nullptr;
  for (const std::unique_ptr<MpiBlock> &candidate : send_blocks_) {
    bool idle = false;
    ZERO_TRY(links_.root().test(candidate.get(), &idle));
    if (idle) block = candidate.get();
  }
  // Two rounds ahead of the slowest peer this rank waits, so that memory stays bounded.
  if (block == nullptr) return {};
  block->reserve(stage(*block, false));
  stage(*block, true);
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (fingerprint_ != nullptr && meets(peer)) ZERO_TRY(send_envelope(*block, peer));
    if (fingerprint_ == nullptr && peer != rank()) ZERO_TRY(send_piece(*block, peer));
  }
  sending_ = block;
  sends_posted_ = true;
  return {};
}

Status MpiTransport::send_piece(MpiBlock &block, int64_t peer) {
  const Offer &offer = offers_[static_cast<size_t>(peer)];
  if (offer.nbytes == 0 || travels_in_envelope(offer.nbytes)) return {};
  return links_.send(peer, kPieces, staged_[static_cast<size_t>(peer)], offer.nbytes, &block.request(size() + peer));
}

Status MpiTransport::send_envelope(MpiBlock &block, int64_t peer) {
  const Offer &offer = offers_[static_cast<size_t>(peer)];
  std::byte *place = block.data() + peer * static_cast<int64_t>(sizeof(Envelope));
  const int64_t inside = travels_in_envelope(offer.nbytes) ? offer.nbytes : 0;
  std::memcpy(place + offsetof(Envelope, fingerprint), fingerprint_, sizeof *fingerprint_);
  std::memcpy(place + offsetof(Envelope, nbytes), &offer.nbytes, sizeof offer.nbytes);
  if (inside > 0) std::memcpy(place + offsetof(Envelope, piece), offer.data, static_cast<size_t>(inside));
  return links_.send(peer, kEnvelopes, place, static_cast<int64_t>(offsetof(Envelope, piece)) + inside, &block.request(peer));
}

Status MpiTransport::open_envelope(int64_t peer) {
  const std::byte *place = recv_block_->data() + peer * static_cast<int64_t>(sizeof(Envelope));
  Fingerprint theirs;
  int64_t nbytes = 0;
  std::memcpy(&theirs, place + offsetof(Envelope, fingerprint), sizeof theirs);
  std::memcpy(&nbytes, place + offsetof(Envelope, nbytes), sizeof nbytes);
  ZERO_TRY(compare(*fingerprint_, name_of(rank()), theirs, name_of(peer)));
  ZERO_TRY(send_piece(*sending_, peer));
  Arrival &arrival = arrivals_[static_cast<size_t>(peer)];
  ZERO_CHECK(nbytes == arrival.nbytes, ZERO_E_MISMATCH, "rank %lld offers %lld bytes to rank %lld, which expects %lld, in %s",
             name_of(peer), lld(nbytes), name_of(rank()), lld(arrival.nbytes), to_text(theirs).c_str());
  if (nbytes > 0 && !travels_in_envelope(nbytes)) return post_piece(peer);
  if (nbytes > 0) arrival.data = place + offsetof(Envelope, piece);
  awaiting_[static_cast<size_t>(peer)] = Awaiting::nothing;
  return {};
}

/// Takes what has come from one peer.
Status MpiTransport::receive_from(int64_t peer) {
  bool arrived = false;
  Awaiting &awaiting = awaiting_[static_cast<size_t>(peer)];
  if (awaiting == Awaiting::envelope) {
    ZERO_TRY(links_.test_recv(peer, kEnvelopes, &recv_block_->request(peer), &arrived));
    if (!arrived) return {};
    ZERO_TRY(open_envelope(peer));
  }
  if (awaiting != Awaiting::piece) return {};
  MpiRequest &request = recv_block_->request(size() + peer);
  ZERO_TRY(links_.test_recv(peer, kPieces, &request, &arrived));
  if (!arrived) return {};
  Arrival &arrival = arrivals_[static_cast<size_t>(peer)];
  ZERO_CHECK(request.nbytes == arrival.nbytes, ZERO_E_MISMATCH, "rank %lld sent %lld bytes where rank %lld expects %lld", name_of(peer),
             lld(request.nbytes), name_of(rank()), lld(arrival.nbytes));
  arrival.data = recv_block_->data() + piece_offsets_[static_cast<size_t>(peer)];
  awaiting = Awaiting::nothing;
  return {};
}

Status MpiTransport::receive(bool *out_arrived) {
  bool arrived = true;
  for (int64_t peer = 0; peer < size(); ++peer) {
    if (awaiting_[static_cast<size_t>(peer)] != Awaiting::nothing) ZERO_TRY(receive_from(peer));
    if (awaiting_[static_cast<size_t>(peer)] != Awaiting::nothing) arrived = false;
  }
  *out_arrived = arrived;
  return {};
}

Status MpiTransport::poll(bool *out_arrived) {
  *out_arrived = false;
  const auto guard = lock();
  ZERO_TRY(links_.root().progress());
  // Looked at before the messages: a failure of peers that are further on follows what they sent
  // for this round.
  const Status before = failure_;
  if (!links_.root().may_call()) return before;
  if (before.ok()) ZERO_TRY(post());
  if (!sends_posted_) return before;
  Status received = receive(out_arrived);
  return *out_arrived || before.ok() ? received : before;
}

void MpiTransport::consume() {
  const auto guard = lock();
  fingerprint_ = nullptr;
  offers_ = {};
  arrivals_ = {};
}

Status MpiTransport::poll_quiet(bool *out_quiet) {
  *out_quiet = false;
  const auto guard = lock();
  ZERO_TRY(links_.root().progress());
  const Status before = failure_;
  if (!links_.root().may_call()) return before;
  bool quiet = true;
  for (const std::unique_ptr<MpiBlock> &block : send_blocks_) {
    bool idle = false;
    const Status tested = links_.root().test(block.get(), &idle);
    if (!tested.ok()) return before.ok() ? tested : before;
    quiet = quiet && idle;
  }
  *out_quiet = quiet;
  return quiet ? Status() : before;
}

Status MpiTransport::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  const auto guard = lock();
  ZERO_TRY(look());
  ZERO_TRY(check_thread(peer));
  // Only read: the message copies it into its own memory.
  auto *data = const_cast<std::byte *>(static_cast<const std::byte *>(offer.data));
  return sends_[static_cast<size_t>(peer)].start(links_, fingerprint, data, offer.nbytes, capabilities().round_nbytes);
}

Status MpiTransport::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  const auto guard = lock();
  ZERO_TRY(look());
  ZERO_TRY(check_thread(peer));
  return recvs_[static_cast<size_t>(peer)].start(links_, fingerprint, static_cast<std::byte *>(data), nbytes, capabilities().round_nbytes);
}

Status MpiTransport::send_poll(int64_t peer, bool *out_done) { return poll_message(sends_[static_cast<size_t>(peer)], out_done); }

Status MpiTransport::recv_poll(int64_t peer, bool *out_done) { return poll_message(recvs_[static_cast<size_t>(peer)], out_done); }

Status MpiTransport::poll_message(MpiMessage &message, bool *out_done) {
  *out_done = false;
  const auto guard = lock();
  ZERO_TRY(links_.root().progress());
  const Status before = failure_;
  if (!links_.root().may_call()) return before;
  Status polled = message.poll(links_, out_done);
  return *out_done || before.ok() ? polled : before;
}

}  // namespace zero
