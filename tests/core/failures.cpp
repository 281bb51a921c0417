/// @file The replaced operator new, the wrapped system calls and the impossible stack size.
#include "tests/core/failures.h"

#include <pthread.h>
#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

thread_local int64_t allocations_left = -1;
thread_local std::atomic<bool> *hangs_here = nullptr;
std::array<std::atomic<int>, 5> failures_left{};
std::array<std::atomic<int>, 5> reasons{};

std::atomic<int> &left_of(zero::test::SystemCall call) { return failures_left[static_cast<size_t>(call)]; }

bool fails(zero::test::SystemCall call) {
  std::atomic<int> &left = left_of(call);
  int now = left.load();
  while (now > 0 && !left.compare_exchange_weak(now, now - 1)) {
  }
  if (now > 0) errno = reasons[static_cast<size_t>(call)];
  return now > 0;
}

}  // namespace

void *operator new(std::size_t nbytes) {
  if (hangs_here != nullptr) {
    *hangs_here = true;
    for (;;) ::pause();
  }
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  if (void *data = std::malloc(nbytes != 0 ? nbytes : 1)) return data;
  throw std::bad_alloc();
}
void *operator new(std::size_t nbytes, const std::nothrow_t &) noexcept {
  try {
    return operator new(nbytes);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void operator delete(void *data) noexcept { std::free(data); }
void operator delete(void *data, std::size_t) noexcept { std::free(data); }

extern "C" {
int __real_ftruncate(int fd, off_t nbytes);
int __wrap_ftruncate(int fd, off_t nbytes) { return fails(zero::test::SystemCall::ftruncate) ? -1 : __real_ftruncate(fd, nbytes); }
ssize_t __real_getrandom(void *data, size_t nbytes, unsigned flags);
ssize_t __wrap_getrandom(void *data, size_t nbytes, unsigned flags) {
  return fails(zero::test::SystemCall::getrandom) ? -1 : __real_getrandom(data, nbytes, flags);
}
int __real_madvise(void *data, size_t nbytes, int advice);
int __wrap_madvise(void *data, size_t nbytes, int advice) {
  return fails(zero::test::SystemCall::madvise) ? -1 : __real_madvise(data, nbytes, advice);
}
int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags) {
  return fails(zero::test::SystemCall::memfd_create) ? -1 : __real_memfd_create(name, flags);
}
int __real_sched_getaffinity(pid_t pid, size_t nbytes, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t pid, size_t nbytes, cpu_set_t *set) {
  return fails(zero::test::SystemCall::sched_getaffinity) ? -1 : __real_sched_getaffinity(pid, nbytes, set);
}
}

namespace zero::test {

FailingNew::FailingNew(int64_t allowed) { allocations_left = allowed; }
FailingNew::~FailingNew() { allocations_left = -1; }

HangingNew::HangingNew(std::atomic<bool> *hangs) { hangs_here = hangs; }
HangingNew::~HangingNew() { hangs_here = nullptr; }

FailingCall::FailingCall(SystemCall call, int times, int reason) : call_(call) {
  reasons[static_cast<size_t>(call)] = reason;
  left_of(call) = times;
}
FailingCall::~FailingCall() { left_of(call_) = 0; }

FailingThreadStart::FailingThreadStart() {
  pthread_attr_t attributes;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &stack_nbytes_);
  pthread_attr_setstacksize(&attributes, size_t{1} << 50);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

FailingThreadStart::~FailingThreadStart() {
  pthread_attr_t attributes;
  pthread_getattr_default_np(&attributes);
  pthread_attr_setstacksize(&attributes, stack_nbytes_);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}

}  // namespace zero::test
