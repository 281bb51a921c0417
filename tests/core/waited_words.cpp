/// @file The wrapped system call.
#include "tests/core/waited_words.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <mutex>

namespace {

std::atomic<bool> noting = false;
std::mutex mutex;
zero::test::WaitedWords::Addresses most_words;

#if defined(SYS_futex_waitv)
void note(const futex_waitv *words, size_t count) {
  const std::lock_guard lock(mutex);
  if (count < most_words.size()) return;
  most_words.clear();
  for (size_t i = 0; i < count; ++i) most_words.push_back(reinterpret_cast<const void *>(words[i].uaddr));
}
#endif

}  // namespace

extern "C" {
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  long values[6];
  va_list list;
  va_start(list, number);
  for (long &value : values) value = va_arg(list, long);
  va_end(list);
#if defined(SYS_futex_waitv)
  if (number == SYS_futex_waitv && noting) note(reinterpret_cast<const futex_waitv *>(values[0]), static_cast<size_t>(values[1]));
#endif
  return __real_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
}

namespace zero::test {

WaitedWords::WaitedWords() { noting = true; }

WaitedWords::~WaitedWords() {
  noting = false;
  const std::lock_guard lock(mutex);
  most_words.clear();
}

WaitedWords::Addresses WaitedWords::most() const {
  const std::lock_guard lock(mutex);
  return most_words;
}

}  // namespace zero::test
