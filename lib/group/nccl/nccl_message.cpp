/// @file A message's way from one rank's memory to another's.
#include "group/nccl/nccl_message.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace zero {
namespace {

// Each piece waits for the device once. A piece from the host occupies device memory meanwhile,
// perhaps on both sides; a piece from a device does so if the receiver's memory is on the host.
constexpr int64_t kHostPieceNbytes = int64_t{16} << 20;
constexpr int64_t kDevicePieceNbytes = int64_t{256} << 20;
constexpr int64_t kLeastAreaNbytes = int64_t{64} << 10;

constexpr int64_t kSender = 0;
constexpr int64_t kReceiver = 1;

}  // namespace

NcclMessage::NcclMessage(NcclWays &ways, Direction direction, int64_t peer) : ways_(ways), direction_(direction), peer_(peer) {}

Status NcclMessage::start_under(void *data, int64_t nbytes) {
  if (sends()) return ways_.under.messages().send_start(peer_, fingerprint_, {data, nbytes});
  return ways_.under.messages().recv_start(peer_, fingerprint_, data, nbytes);
}

Status NcclMessage::poll_under(bool *out_done) {
  return sends() ? ways_.under.messages().send_poll(peer_, out_done) : ways_.under.messages().recv_poll(peer_, out_done);
}

Status NcclMessage::start(const Fingerprint &fingerprint, void *data, int64_t nbytes) {
  ZERO_CHECK(phase_ == Phase::idle, ZERO_E_INTERNAL, "a message with rank %lld was started before the last one ended", lld(peer_));
  fingerprint_ = fingerprint;
  data_ = static_cast<std::byte *>(data);
  nbytes_ = nbytes;
  moved_nbytes_ = 0;
  on_device_ = false;
  if (nbytes > 0) ZERO_TRY(ways_.lane.find(data, &on_device_));
  if (sends()) ZERO_TRY(fill_notice());
  // A receiver takes it that this message comes as the last one over NCCL did.
  if (comm_ != nullptr) ZERO_TRY(reserve_area(sends() ? piece_nbytes() : std::min(last_piece_nbytes_, nbytes_)));
  phase_ = Phase::telling;
  const auto head = static_cast<int64_t>(offsetof(Notice, short_data));
  return start_under(&notice_, is_short() ? head + nbytes_ : head);
}

/// Depends on the sender's memory and the length alone, so that the receiver need not have come
/// yet.
Status NcclMessage::fill_notice() {
  notice_.piece_nbytes = 0;
  if (on_device_) {
    notice_.piece_nbytes = kDevicePieceNbytes;
  } else if (nbytes_ > ways_.under.capabilities().longest_nbytes) {
    notice_.piece_nbytes = kHostPieceNbytes;
  } else {
    if (is_short() && nbytes_ > 0) std::memcpy(notice_.short_data, data_, static_cast<size_t>(nbytes_));
    return {};
  }
  if (comm_ != nullptr) return {};
  const int32_t error = ways_.nccl.unique_id(notice_.id);
  char text[512] = "";
  if (error != 0) ways_.nccl.error_text(error, text, sizeof text);
  ZERO_CHECK(error == 0, ZERO_E_TRANSPORT, "NCCL names no communicator: %s", text);
  return {};
}

/// True if memory of the host is copied to the device, or the reverse.
bool NcclMessage::meets_host() const { return notice_.piece_nbytes > 0 ? !on_device_ : on_device_ && nbytes_ > 0; }

/// CUDA may wait within such a copy for what the caller's stream was given, and that for anything.
/// So looks wait first.
Status NcclMessage::catch_up() {
  ways_.looking_messages.fetch_add(1, std::memory_order_relaxed);
  phase_ = Phase::catching_up;
  if (lane_ == nullptr) ZERO_TRY(ways_.reducer.open_lane(&lane_));
  ZERO_TRY(lane_->wait_for_leader());
  return lane_->mark();
}

