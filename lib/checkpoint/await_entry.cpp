/// @file Opens an entry again and again until it is visible.
#include "checkpoint/await_entry.h"

#include "core/clock.h"

#include <cerrno>
#include <chrono>
#include <thread>

namespace zero::checkpoint {
namespace {

constexpr std::chrono::milliseconds kPause{20};

template <class Open>
Status again(int64_t retry_ms, Open open) {
  const Deadline deadline = Deadline::after_ms(retry_ms);
  for (;;) {
    int reason = 0;
    Status status = open(&reason);
    if (status.ok() || (reason != ENOENT && reason != ESTALE) || deadline.passed()) return status;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Status open_with_retries(const Folder &folder, const std::string &name, int64_t retry_ms, Folder *out) {
  return again(retry_ms, [&](int *reason) { return folder.open_folder(name, out, reason); });
}

Status open_with_retries(const Folder &folder, const std::string &name, int64_t retry_ms, File *out) {
  return again(retry_ms, [&](int *reason) { return folder.open_file(name, out, reason); });
}

}  // namespace zero::checkpoint
