/// @file Makes calls that hardly ever fail fail on demand: operator new, system calls, the start of
/// threads. Knows nothing of what is tested.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace zero::test {

/// While it lives, operator new on this thread succeeds `allowed` times and then throws
/// std::bad_alloc.
class FailingNew {
 public:
  explicit FailingNew(int64_t allowed);
  ~FailingNew();
};

/// While it lives, operator new on this thread sets `*hangs` and does not return before the process
/// ends.
class HangingNew {
 public:
  explicit HangingNew(std::atomic<bool> *hangs);
  ~HangingNew();
};

/// System calls that the linker routes through here.
enum class SystemCall { ftruncate, getrandom, madvise, memfd_create, sched_getaffinity };

/// While it lives, the next `times` calls in this process fail with errno `reason`.
class FailingCall {
 public:
  FailingCall(SystemCall call, int times, int reason = ENOSYS);
  ~FailingCall();

 private:
  SystemCall call_;
};

/// While it lives, no thread can be started: each would need a stack larger than the address space.
class FailingThreadStart {
 public:
  FailingThreadStart();
  ~FailingThreadStart();

 private:
  size_t stack_nbytes_ = 0;
};

}  // namespace zero::test
