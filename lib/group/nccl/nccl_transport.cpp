/// @file Rounds between devices.
#include "group/nccl/nccl_transport.h"

#include "core/partition.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kPieceAlignment = 256;

constexpr int64_t piece_aligned(int64_t nbytes) { return round_up(nbytes, kPieceAlignment); }

}  // namespace

NcclTransport::NcclTransport(std::shared_ptr<Transport> under, const zero_nccl_table &nccl, std::shared_ptr<Transport> parent)
    : under_(std::move(under)),
      name_(std::string("nccl over ") + under_->name()),
      nccl_(nccl),
      parent_(std::move(parent)),
      told_(static_cast<size_t>(size())),
      heard_(static_cast<size_t>(size())),
      has_place_(static_cast<size_t>(size())),
      under_offers_(static_cast<size_t>(size())),
      under_arrivals_(static_cast<size_t>(size())),
      hosted_(static_cast<size_t>(size())) {}

/// All communicators come to their ends together, and each is awaited only then, after peers have been
/// told that this rank has left: what is awaited may be theirs to do.
NcclTransport::~NcclTransport() {
  end_messages(true);
  if (comm_ != nullptr) comm_->end(true);
  under_.reset();
}

int64_t NcclTransport::staging_nbytes() const {
  int64_t nbytes = under_->staging_nbytes() + area_nbytes_.load(std::memory_order_relaxed);
  for (const auto *messages : {&sent_, &received_}) {
    for (const std::unique_ptr<NcclMessage> &message : *messages) nbytes += message->staging_nbytes();
  }
  return nbytes;
}

/// What it outgrows is kept: giving it back could wait for what other ranks have yet to do.
Status NcclTransport::allocate_area(int64_t nbytes, std::shared_ptr<Mapping> *area) {
  std::shared_ptr<Mapping> made;
  ZERO_TRY(lane_->alloc(nbytes, &made));
  if (*area != nullptr) outgrown_.push_back(std::move(*area));
  *area = std::move(made);
  area_nbytes_.fetch_add(nbytes, std::memory_order_relaxed);
  return {};
}

int64_t NcclTransport::round_area_nbytes() const { return round_nbytes() + size() * kPieceAlignment; }

/// Data of devices moves in longer rounds: each waits for the device a few times.
int64_t NcclTransport::round_nbytes() const {
  constexpr int64_t kOnDevices = int64_t{16} << 20;
  return reaches() ? std::max(under_->round_nbytes(), kOnDevices) : under_->round_nbytes();
}

int64_t NcclTransport::host_step() const {
  const int64_t step = under_->round_nbytes() / std::max<int64_t>(size() - 1, 1);
  return std::max<int64_t>(step / kPieceAlignment * kPieceAlignment, 1);
}

Status NcclTransport::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  if (!reaches()) return under_->start(fingerprint, offers, arrivals);
  offers_ = offers;
  arrivals_ = arrivals;
  ZERO_TRY(describe_offers());
  return tell(fingerprint);
}

/// Fills told_ but for what all offers have in common.
Status NcclTransport::describe_offers() {
  longest_on_host_ = 0;
  any_on_device_ = false;
  lifted_.clear();
  const int64_t longest = under_->longest_nbytes();
  const void *known = nullptr;
  bool on_device = false;
  for (size_t peer = 0; peer < offers_.size(); ++peer) {
    const Offer &offer = offers_[peer];
    const int64_t whole = offer.nbytes + offer.rest_nbytes;
    told_[peer] = {.nbytes = offer.nbytes, .rest_nbytes = offer.rest_nbytes};
    if (static_cast<int64_t>(peer) == rank() || whole == 0) continue;
    if (offer.data != known) ZERO_TRY(lane_->find(offer.data, &on_device));
    known = offer.data;
    const bool lifts = !on_device && offer.nbytes > longest;
    if (lifts) lift(offer);
    told_[peer].on_device = on_device || lifts ? 1 : 0;
    any_on_device_ = any_on_device_ || on_device || lifts;
    if (!on_device && !lifts) longest_on_host_ = std::max(longest_on_host_, offer.nbytes);
  }
  return {};
}

/// Equal data pointers are one piece.
void NcclTransport::lift(const Offer &offer) {
  const auto same = [&offer](const Lifted &piece) { return piece.data == offer.data; };
  const auto known = std::find_if(lifted_.begin(), lifted_.end(), same);
  if (known == lifted_.end()) {
    lifted_.push_back({offer.data, offer.nbytes, nullptr});
  } else {
    known->nbytes = std::max(known->nbytes, offer.nbytes);
  }
}

