/// @file Opens again and again until the entry is seen.
#include "checkpoint/await_entry.h"

#include "core/clock.h"

#include <cerrno>
#include <chrono>
#include <thread>

namespace zero::checkpoint {
namespace {

constexpr std::chrono::milliseconds kPause{20};

template <class Open>
Status again(int64_t patience_ms, Open open) {
  const Deadline deadline = Deadline::after_ms(patience_ms);
  for (;;) {
    int reason = 0;
    Status status = open(&reason);
    if (status.ok() || (reason != ENOENT && reason != ESTALE) || deadline.passed()) return status;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Status open_with_patience(const Folder &folder, const std::string &name, int64_t patience_ms, Folder *out) {
  return again(patience_ms, [&](int *reason) { return folder.open_folder(name, out, reason); });
}

Status open_with_patience(const Folder &folder, const std::string &name, int64_t patience_ms, File *out) {
  return again(patience_ms, [&](int *reason) { return folder.open_file(name, out, reason); });
}

}  // namespace zero::checkpoint