/// A sender whose message is short may have left in good order.
Status NcclMessage::poll_catch_up() {
  bool ended = false;
  ZERO_TRY(lane_->ended(&ended));
  if (!ended) return ways_.under.peers().health();
  ways_.looking_messages.fetch_sub(1, std::memory_order_relaxed);
  return take_notice();
}

/// Both ranks mean the same message.
Status NcclMessage::take_notice() {
  if (notice_.piece_nbytes > 0) {
    last_piece_nbytes_ = notice_.piece_nbytes;
    ways_.looking_messages.fetch_add(1, std::memory_order_relaxed);
    return comm_ == nullptr ? connect() : begin_piece();
  }
  if (is_short()) {
    phase_ = Phase::idle;
    if (sends() || nbytes_ == 0) return {};
    if (!on_device_) {
      std::memcpy(data_, notice_.short_data, static_cast<size_t>(nbytes_));
      return {};
    }
    ways_.reducer.copy(data_, notice_.short_data, nbytes_, nbytes_);
    return ways_.reducer.settle();
  }
  phase_ = Phase::carrying;
  if (!on_device_) return start_under(data_, nbytes_);
  carried_.resize(static_cast<size_t>(nbytes_));
  note_staged();
  return start_under(carried_.data(), nbytes_);
}

Status NcclMessage::take_carried() {
  phase_ = Phase::idle;
  if (!on_device_) return {};
  ways_.reducer.copy(data_, carried_.data(), nbytes_, nbytes_);
  return ways_.reducer.settle();
}

Status NcclMessage::connect() {
  if (lane_ == nullptr) ZERO_TRY(ways_.reducer.open_lane(&lane_));
  ZERO_TRY(reserve_area(piece_nbytes()));
  phase_ = Phase::connecting;
  const std::lock_guard lock(ending_mutex_);
  ZERO_CHECK(!ended_, ZERO_E_TRANSPORT, "the communicators of NCCL have been ended");
  comm_ = std::make_unique<NcclComm>(ways_.nccl, lane_);
  return comm_->begin(notice_.id, sends() ? kSender : kReceiver, 2);
}

int64_t NcclMessage::piece_nbytes() const { return std::min(notice_.piece_nbytes, nbytes_ - moved_nbytes_); }

/// The move comes after what the caller's stream was given before, and after copies from and to the
/// area.
Status NcclMessage::begin_piece() {
  phase_ = Phase::moving;
  const int64_t nbytes = piece_nbytes();
  std::byte *at = data_ + moved_nbytes_;
  NcclAreas areas;
  ZERO_TRY(reserve_area(nbytes));
  if (!on_device_) {
    if (sends()) ways_.reducer.copy(areas_.back()->data(), at, nbytes, nbytes_);
    at = areas_.back()->data();
    (sends() ? areas.leaving : areas.arriving) = areas_.back();
  }
  const zero_nccl_move move = {at, nbytes, sends() ? kReceiver : kSender, sends() ? ZERO_NCCL_SEND : ZERO_NCCL_RECV};
  return comm_->move({&move, 1}, areas);
}

/// Reserves device memory for a piece if this side's memory is on the host. It is reserved as soon
/// as its size is known, before the peer can start to move the piece, because device allocation may
/// wait for work of others. Freeing may wait too, so outgrown areas are kept.
Status NcclMessage::reserve_area(int64_t nbytes) {
  if (on_device_ || nbytes == 0 || (!areas_.empty() && areas_.back()->nbytes() >= nbytes)) return {};
  const auto area_nbytes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max(nbytes, kLeastAreaNbytes))));
  std::shared_ptr<Mapping> area;
  ZERO_TRY(lane_->alloc(area_nbytes, &area));
  areas_.push_back(std::move(area));
  note_staged();
  return {};
}

void NcclMessage::note_staged() {
  auto nbytes = static_cast<int64_t>(carried_.capacity());
  for (const std::shared_ptr<Mapping> &area : areas_) nbytes += area->nbytes();
  staged_nbytes_.store(nbytes, std::memory_order_relaxed);
}

