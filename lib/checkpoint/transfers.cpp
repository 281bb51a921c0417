/// @file The thread that transfers buffers.
#include "checkpoint/transfers.h"

#include "checkpoint/manifest.h"
#include "core/partition.h"
#include "core/signals_blocked.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>
#include <utility>

namespace zero::checkpoint {
namespace {

constexpr size_t kFewNbytes = 256 << 10;  // a transfer takes less time than to wake a thread

int64_t buffer_need(const StreamOptions &options) {
  return std::max(options.staging_nbytes / Transfers::kBuffers / kBlockNbytes, int64_t{1}) * kBlockNbytes;
}

}  // namespace

int64_t staging_need(const StreamOptions &options) { return buffer_need(options) * Transfers::kBuffers; }

void Transfers::Free::operator()(std::byte *memory) const noexcept { std::free(memory); }

Status Transfers::make(const StreamOptions &options, std::unique_ptr<Transfers> *out) {
  const auto nbytes = static_cast<size_t>(staging_need(options));
  std::unique_ptr<std::byte, Free> memory(static_cast<std::byte *>(std::aligned_alloc(static_cast<size_t>(kAlignment), nbytes)));
  ZERO_CHECK(memory != nullptr, ZERO_E_OUT_OF_MEMORY,
             "no memory for the %zu bytes through which files are written and read; lower ZERO_KEY_CHECKPOINT_STAGING_BYTES", nbytes);
  out->reset(new Transfers(std::move(memory), nbytes / kBuffers));
  return {};
}

/// Returns false if no thread can be started; the caller's thread then transfers.
bool Transfers::has_thread() {
  if (thread_.joinable()) return true;
  if (std::exchange(tried_, true)) return false;
  const SignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (const std::system_error &) {
  } catch (const std::bad_alloc &) {
  }
  return thread_.joinable();
}

Transfers::~Transfers() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

/// False while the thread transfers: only one of the two may detect that a file cannot be direct.
bool Transfers::is_for_caller(const Job &job) {
  {
    const std::lock_guard lock(mutex_);
    if (queued_ > 0) return false;
  }
  return job.nbytes <= kFewNbytes || !has_thread();
}

void Transfers::begin(int number, const Job &job) {
  const auto at = static_cast<size_t>(number);
  if (is_for_caller(job)) {
    results_[at] = run(number, job);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    jobs_[at] = job;
    queue_[static_cast<size_t>(queued_++)] = number;
  }
  changed_.notify_all();
}

Status Transfers::end(int number) {
  const auto at = static_cast<size_t>(number);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_[at].file == nullptr; });
  return std::exchange(results_[at], Status());
}

Status Transfers::end_all() {
  Status first;
  for (int number = 0; number < kBuffers; ++number) {
    Status ended = end(number);
    if (first.ok()) first = std::move(ended);
  }
  return first;
}

void Transfers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || queued_ > 0; });
    if (ends_) return;
    const int number = queue_[0];
    const auto at = static_cast<size_t>(number);
    const Job job = jobs_[at];
    lock.unlock();
    Status result = run(number, job);
    lock.lock();
    queue_[0] = queue_[1];
    --queued_;
    results_[at] = std::move(result);
    jobs_[at].file = nullptr;
    changed_.notify_all();
  }
}

Status Transfers::run(int number, const Job &job) const {
  const std::span<std::byte> memory = buffer(number);
  StreamedFile &to = *job.file;
  for (;;) {
    const auto unit = static_cast<int64_t>(to.direct ? kAlignment : 1);
    const std::span<std::byte> bytes = memory.first(static_cast<size_t>(round_up(static_cast<int64_t>(job.nbytes), unit)));
    int reason = 0;
    Status result = job.writes ? to.file.write_at(bytes, job.offset, &reason) : to.file.read_at(bytes, job.nbytes, job.offset, &reason);
    if (reason != EINVAL || !to.direct) return result;
    to.direct = false;
    if (!to.file.set_direct(false)) return result;
  }
}

}  // namespace zero::checkpoint
