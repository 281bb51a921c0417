/// @file Rounds between devices.
#include "group/nccl/nccl_rounds.h"

#include "core/partition.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kPieceAlignment = 256;

constexpr int64_t piece_aligned(int64_t nbytes) { return round_up(nbytes, kPieceAlignment); }

}  // namespace

NcclRounds::NcclRounds(Transport &under, const Reducer &reducer, SideStream &lane, NcclComm &comm)
    : under_(under),
      reducer_(reducer),
      lane_(lane),
      comm_(comm),
      told_(static_cast<size_t>(under.size())),
      heard_(told_.size()),
      has_place_(told_.size()),
      under_offers_(told_.size()),
      under_arrivals_(told_.size()),
      hosted_(told_.size()) {}

/// Data of devices moves in longer rounds: each waits for the device a few times.
int64_t NcclRounds::round_nbytes(const Transport &under) {
  constexpr int64_t kOnDevices = int64_t{16} << 20;
  return std::max(under.capabilities().round_nbytes, kOnDevices);
}

Status NcclRounds::open() { return allocate_area(round_area_nbytes(), &areas_.arriving); }

void NcclRounds::Common::join(const Common &others) {
  longest_on_host = std::max(longest_on_host, others.longest_on_host);
  any_on_device = any_on_device || others.any_on_device;
  moves_rests = moves_rests && others.moves_rests;
  lacks_room = lacks_room || others.lacks_room;
  broadcasts = broadcasts && others.broadcasts;
  in_order = in_order && others.in_order;
}

/// Outgrown areas are kept: freeing one could wait for work that other ranks have yet to do.
Status NcclRounds::allocate_area(int64_t nbytes, std::shared_ptr<Mapping> *area) {
  std::shared_ptr<Mapping> made;
  ZERO_TRY(lane_.alloc(nbytes, &made));
  if (*area != nullptr) outgrown_.push_back(std::move(*area));
  *area = std::move(made);
  area_nbytes_.fetch_add(nbytes, std::memory_order_relaxed);
  return {};
}

int64_t NcclRounds::round_area_nbytes() const { return round_nbytes(under_) + under_.size() * kPieceAlignment; }

int64_t NcclRounds::host_step() const {
  const int64_t step = under_.capabilities().round_nbytes / std::max<int64_t>(under_.size() - 1, 1);
  return std::max<int64_t>(step / kPieceAlignment * kPieceAlignment, 1);
}

Status NcclRounds::start(const Fingerprint *fingerprint, std::span<const Offer> offers, std::span<Arrival> arrivals) {
  offers_ = offers;
  arrivals_ = arrivals;
  ZERO_TRY(describe_offers());
  return tell(fingerprint);
}

/// Fills told_ but for what all offers have in common.
Status NcclRounds::describe_offers() {
  all_ = {};
  lifted_.clear();
  const int64_t longest = under_.capabilities().longest_nbytes;
  const void *known = nullptr;
  bool on_device = false;
  for (size_t peer = 0; peer < offers_.size(); ++peer) {
    const Offer &offer = offers_[peer];
    const int64_t whole = offer.nbytes + offer.rest_nbytes;
    told_[peer] = {.nbytes = offer.nbytes, .rest_nbytes = offer.rest_nbytes};
    if (static_cast<int64_t>(peer) == rank() || whole == 0) continue;
    if (offer.data != known) ZERO_TRY(lane_.find(offer.data, &on_device));
    known = offer.data;
    const bool lifts = !on_device && offer.nbytes > longest;
    if (lifts) lift(offer);
    told_[peer].on_device = on_device || lifts ? 1 : 0;
    all_.any_on_device = all_.any_on_device || on_device || lifts;
    if (!on_device && !lifts) all_.longest_on_host = std::max(all_.longest_on_host, offer.nbytes);
  }
  return {};
}

/// Equal data pointers are one piece.
void NcclRounds::lift(const Offer &offer) {
  const auto same = [&offer](const Lifted &piece) { return piece.data == offer.data; };
  const auto known = std::find_if(lifted_.begin(), lifted_.end(), same);
  if (known == lifted_.end()) {
    lifted_.push_back({offer.data, offer.nbytes, nullptr});
  } else {
    known->nbytes = std::max(known->nbytes, offer.nbytes);
  }
}

