/// @file FileCalls by system calls, and their replacement by tests.
#include "core/file_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

namespace zero {
namespace {

class SystemFileCalls final : public FileCalls {
 public:
  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override {
    return open_fd([&] { return ::openat(folder, name, flags, mode); });
  }
  int make_folder(int folder, const char *name, mode_t mode) override { return ::mkdirat(folder, name, mode); }
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override { return ::pread(file, out, nbytes, offset); }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override { return ::pwrite(file, data, nbytes, offset); }
  int set_direct(int file, bool direct) override {
    const int flags = ::fcntl(file, F_GETFL);
    if (flags < 0) return -1;
    return ::fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
  }
  int allocate(int file, int64_t nbytes) override { return ::fallocate(file, 0, 0, nbytes); }
  int truncate(int file, int64_t nbytes) override { return ::ftruncate(file, nbytes); }
  int sync(int file) override { return ::fsync(file); }
  int close(OwnedFd file) override { return ::close(file.release()); }
  int rename(int folder, const char *from, int to_folder, const char *to) override { return ::renameat(folder, from, to_folder, to); }
  int unlink(int folder, const char *name, int flags) override { return ::unlinkat(folder, name, flags); }
  int stat(int file, struct stat *out) override { return ::fstat(file, out); }
  int stat_at(int folder, const char *name, struct stat *out) override { return ::fstatat(folder, name, out, AT_SYMLINK_NOFOLLOW); }
  int list(int folder, std::vector<FolderEntry> *out) override;
  int64_t free_nbytes(int file) override {
    struct statvfs found{};
    if (::fstatvfs(file, &found) != 0) return -1;
    return static_cast<int64_t>(found.f_bavail) * static_cast<int64_t>(found.f_frsize);
  }
};

/// Keeps errno.
struct StreamClosed {
  void operator()(DIR *stream) const noexcept {
    const int reason = errno;
    ::closedir(stream);
    errno = reason;
  }
};

int SystemFileCalls::list(int folder, std::vector<FolderEntry> *out) {
  // Opens a descriptor of its own: a stream owns its descriptor, and would share the file position.
  OwnedFd fd = open_fd([&] { return ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (!fd.valid()) return -1;
  const std::unique_ptr<DIR, StreamClosed> stream(::fdopendir(fd.get()));
  if (stream == nullptr) return -1;
  static_cast<void>(fd.release());
  out->clear();
  errno = 0;
  for (const dirent *entry = ::readdir(stream.get()); entry != nullptr; entry = ::readdir(stream.get())) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) out->push_back({entry->d_name, entry->d_type});
    errno = 0;
  }
  return errno == 0 ? 0 : -1;
}

std::atomic<FileCalls *> replaced{nullptr};

}  // namespace

FileCalls &system_file_calls() noexcept {
  static SystemFileCalls calls;
  return calls;
}

FileCalls &file_calls() noexcept {
  FileCalls *const calls = replaced.load(std::memory_order_acquire);
  return calls != nullptr ? *calls : system_file_calls();
}

FileCallsReplaced::FileCallsReplaced(FileCalls &calls) noexcept { replaced.store(&calls, std::memory_order_release); }
FileCallsReplaced::~FileCallsReplaced() { replaced.store(nullptr, std::memory_order_release); }

}  // namespace zero
