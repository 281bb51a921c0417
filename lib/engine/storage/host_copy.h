/// @file HostCopy: access of the host to part of an arena. Memory of the host is used in place;
/// memory of a device is copied, and written back on request. For work before steps, not in them.
/// Knows bytes only.
#pragma once

#include "memory/arena.h"

#include <zero/stats.h>

namespace zero {

class HostCopy {
 public:
  /// `source` is that of the arena.
  Status open(const MemorySource &source, void *at, int64_t nbytes) {
    at_ = static_cast<std::byte *>(at);
    nbytes_ = nbytes;
    device_ = source.device;
    if (device_ == nullptr) return {};
    // Fails here while this thread captures a stream: a captured copy would run after copy_ is
    // gone.
    ZERO_TRY(device_->wait());
    MemorySource host = source;
    host.device = nullptr;
    ZERO_TRY(Arena::create_private(host, ZERO_MEMORY_WORKSPACE, nbytes, &copy_));
    ZERO_TRY(device_->copy(copy_.data(), at_, nbytes_));
    return device_->wait();
  }

  std::byte *data() const { return device_ == nullptr ? at_ : copy_.data(); }

  Status write_back() const {
    if (device_ == nullptr) return {};
    ZERO_TRY(device_->copy(at_, copy_.data(), nbytes_));
    return device_->wait();
  }

 private:
  const Device *device_ = nullptr;
  std::byte *at_ = nullptr;
  int64_t nbytes_ = 0;
  Arena copy_;
};

}  // namespace zero
