/// @file The life of a communicator, and its end on a separate thread.
#include "group/nccl/nccl_comm.h"

#include "core/log.h"
#include "core/signals_blocked.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

namespace zero {
namespace {

/// How long a failed call waits until NCCL releases memory.
constexpr int64_t kAbortMs = 250;
/// How long a release waits for an orderly end.
constexpr auto kRelease = std::chrono::milliseconds(250);
/// An orderly end becomes an abort after this time.
constexpr int64_t kFinishMs = 2000;
constexpr auto kPause = std::chrono::milliseconds(1);

std::atomic<int64_t> quarantined{0};
std::atomic<int64_t> interrupted{0};  ///< aborts that have not ended

}  // namespace

int64_t nccl_quarantined() { return quarantined.load(std::memory_order_relaxed); }
bool nccl_holds_memory() { return interrupted.load(std::memory_order_acquire) > 0; }

/// The end of one communicator. Made before it is needed, because an end must not fail. Holds the
/// memory that NCCL may still use.
class NcclComm::Ending {
 public:
  Ending(const zero_nccl_table &nccl, std::shared_ptr<SideStream> lane) : nccl_(nccl), lane_(std::move(lane)) {}

  /// The place where NCCL writes the handle. It may do so late: when the creation ends or is
  /// aborted.
  void **handle() { return &handle_; }

  /// `under_way`: an operation is in progress, and the lane was abandoned for it.
  void begin(void *comm, bool in_order, bool under_way, NcclAreas areas) {
    comm_ = comm;
    in_order_ = in_order && !under_way;
    abandoned_ = under_way;
    areas_ = std::move(areas);
    given_up_at_ = Deadline::after_ms(kAbortMs);
    awaited_until_ = std::chrono::steady_clock::now() + kRelease;
    if (!in_order_) interrupted.fetch_add(1);
  }

  /// Runs on a thread of its own.
  void run() {
    bool entered = false;
    const auto end = [&] {
      entered = true;
      end_comm();
    };
    (void)lane_->within(std::cref(end));
    if (!entered) end_comm();  // the communicator must end even if the device fails
    bool was_abandoned = false;
    bool was_quarantined = false;
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      was_abandoned = abandoned_;
      was_quarantined = quarantined_;
      if (!in_order_) interrupted.fetch_sub(1, std::memory_order_release);
    }
    // Releasing memory may wait for other work of the device, so no call waits for this part.
    if (was_abandoned) lane_->reclaim();
    areas_ = {};
    lane_.reset();
    if (was_quarantined) quarantined.fetch_sub(1);
    const std::lock_guard lock(mutex_);
    gave_back_ = true;
    changed_.notify_all();
  }

  bool over() {
    const std::lock_guard lock(mutex_);
    if (!over_ && !quarantined_ && !in_order_ && given_up_at_.passed()) quarantine();
    return over_ || quarantined_;
  }

  bool given_up() {
    const std::lock_guard lock(mutex_);
    return quarantined_ && !over_;
  }

  /// Waits until everything is released, at most for a moment after the beginning of the end.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, awaited_until_, [this] { return gave_back_ || quarantined_; });
  }

  /// Called if no thread could be started.
  void give_up() {
    const std::lock_guard lock(mutex_);
    quarantine();
  }

 private:
  void end_comm() {
    if (!in_order_ || !finish()) {
      (void)nccl_.comm_abort(comm_);
      await_lane();
    } else {
      (void)nccl_.comm_free(comm_);
    }
  }

  /// Returns false if NCCL fails, or if other ranks do not take part in time.
  bool finish() {
    if (nccl_.comm_finish(comm_) != 0) return false;
    for (const Deadline deadline = Deadline::after_ms(kFinishMs); !deadline.passed(); std::this_thread::sleep_for(kPause)) {
      int32_t busy = 0;
      if (nccl_.comm_state(comm_, &busy) != 0) return false;
      if (busy == 0) return true;
    }
    return false;
  }

  /// Waits for the stream, which may still hold aborted work. A device that has failed reports an
  /// error and does no more work.
  void await_lane() {
    bool ended = false;
    if (!lane_->mark().ok()) return;
    while (lane_->ended(&ended).ok() && !ended) std::this_thread::sleep_for(kPause);
  }

  void quarantine() {
    quarantined_ = true;
    if (!abandoned_) lane_->abandon();
    abandoned_ = true;
    log_line("a communicator of NCCL does not end: memory of its device is kept, %lld in quarantine", lld(quarantined.fetch_add(1) + 1));
  }

  const zero_nccl_table &nccl_;
  std::shared_ptr<SideStream> lane_;
  void *handle_ = nullptr;
  void *comm_ = nullptr;
  bool in_order_ = true;
  NcclAreas areas_;
  Deadline given_up_at_ = Deadline::after_ms(0);
  std::chrono::steady_clock::time_point awaited_until_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;       ///< NCCL uses no memory any more
  bool gave_back_ = false;  ///< this object has released its memory
  bool abandoned_ = false;  ///< the lane must be reclaimed
  bool quarantined_ = false;
};

