/// @file A communicator's life, and its end on a thread of its own.
#include "group/nccl_comm.h"

#include "core/log.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <system_error>
#include <thread>

namespace zero {
namespace {

constexpr int64_t kAbortMs = 250;    ///< how long a failed call waits for NCCL to let go of memory
constexpr int64_t kReleaseMs = 250;  ///< how long a release waits for an end in order
constexpr int64_t kFinishMs = 2000;  ///< after which an end in order is forced
constexpr auto kPause = std::chrono::milliseconds(1);

std::atomic<int64_t> quarantined{0};
std::atomic<int64_t> interrupted{0};  ///< ends in disorder that have not come

}  // namespace

int64_t nccl_quarantined() { return quarantined.load(std::memory_order_relaxed); }
bool nccl_holds_memory() { return interrupted.load(std::memory_order_acquire) > 0; }

/// The end of one communicator. Holds what NCCL may still use.
class NcclComm::Ending {
 public:
  Ending(const zero_nccl_table &nccl, void *comm, bool in_order, std::shared_ptr<DeviceLane> lane, std::shared_ptr<Mapping> staging)
      : nccl_(nccl),
        comm_(comm),
        in_order_(in_order),
        lane_(std::move(lane)),
        staging_(std::move(staging)),
        given_up_at_(Deadline::after_ms(kAbortMs)) {}

  /// On its own thread.
  void run() {
    if (!in_order_ || !finish()) {
      (void)nccl_.comm_abort(comm_);
    } else {
      (void)nccl_.comm_free(comm_);
    }
    const std::lock_guard lock(mutex_);
    if (quarantined_) lane_->reclaim();
    staging_.reset();
    lane_.reset();
    if (quarantined_) quarantined.fetch_sub(1);
    if (!in_order_) interrupted.fetch_sub(1, std::memory_order_release);
    over_ = true;
    changed_.notify_all();
  }

  bool over() {
    const std::lock_guard lock(mutex_);
    if (!over_ && !quarantined_ && !in_order_ && given_up_at_.passed()) quarantine();
    return over_ || quarantined_;
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(kReleaseMs), [this] { return over_ || quarantined_; });
  }

  /// Where no thread could be had.
  void give_up() {
    const std::lock_guard lock(mutex_);
    quarantine();
  }

 private:
  /// False when other ranks do not come to it.
  bool finish() {
    if (nccl_.comm_finish(comm_) != 0) return false;
    for (const Deadline deadline = Deadline::after_ms(kFinishMs); !deadline.passed(); std::this_thread::sleep_for(kPause)) {
      int32_t busy = 0;
      if (nccl_.comm_state(comm_, &busy) != 0) return false;
      if (busy == 0) return true;
    }
    return false;
  }

  void quarantine() {
    quarantined_ = true;
    lane_->abandon();
    log_line("a communicator of NCCL does not end: memory of its device is kept, %lld in quarantine",
             static_cast<long long>(quarantined.fetch_add(1) + 1));
  }

  const zero_nccl_table &nccl_;
  void *const comm_;
  const bool in_order_;  ///< nothing is under way
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<DeviceLane> lane_;
  std::shared_ptr<Mapping> staging_;
  const Deadline given_up_at_;
  bool over_ = false;
  bool quarantined_ = false;
};

NcclComm::~NcclComm() {
  end(true);
  if (ending_ == nullptr) return;
  ending_->wait();
  (void)ending_->over();
}

Status NcclComm::check(int32_t error, const char *what) const {
  if (error == 0) return {};
  char text[256] = "";
  nccl_.error_text(error, text, sizeof text);
  return Status::error(ZERO_E_TRANSPORT, "NCCL failed in %s: %s", what, text);
}

Status NcclComm::begin(const void *id, int64_t rank, int64_t size) {
  const std::lock_guard lock(mutex_);
  int32_t error = 0;
  state_ = State::given;
  ZERO_TRY(lane_->within([&] { error = nccl_.comm_begin(id, rank, size, &comm_); }));
  return check(error, "the making of a communicator");
}

Status NcclComm::move(std::span<const zero_nccl_move> moves, std::shared_ptr<Mapping> staging) {
  const std::lock_guard lock(mutex_);
  ZERO_CHECK(comm_ != nullptr, ZERO_E_TRANSPORT, "the communicator of NCCL has been ended");
  ZERO_TRY(lane_->follow());
  staging_ = std::move(staging);
  state_ = State::given;
  return check(nccl_.move(comm_, moves.data(), static_cast<int64_t>(moves.size()), lane_->stream()), "a round of sends and receives");
}

/// What NCCL has not taken in is not yet in the stream.
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
  if (*out) state_ = State::idle;
  return {};
}

void NcclComm::end(bool in_order) {
  const std::lock_guard lock(mutex_);
  if (comm_ == nullptr) return;
  // In order only where nothing is under way.
  in_order = in_order && state_ == State::idle;
  if (!in_order) interrupted.fetch_add(1);
  ending_ = std::make_shared<Ending>(nccl_, std::exchange(comm_, nullptr), in_order, lane_, std::move(staging_));
  try {
    std::thread([ending = ending_] { ending->run(); }).detach();
  } catch (const std::system_error &) {
    ending_->give_up();
  }
}

bool NcclComm::over() {
  const std::lock_guard lock(mutex_);
  return ending_ == nullptr || ending_->over();
}

}  // namespace zero
