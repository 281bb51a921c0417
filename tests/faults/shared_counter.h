/// @file A number that forked processes share.
#pragma once

#include "core/clock.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace zero::test {

class SharedCounter {
 public:
  SharedCounter()
      : value_(static_cast<std::atomic<int64_t> *>(
            ::mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedCounter(const SharedCounter &) = delete;
  ~SharedCounter() { ::munmap(value_, sizeof(std::atomic<int64_t>)); }

  void add() { value_->fetch_add(1); }
  int64_t value() const { return value_->load(); }
  /// At most `limit_ms`.
  void await(int64_t value, int64_t limit_ms) const {
    const Deadline deadline = Deadline::after_ms(limit_ms);
    while (value_->load() < value && !deadline.passed()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<int64_t> *value_;
};

}  // namespace zero::test