NcclComm::NcclComm(const zero_nccl_table &nccl, std::shared_ptr<SideStream> lane)
    : nccl_(nccl), lane_(lane), ending_(std::make_shared<Ending>(nccl, std::move(lane))) {}

NcclComm::~NcclComm() {
  if (comm_ == nullptr && !ended_) return;
  end(true);
  ending_->wait();
  (void)ending_->over();
}

Status NcclComm::check(int32_t error, const char *what) const {
  if (error == 0) return {};
  char text[512] = "";
  nccl_.error_text(error, text, sizeof text);
  return Status::error(ZERO_E_TRANSPORT, "NCCL failed in %s: %s", what, text);
}

/// The operation in progress may never end, and memory that goes back to the device meanwhile would
/// wait for it.
void NcclComm::occupy() {
  if (state_ == State::idle) lane_->abandon();
  state_ = State::given;
}

void NcclComm::rest() {
  if (std::exchange(state_, State::idle) != State::idle) lane_->reclaim();
}

Status NcclComm::begin(const void *id, int64_t rank, int64_t size) {
  const std::lock_guard lock(mutex_);
  int32_t error = 0;
  occupy();
  const Status begun = lane_->within([&] { error = nccl_.comm_begin(id, rank, size, ending_->handle()); });
  comm_ = *ending_->handle();
  if (comm_ == nullptr) rest();  // nothing was begun
  ZERO_TRY(begun);
  return check(error, "the making of a communicator");
}

Status NcclComm::move(std::span<const zero_nccl_move> moves, const NcclAreas &areas) {
  const std::lock_guard lock(mutex_);
  ZERO_CHECK(comm_ != nullptr, ZERO_E_TRANSPORT, "the communicator of NCCL has been ended");
  ZERO_TRY(lane_->wait_for_leader());
  areas_ = areas;
  occupy();
  int32_t error = 0;
  const auto give = [&] { error = nccl_.move(comm_, moves.data(), static_cast<int64_t>(moves.size()), lane_->stream()); };
  ZERO_TRY(lane_->within(std::cref(give)));  // std::cref avoids an allocation
  return check(error, "a round of sends and receives");
}

/// An operation that NCCL has not taken in is not in the stream yet.
Status NcclComm::idle(bool *out) {
  const std::lock_guard lock(mutex_);
  *out = false;
  ZERO_CHECK(comm_ != nullptr, ZERO_E_TRANSPORT, "the communicator of NCCL has been ended");
  int32_t busy = 0;
  ZERO_TRY(check(nccl_.comm_state(comm_, &busy), "what it was doing"));
  if (busy != 0) return {};
  if (state_ == State::given) {
    ZERO_TRY(lane_->mark());
    state_ = State::taken;
  }
  ZERO_TRY(lane_->ended(out));
  if (*out) rest();
  return {};
}

void NcclComm::end(bool in_order) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  ended_ = true;
  if (!in_order) (void)lane_->wait_for_leader();  // a device that has failed does no more work
  ending_->begin(std::exchange(comm_, nullptr), in_order, state_ != State::idle, std::move(areas_));
  try {
    const SignalsBlocked blocked;
    std::thread([ending = ending_] { ending->run(); }).detach();
  } catch (const std::exception &) {
    ending_->give_up();
  }
}

bool NcclComm::over() {
  const std::lock_guard lock(mutex_);
  return !ended_ || ending_->over();
}

bool NcclComm::given_up() {
  const std::lock_guard lock(mutex_);
  return ended_ && ending_->given_up();
}

}  // namespace zero