/// The moves of the round before, which read this area, have ended. Errors of copies are met before
/// anything of them leaves.
Status NcclRounds::copy_lifted() {
  if (areas_.leaving == nullptr) ZERO_TRY(allocate_area(round_area_nbytes(), &areas_.leaving));
  int64_t used = 0;
  for (Lifted &piece : lifted_) {
    ZERO_CHECK(piece.nbytes <= areas_.leaving->nbytes() - used, ZERO_E_TRANSPORT, "rank %lld offers more than the %lld bytes of a round",
               lld(rank()), lld(round_nbytes(under_)));
    piece.copy = areas_.leaving->data() + used;
    reducer_.copy(piece.copy, piece.data, piece.nbytes, piece.nbytes);
    used += piece_aligned(piece.nbytes);
  }
  return reducer_.settle();
}

/// The address from which a piece moves between devices.
const void *NcclRounds::source_of(const Offer &offer) const {
  const auto same = [&offer](const Lifted &piece) { return piece.data == offer.data; };
  const auto lifted = std::find_if(lifted_.begin(), lifted_.end(), same);
  return lifted != lifted_.end() ? lifted->copy : offer.data;
}

/// Finds whether all arrivals of this rank have a place on the device. The others need room in the
/// area, regardless of their source.
Status NcclRounds::find_places(bool *out_all) {
  *out_all = true;
  int64_t room = 0;
  for (size_t peer = 0; peer < arrivals_.size(); ++peer) {
    const Arrival &arrival = arrivals_[peer];
    bool here = false;
    const bool awaited = static_cast<int64_t>(peer) != rank() && arrival.nbytes + arrival.rest_nbytes > 0;
    if (awaited && arrival.place != nullptr) ZERO_TRY(lane_.find(arrival.place, &here));
    has_place_[peer] = here;
    *out_all = *out_all && (here || !awaited);
    if (awaited && !here) room += piece_aligned(arrival.nbytes);
  }
  all_.lacks_room = room > areas_.arriving->nbytes();
  return {};
}

Status NcclRounds::tell(const Fingerprint *fingerprint) {
  bool has_places = false;
  ZERO_TRY(find_places(&has_places));
  all_.moves_rests = has_places && all_.longest_on_host == 0 && lifted_.empty();
  all_.broadcasts = all_.moves_rests && under_.size() > 1 && broadcast().possible();
  all_.in_order = all_.broadcasts && broadcast().in_order();
  for (size_t peer = 0; peer < told_.size(); ++peer) {
    Word &word = told_[peer];
    word.common = all_;
    under_offers_[peer] = {&word, sizeof word};
    under_arrivals_[peer] = {.nbytes = sizeof word};
    arrivals_[peer].data = nullptr;
  }
  phase_ = Phase::telling;
  return under_.rounds().start(fingerprint, under_offers_, under_arrivals_);
}

/// All ranks receive the same words from all others, so all make the same decision.
Status NcclRounds::receive() {
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    if (static_cast<int64_t>(peer) == rank()) continue;
    Word &word = heard_[peer];
    std::memcpy(&word, under_arrivals_[peer].data, sizeof word);
    all_.join(word.common);
  }
  under_.rounds().consume();
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    Arrival &arrival = arrivals_[peer];
    arrival.rest_is_there = all_.moves_rests;
    if (static_cast<int64_t>(peer) == rank()) continue;
    const Word &word = heard_[peer];
    const bool fits = word.nbytes == arrival.nbytes && (!all_.moves_rests || word.rest_nbytes == arrival.rest_nbytes);
    ZERO_CHECK(fits, ZERO_E_TRANSPORT, "rank %zu offered %lld and %lld bytes, rank %lld expected %lld and %lld", peer, lld(word.nbytes),
               lld(word.rest_nbytes), lld(rank()), lld(arrival.nbytes), lld(arrival.rest_nbytes));
  }
  return {};
}

/// CUDA may wait within a copy of the host's memory for what the caller's stream was given, and
/// that for anything. So looks wait first.
Status NcclRounds::catch_up() {
  if (all_.longest_on_host == 0 && lifted_.empty()) return begin_moves();
  phase_ = Phase::catching_up;
  ZERO_TRY(lane_.wait_for_leader());
  return lane_.mark();
}

/// A rank that gives nothing but pieces of the host may have left in good order.
Status NcclRounds::poll_catch_up() {
  bool ended = false;
  ZERO_TRY(lane_.ended(&ended));
  if (!ended) return under_.peers().health();
  if (!lifted_.empty()) ZERO_TRY(copy_lifted());
  return begin_moves();
}

/// Nobody moves anything before all have room: memory of a device may have to wait for what other
/// ranks do there.
Status NcclRounds::make_room() {
  int64_t room = 0;
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    if (static_cast<int64_t>(peer) == rank() || heard_[peer].on_device == 0 || has_place_[peer]) continue;
    room += piece_aligned(moved_nbytes(heard_[peer]));
  }
  const int64_t had = areas_.arriving->nbytes();
  if (room > had) ZERO_TRY(allocate_area(std::max(room, 2 * had), &areas_.arriving));
  return say(Phase::making_room);
}

