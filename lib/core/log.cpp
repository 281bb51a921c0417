/// @file Log file: opened once, one write per line, so that lines of several processes do not mix.
#include "core/log.h"

#include "core/owned_fd.h"
#include "core/status.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace zero {
namespace {

int log_file() noexcept {
  static const int file = [] {
    const char *path = std::getenv("ZERO_LOG");
    if (path == nullptr || *path == '\0') return -1;
    OwnedFd opened = open_fd([path] { return ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644); });
    // A pipe could block a failing rank, and raise a signal in the program if it has no reader.
    struct stat status;
    const bool usable = opened.valid() && ::fstat(opened.get(), &status) == 0 && !S_ISFIFO(status.st_mode);
    return usable ? opened.release() : -1;
  }();
  return file;
}

}  // namespace

bool log_is_on() noexcept { return log_file() >= 0; }

void log_line(const char *format, ...) noexcept {
  const int file = log_file();
  if (file < 0) return;
  timespec time;
  ::clock_gettime(CLOCK_REALTIME, &time);
  char line[1200];
  int used = std::snprintf(line, sizeof line, "%lld.%06ld %d/%ld ", lld(time.tv_sec), time.tv_nsec / 1000, static_cast<int>(::getpid()),
                           ::syscall(SYS_gettid));
  va_list arguments;
  va_start(arguments, format);
  used += std::vsnprintf(line + used, sizeof line - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  const int length = std::min(used, static_cast<int>(sizeof line) - 2);
  line[length] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(file, line, static_cast<size_t>(length) + 1);
}

}  // namespace zero
