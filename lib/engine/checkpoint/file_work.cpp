/// @file The thread that runs a rank's file operations.
#include "engine/checkpoint/file_work.h"

#include "core/clock.h"
#include "core/signals_blocked.h"

#include <system_error>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;

Status cancelled() { return Status::error(ZERO_E_PEER_FAILED, "another rank has failed"); }

}  // namespace

void FileWork::end() {
  if (!thread_.joinable()) return;
  cancel();
  thread_.join();
}

void FileWork::start(std::function<Status()> work) {
  advanced_ns_.store(now_ns());
  if (work != nullptr) {
    // The new thread inherits this thread's signal mask.
    const SignalsBlocked blocked;
    try {
      thread_ = std::thread([this, work = std::move(work)] { run(work); });
      return;
    } catch (const std::system_error &error) {
      status_ = Status::error(ZERO_E_SYSTEM, "cannot start a thread for files: %s", error.what());
    } catch (...) {
      status_ = exception_status();
    }
  }
  ended_.store(true, std::memory_order_release);
}

void FileWork::run(const std::function<Status()> &work) {
  try {
    status_ = work();
  } catch (...) {
    status_ = exception_status();
  }
  std::shared_ptr<void> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(keep_);
    ended_.store(true, std::memory_order_release);
  }
  bell_->ring();
}

Status FileWork::advance(int64_t nbytes) {
  nbytes_.fetch_add(nbytes, std::memory_order_relaxed);
  advanced_ns_.store(now_ns(), std::memory_order_relaxed);
  return cancelled_.load(std::memory_order_relaxed) ? cancelled() : Status();
}

Status FileWork::wish(const Wish &wish) {
  std::unique_lock lock(mutex_);
  wish_ = wish;
  bell_->ring();
  granted_.wait(lock, [this] { return !wish_.has_value() || cancelled_.load(); });
  if (wish_.has_value()) return cancelled();
  lock.unlock();
  return advance(0);
}

Status FileWork::status() const { return cancelled_.load() && status_.code() == ZERO_E_PEER_FAILED ? Status() : status_; }

std::optional<Wish> FileWork::open_wish() {
  const std::lock_guard lock(mutex_);
  return wish_;
}

void FileWork::grant() {
  const std::lock_guard lock(mutex_);
  wish_.reset();
  granted_.notify_all();
}

void FileWork::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_.store(true);
  granted_.notify_all();
}

void FileWork::give_up(std::shared_ptr<void> keep) {
  cancel();
  const std::lock_guard lock(mutex_);
  if (ended()) return;
  keep_ = std::move(keep);
  thread_.detach();
}

int64_t FileWork::silent_ms() const { return (now_ns() - advanced_ns_.load(std::memory_order_relaxed)) / kNsPerMs; }

WorkLook::WorkLook(FileWork &work, int64_t wait_ms, std::optional<int64_t> rings)
    : work_(work), end_ns_(now_ns() + wait_ms * kNsPerMs), rings_(rings) {}

Status WorkLook::poll(bool *out_ready) {
  const bool has_news = rings_.has_value() && (work_.open_wish().has_value() || work_.bell().rings() != *rings_);
  *out_ready = work_.ended() || has_news || now_ns() >= end_ns_;
  return {};
}

}  // namespace zero