/// The moves of the round before, which read this area, have ended. Errors of copies are met before anything of them leaves.
Status NcclTransport::copy_lifted() {
  if (areas_.leaving == nullptr) ZERO_TRY(allocate_area(round_area_nbytes(), &areas_.leaving));
  int64_t used = 0;
  for (Lifted &piece : lifted_) {
    ZERO_CHECK(piece.nbytes <= areas_.leaving->nbytes() - used, ZERO_E_TRANSPORT, "rank %lld offers more than the %lld bytes of a round",
               lld(rank()), lld(round_nbytes()));
    piece.copy = areas_.leaving->data() + used;
    reducer_->copy(piece.copy, piece.data, piece.nbytes, piece.nbytes);
    used += piece_aligned(piece.nbytes);
  }
  return reducer_->settle();
}

/// Where a piece that is moved between devices leaves from.
const void *NcclTransport::source_of(const Offer &offer) const {
  const auto same = [&offer](const Lifted &piece) { return piece.data == offer.data; };
  const auto lifted = std::find_if(lifted_.begin(), lifted_.end(), same);
  return lifted != lifted_.end() ? lifted->copy : offer.data;
}

/// Whether all that this rank awaits has a place on the device. The rest is to have room in the area, wherever it comes from.
Status NcclTransport::find_places(bool *out_all) {
  *out_all = true;
  int64_t room = 0;
  for (size_t peer = 0; peer < arrivals_.size(); ++peer) {
    const Arrival &arrival = arrivals_[peer];
    bool here = false;
    const bool awaited = static_cast<int64_t>(peer) != rank() && arrival.nbytes + arrival.rest_nbytes > 0;
    if (awaited && arrival.place != nullptr) ZERO_TRY(lane_->find(arrival.place, &here));
    has_place_[peer] = here;
    *out_all = *out_all && (here || !awaited);
    if (awaited && !here) room += piece_aligned(arrival.nbytes);
  }
  lacks_room_ = room > areas_.arriving->nbytes();
  return {};
}

Status NcclTransport::tell(const Fingerprint *fingerprint) {
  bool has_places = false;
  ZERO_TRY(find_places(&has_places));
  moves_rests_ = has_places && longest_on_host_ == 0 && lifted_.empty();
  broadcasts_ = moves_rests_ && size() > 1 && broadcast().possible();
  in_order_ = broadcasts_ && broadcast().in_order();
  for (size_t peer = 0; peer < told_.size(); ++peer) {
    Word &word = told_[peer];
    word.longest_on_host = longest_on_host_;
    word.any_on_device = any_on_device_ ? 1 : 0;
    word.moves_rests = moves_rests_ ? 1 : 0;
    word.lacks_room = lacks_room_ ? 1 : 0;
    word.spreads = broadcasts_ ? 1 : 0;
    word.in_order = in_order_ ? 1 : 0;
    under_offers_[peer] = {&word, sizeof word};
    under_arrivals_[peer] = {.nbytes = sizeof word};
    arrivals_[peer].data = nullptr;
  }
  phase_ = Phase::telling;
  return under_->start(fingerprint, under_offers_, under_arrivals_);
}

/// All ranks receive the same of all others, and so decide the same.
Status NcclTransport::receive() {
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    if (static_cast<int64_t>(peer) == rank()) continue;
    Word &word = heard_[peer];
    std::memcpy(&word, under_arrivals_[peer].data, sizeof word);
    longest_on_host_ = std::max(longest_on_host_, word.longest_on_host);
    any_on_device_ = any_on_device_ || word.any_on_device != 0;
    moves_rests_ = moves_rests_ && word.moves_rests != 0;
    lacks_room_ = lacks_room_ || word.lacks_room != 0;
    broadcasts_ = broadcasts_ && word.spreads != 0;
    in_order_ = in_order_ && word.in_order != 0;
  }
  under_->consume();
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    Arrival &arrival = arrivals_[peer];
    arrival.rest_is_there = moves_rests_;
    if (static_cast<int64_t>(peer) == rank()) continue;
    const Word &word = heard_[peer];
    const bool fits = word.nbytes == arrival.nbytes && (!moves_rests_ || word.rest_nbytes == arrival.rest_nbytes);
    ZERO_CHECK(fits, ZERO_E_TRANSPORT, "rank %zu offered %lld and %lld bytes, rank %lld expected %lld and %lld", peer, lld(word.nbytes),
               lld(word.rest_nbytes), lld(rank()), lld(arrival.nbytes), lld(arrival.rest_nbytes));
  }
  return {};
}

/// CUDA may wait within a copy of the host's memory for what the caller's stream was given, and that for anything. So looks wait first.
Status NcclTransport::catch_up() {
  if (longest_on_host_ == 0 && lifted_.empty()) return begin_moves();
  phase_ = Phase::catching_up;
  ZERO_TRY(lane_->wait_for_leader());
  return lane_->mark();
}