Status NcclMessage::poll_comm() {
  bool ended = false;
  const Status state = comm_->idle(&ended);
  if (state.ok() && ended) return phase_ == Phase::connecting ? begin_piece() : end_piece();
  // The peer's own report of its failure explains more than NCCL's error.
  ZERO_TRY(ways_.under.peers().watch_peer(peer_, fingerprint_));
  return state;
}

Status NcclMessage::end_piece() {
  const int64_t nbytes = piece_nbytes();
  const bool lands_on_host = !sends() && !on_device_;
  if (lands_on_host) ways_.reducer.copy(data_ + moved_nbytes_, areas_.back()->data(), nbytes, nbytes_);
  moved_nbytes_ += nbytes;
  if (moved_nbytes_ < nbytes_) return begin_piece();
  // Failed copies are reported here, before the peer learns that all data has arrived.
  if (!on_device_) ZERO_TRY(ways_.reducer.settle());
  return begin_last();
}

Status NcclMessage::begin_last() {
  ways_.looking_messages.fetch_sub(1, std::memory_order_relaxed);
  phase_ = Phase::ending;
  return start_under(nullptr, 0);
}

Status NcclMessage::poll(bool *out_done) {
  *out_done = false;
  if (phase_ == Phase::connecting || phase_ == Phase::moving) {
    ZERO_TRY(poll_comm());
  } else if (phase_ == Phase::catching_up) {
    ZERO_TRY(poll_catch_up());
  } else {
    bool done = false;
    ZERO_TRY(poll_under(&done));
    if (!done) return {};
    switch (phase_) {
      case Phase::telling:
        ZERO_TRY(meets_host() ? catch_up() : take_notice());
        break;
      case Phase::carrying:
        ZERO_TRY(take_carried());
        break;
      default:
        phase_ = Phase::idle;
    }
  }
  *out_done = phase_ == Phase::idle;
  return {};
}

std::string NcclMessage::progress() const {
  const std::string peer = std::to_string(peer_);
  if (phase_ == Phase::catching_up) return "the stream that it was given has not come to it, although rank " + peer + " has arrived";
  if (phase_ == Phase::connecting) return "NCCL has not connected the ranks, although rank " + peer + " has arrived";
  if (phase_ == Phase::moving) return "NCCL has not moved the message, although rank " + peer + " has arrived";
  return "";
}

void NcclMessage::end(bool in_order) {
  const std::lock_guard lock(ending_mutex_);
  ended_ = true;
  if (comm_ != nullptr) comm_->end(in_order);
}

bool NcclMessage::over() {
  const std::lock_guard lock(ending_mutex_);
  return comm_ == nullptr || comm_->over();
}

bool NcclMessage::given_up() {
  const std::lock_guard lock(ending_mutex_);
  return comm_ != nullptr && comm_->given_up();
}

NcclMessages::NcclMessages(Transport &under, const zero_nccl_table &nccl, const Reducer &reducer, const SideStream &lane)
    : ways_(under, nccl, reducer, lane) {
  for (int64_t peer = 0; peer < under.size(); ++peer) {
    all_.push_back(std::make_unique<NcclMessage>(ways_, NcclMessage::Direction::send, peer));
    all_.push_back(std::make_unique<NcclMessage>(ways_, NcclMessage::Direction::recv, peer));
  }
}

NcclMessage &NcclMessages::at(OperationKind kind, int64_t peer) const {
  return *all_[static_cast<size_t>(2 * peer + (kind == OperationKind::send ? 0 : 1))];
}

void NcclMessages::end(bool in_order) {
  for (const auto &message : all_) message->end(in_order);
}

bool NcclMessages::over() {
  return std::all_of(all_.begin(), all_.end(), [](const auto &message) { return message->over(); });
}

bool NcclMessages::given_up() {
  return std::any_of(all_.begin(), all_.end(), [](const auto &message) { return message->given_up(); });
}

int64_t NcclMessages::staging_nbytes() const {
  int64_t nbytes = 0;
  for (const auto &message : all_) nbytes += message->staging_nbytes();
  return nbytes;
}

}  // namespace zero