Status NcclRounds::begin_moves() {
  if (!all_.any_on_device) return begin_host_pieces();
  list_moves();
  if (moves_.empty()) return begin_host_pieces();
  phase_ = Phase::moving;
  return comm_.move(moves_, areas_);
}

void NcclRounds::list_moves() {
  if (!all_.broadcasts) return list_pieces();
  broadcast().list_moves(all_.in_order, moves_);
  for (Arrival &arrival : arrivals_) arrival.data = arrival.place;
}

void NcclRounds::list_pieces() {
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

/// While pieces are in progress no rank can finish the round, so none leaves in good order.
Status NcclRounds::poll_moves() {
  bool ended = false;
  const Status moved = comm_.idle(&ended);
  if (moved.ok() && ended) return begin_host_pieces();
  // Another rank's own report of its failure explains more than NCCL's error.
  ZERO_TRY(under_.peers().watch());
  return moved;
}

/// Starts the next part of every piece on the host, or ends the round if none is left.
Status NcclRounds::begin_host_pieces() {
  if (hosted_nbytes_ >= all_.longest_on_host) return begin_last();
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
  return under_.rounds().start(nullptr, under_offers_, under_arrivals_);
}

void NcclRounds::take_host_pieces() {
  for (size_t peer = 0; peer < heard_.size(); ++peer) {
    const Arrival &part = under_arrivals_[peer];
    if (static_cast<int64_t>(peer) == rank() || part.nbytes == 0) continue;
    std::vector<std::byte> &piece = hosted_[peer];
    piece.resize(static_cast<size_t>(heard_[peer].nbytes));
    std::memcpy(piece.data() + hosted_nbytes_, part.data, static_cast<size_t>(part.nbytes));
    arrivals_[peer].data = piece.data();
  }
  under_.rounds().consume();
  hosted_nbytes_ += host_step();
}

/// If nothing moved between devices, the round ends here.
Status NcclRounds::begin_last() {
  if (all_.any_on_device) return say(Phase::ending);
  phase_ = Phase::idle;
  return {};
}

/// Reports that this rank has reached the phase. Each rank sends every other a byte, because rounds
/// do not await ranks that offer nothing.
Status NcclRounds::say(Phase phase) {
  static constexpr std::byte kHere{1};
  std::fill(under_offers_.begin(), under_offers_.end(), Offer{&kHere, sizeof kHere});
  std::fill(under_arrivals_.begin(), under_arrivals_.end(), Arrival{.nbytes = sizeof kHere});
  phase_ = phase;
  return under_.rounds().start(nullptr, under_offers_, under_arrivals_);
}

Status NcclRounds::poll(bool *out_arrived) {
  *out_arrived = false;
  if (phase_ == Phase::moving) {
    ZERO_TRY(poll_moves());
  } else if (phase_ == Phase::catching_up) {
    ZERO_TRY(poll_catch_up());
  } else {
    bool arrived = false;
    ZERO_TRY(under_.rounds().poll(&arrived));
    if (!arrived) return {};
    switch (phase_) {
      case Phase::telling:
        ZERO_TRY(receive());
        hosted_nbytes_ = 0;
        ZERO_TRY(all_.any_on_device && all_.lacks_room ? make_room() : catch_up());
        break;
      case Phase::making_room:
        under_.rounds().consume();
        ZERO_TRY(catch_up());
        break;
      case Phase::hosting:
        take_host_pieces();
        ZERO_TRY(begin_host_pieces());
        break;
      default:
        under_.rounds().consume();
        phase_ = Phase::idle;
    }
  }
  *out_arrived = phase_ == Phase::idle;
  return {};
}

/// Pieces that came through the host may still be on their way to the device.
void NcclRounds::consume() {
  if (all_.longest_on_host > 0) (void)reducer_.settle();
}

Status NcclRounds::poll_quiet(bool *out_quiet) {
  ZERO_TRY(reducer_.settle());
  return under_.rounds().poll_quiet(out_quiet);
}

std::string NcclRounds::progress() const {
  if (phase_ == Phase::catching_up) return "the stream that it was given has not come to it, although every rank has arrived";
  if (phase_ != Phase::moving) return "";
  return "NCCL has not moved all of its " + std::to_string(moves_.size()) + " pieces, although every rank has arrived";
}

}  // namespace zero