/// A rank that gives nothing but pieces of the host may have left in good order.
Status NcclTransport::poll_catch_up() {
  bool ended = false;
  ZERO_TRY(lane_->ended(&ended));
  if (!ended) return under_->health();
  if (!lifted_.empty()) ZERO_TRY(copy_lifted());
  return begin_moves();
}

/// Nobody moves anything before all have room: memory of a device may have to wait for what other ranks do there.
Status NcclTransport::make_room() {
  int64_t room = 0;
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    if (static_cast<int64_t>(peer) == rank() || heard_[peer].on_device == 0 || has_place_[peer]) continue;
    room += piece_aligned(moved_nbytes(heard_[peer]));
  }
  const int64_t had = areas_.arriving->nbytes();
  if (room > had) ZERO_TRY(allocate_area(std::max(room, 2 * had), &areas_.arriving));
  return say(Phase::making_room);
}

Status NcclTransport::begin_moves() {
  if (!any_on_device_) return begin_host_pieces();
  list_moves();
  if (moves_.empty()) return begin_host_pieces();
  phase_ = Phase::moving;
  return comm_->move(moves_, areas_);
}

void NcclTransport::list_moves() {
  if (!broadcasts_) return list_pieces();
  broadcast().list_moves(in_order_, moves_);
  for (Arrival &arrival : arrivals_) arrival.data = arrival.place;
}

void NcclTransport::list_pieces() {
  std::byte *staging = areas_.arriving->data();
  moves_.clear();
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    if (static_cast<int64_t>(peer) == rank()) continue;
    const int64_t out = moved_nbytes(told_[peer]);
    if (told_[peer].on_device != 0 && out > 0) {
      moves_.push_back({const_cast<void *>(source_of(offers_[peer])), out, static_cast<int64_t>(peer), ZERO_NCCL_SEND});
    }
    const int64_t in = moved_nbytes(heard_[peer]);
    if (heard_[peer].on_device == 0 || in == 0) continue;
    void *to = has_place_[peer] ? arrivals_[peer].place : staging;
    if (!has_place_[peer]) staging += piece_aligned(in);
    arrivals_[peer].data = to;
    moves_.push_back({to, in, static_cast<int64_t>(peer), ZERO_NCCL_RECV});
  }
}

/// While pieces are under way nobody can be done with the round, so nobody leaves in good order.
Status NcclTransport::poll_moves() {
  bool ended = false;
  const Status moved = comm_->idle(&ended);
  if (moved.ok() && ended) return begin_host_pieces();
  // What another rank says about its failure explains more than what NCCL makes of it.
  ZERO_TRY(under_->watch());
  return moved;
}

/// The next part of every piece that lies on the host; the end of the round when there is none.
Status NcclTransport::begin_host_pieces() {
  if (hosted_nbytes_ >= longest_on_host_) return begin_last();
  const auto part = [this](int64_t whole) { return std::clamp<int64_t>(whole - hosted_nbytes_, 0, host_step()); };
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    const Offer &offer = offers_[peer];
    const bool gives = told_[peer].on_device == 0;
    const bool gets = heard_[peer].on_device == 0 && static_cast<int64_t>(peer) != rank();
    under_offers_[peer] = {};
    if (gives && part(offer.nbytes) > 0) {
      under_offers_[peer] = {static_cast<const std::byte *>(offer.data) + hosted_nbytes_, part(offer.nbytes)};
    }
    under_arrivals_[peer] = {.nbytes = gets ? part(heard_[peer].nbytes) : 0};
  }
  phase_ = Phase::hosting;
  return under_->start(nullptr, under_offers_, under_arrivals_);
}

void NcclTransport::take_host_pieces() {
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    const Arrival &part = under_arrivals_[peer];
    if (static_cast<int64_t>(peer) == rank() || part.nbytes == 0) continue;
    std::vector<std::byte> &piece = hosted_[peer];
    piece.resize(static_cast<size_t>(heard_[peer].nbytes));
    std::memcpy(piece.data() + hosted_nbytes_, part.data, static_cast<size_t>(part.nbytes));
    arrivals_[peer].data = piece.data();
  }
  under_->consume();
  hosted_nbytes_ += host_step();
}

/// Where nothing moved between devices the round is over.
Status NcclTransport::begin_last() {
  if (any_on_device_) return say(Phase::ending);
  phase_ = Phase::idle;
  return {};
}

/// That this rank has come to the phase. Each rank gives each a byte: who gives nothing need not be awaited.
Status NcclTransport::say(Phase phase) {
  static constexpr std::byte kHere{1};
  std::fill(under_offers_.begin(), under_offers_.end(), Offer{&kHere, sizeof kHere});
  std::fill(under_arrivals_.begin(), under_arrivals_.end(), Arrival{.nbytes = sizeof kHere});
  phase_ = phase;
  return under_->start(nullptr, under_offers_, under_arrivals_);
}

