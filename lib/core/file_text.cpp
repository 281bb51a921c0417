/// @file Reads files through descriptors of open_fd. Streams would choose descriptors themselves.
#include "core/file_text.h"

#include "core/owned_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace zero {
namespace {

OwnedFd open_to_read(const char *path) {
  return open_fd([path] { return ::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY); });
}

/// Returns 0 at the end of the file. Retries only if a signal interrupts it.
int64_t read_some(const OwnedFd &file, std::span<char> out) {
  for (;;) {
    const ssize_t nbytes = ::read(file.get(), out.data(), out.size());
    if (nbytes >= 0 || errno != EINTR) return nbytes;
  }
}

}  // namespace

int64_t read_file(const char *path, std::span<char> out) noexcept {
  const OwnedFd file = open_to_read(path);
  if (!file.valid()) return -1;
  size_t filled = 0;
  while (filled < out.size()) {
    const int64_t nbytes = read_some(file, out.subspan(filled));
    if (nbytes < 0) return -1;
    if (nbytes == 0) break;
    filled += static_cast<size_t>(nbytes);
  }
  return static_cast<int64_t>(filled);
}

std::string file_text(const std::string &path) {
  std::string text;
  const OwnedFd file = open_to_read(path.c_str());
  if (!file.valid()) return text;
  char part[4096];
  for (;;) {
    const int64_t nbytes = read_some(file, part);
    if (nbytes <= 0) return text;
    text.append(part, static_cast<size_t>(nbytes));
  }
}

}  // namespace zero