Status NcclTransport::poll(bool *out_arrived) {
  if (!reaches()) return under_->poll(out_arrived);
  *out_arrived = false;
  if (phase_ == Phase::moving) {
    ZERO_TRY(poll_moves());
  } else if (phase_ == Phase::catching_up) {
    ZERO_TRY(poll_catch_up());
  } else {
    bool arrived = false;
    ZERO_TRY(under_->poll(&arrived));
    if (!arrived) return {};
    switch (phase_) {
      case Phase::telling:
        ZERO_TRY(receive());
        hosted_nbytes_ = 0;
        ZERO_TRY(any_on_device_ && lacks_room_ ? make_room() : catch_up());
        break;
      case Phase::making_room:
        under_->consume();
        ZERO_TRY(catch_up());
        break;
      case Phase::hosting:
        take_host_pieces();
        ZERO_TRY(begin_host_pieces());
        break;
      default:
        under_->consume();
        phase_ = Phase::idle;
    }
  }
  *out_arrived = phase_ == Phase::idle;
  return {};
}

/// Pieces that came through the host may still be on their way to the device.
void NcclTransport::consume() {
  if (!reaches()) return under_->consume();
  if (longest_on_host_ > 0) (void)reducer_->settle();
}

Status NcclTransport::poll_quiet(bool *out_quiet) {
  if (reaches()) ZERO_TRY(reducer_->settle());
  return under_->poll_quiet(out_quiet);
}

Status NcclTransport::send_start(int64_t peer, const Fingerprint &fingerprint, Offer offer) {
  if (!reaches()) return under_->send_start(peer, fingerprint, offer);
  return sent_[static_cast<size_t>(peer)]->start(fingerprint, const_cast<void *>(offer.data), offer.nbytes);
}

Status NcclTransport::send_poll(int64_t peer, bool *out_done) {
  return reaches() ? sent_[static_cast<size_t>(peer)]->poll(out_done) : under_->send_poll(peer, out_done);
}

Status NcclTransport::recv_start(int64_t peer, const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  if (!reaches()) return under_->recv_start(peer, fingerprint, data, nbytes);
  return received_[static_cast<size_t>(peer)]->start(fingerprint, data, nbytes);
}

Status NcclTransport::recv_poll(int64_t peer, bool *out_done) {
  return reaches() ? received_[static_cast<size_t>(peer)]->poll(out_done) : under_->recv_poll(peer, out_done);
}

Doorbell *NcclTransport::doorbell() {
  const bool looks = phase_ == Phase::moving || phase_ == Phase::catching_up ||
                     (ways_ != nullptr && ways_->looking_messages.load(std::memory_order_relaxed) > 0);
  return looks ? nullptr : under_->doorbell();
}

void NcclTransport::end_messages(bool in_order) {
  for (const auto *messages : {&sent_, &received_}) {
    for (const std::unique_ptr<NcclMessage> &message : *messages) message->end(in_order);
  }
}

void NcclTransport::poison(const Status &cause) {
  under_->poison(cause);
  if (comm_ != nullptr) comm_->end(false);
  end_messages(false);
}

/// Also where the group had failed before, so that nobody was poisoned for this failure.
bool NcclTransport::withdrawn() {
  if (comm_ == nullptr) return true;
  comm_->end(false);
  end_messages(false);
  bool over = comm_->over();
  bool given_up = comm_->given_up();
  for (const auto *messages : {&sent_, &received_}) {
    for (const std::unique_ptr<NcclMessage> &message : *messages) {
      over = message->over() && over;
      given_up = message->given_up() || given_up;
    }
  }
  if (!over) return false;
  // The communicator's end comes after the reducer's work, which the caller's stream may keep from ever being done.
  if (!given_up) (void)reducer_->settle();
  return true;
}

std::string NcclTransport::progress_report(const Fingerprint &mine) {
  const bool is_send = mine.kind == OperationKind::send;
  if (is_send || mine.kind == OperationKind::recv) {
    std::string text;
    if (ways_ != nullptr) text = (is_send ? sent_ : received_)[static_cast<size_t>(mine.root)]->progress();
    return text.empty() ? under_->progress_report(mine) : text;
  }
  if (phase_ == Phase::catching_up) return "the stream that it was given has not come to it, although every rank has arrived";
  if (phase_ != Phase::moving) return under_->progress_report(mine);
  return "NCCL has not moved all of its " + std::to_string(moves_.size()) + " pieces, although every rank has arrived";
}

}  // namespace zero
