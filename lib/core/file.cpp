/// @file Files and folders through FileCalls: retries and the texts of errors.
#include "core/file.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace zero {
namespace {

constexpr mode_t kFileMode = 0666;  // minus the umask
constexpr mode_t kFolderMode = 0777;

/// Repeats the call while a signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

OwnedFd open_uninterrupted(int folder, const char *name, int flags, mode_t mode) {
  for (;;) {
    OwnedFd fd = file_calls().open_at(folder, name, flags, mode);
    if (fd.valid() || errno != EINTR) return fd;
  }
}

/// Blocks SIGXFSZ of the calling thread during its lifetime and discards one raised meanwhile. A
/// signal that the program had pending stays pending.
class FileSizeSignalBlocked {
 public:
  FileSizeSignalBlocked() noexcept {
    sigset_t pending;
    sigemptyset(&pending);
    ::sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&one_);
    sigaddset(&one_, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &one_, &before_);
  }
  FileSizeSignalBlocked(const FileSizeSignalBlocked &) = delete;
  ~FileSizeSignalBlocked() {
    const int reason = errno;
    const timespec at_once{};
    while (!was_pending_ && ::sigtimedwait(&one_, nullptr, &at_once) == SIGXFSZ) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = reason;
  }

 private:
  sigset_t one_;
  sigset_t before_;
  bool was_pending_;
};

/// The remedy for a full disk or quota.
const char *remedy(int reason) {
  if (reason == ENOSPC) return "; make room there, then save again";
  return reason == EDQUOT ? "; remove files of this user or raise the quota, then save again" : "";
}

Status transfer_error(int32_t code, const char *what, size_t nbytes, int64_t offset, const File &file, int reason) {
  if (reason != ENOSPC && reason != EDQUOT) {
    return Status::error(code, "cannot %s %zu bytes at %lld of %s: %s", what, nbytes, lld(offset), file.path().c_str(),
                         std::strerror(reason));
  }
  return Status::error(code, "cannot %s %zu bytes at %lld of %s: %s; %lld bytes are free there%s", what, nbytes, lld(offset),
                       file.path().c_str(), std::strerror(reason), lld(file_calls().free_nbytes(file.fd())), remedy(reason));
}

}  // namespace

Status file_error(const char *what, const std::string &path, int reason) {
  return Status::error(ZERO_E_SYSTEM, "cannot %s %s: %s%s", what, path.c_str(), std::strerror(reason), remedy(reason));
}

Status File::read_at(std::span<std::byte> out, size_t least, int64_t offset, int *out_errno) const {
  if (out_errno != nullptr) *out_errno = 0;
  for (size_t done = 0; done < least;) {
    const int64_t at = offset + static_cast<int64_t>(done);
    const ssize_t got = uninterrupted([&] { return file_calls().read_at(fd_.get(), out.data() + done, out.size() - done, at); });
    const int reason = errno;
    if (got < 0 && out_errno != nullptr) *out_errno = reason;
    if (got < 0) {
      return transfer_error(reason == EIO || reason == ESTALE ? ZERO_E_CHECKPOINT : ZERO_E_SYSTEM, "read", least - done, at, *this, reason);
    }
    ZERO_CHECK(got > 0, ZERO_E_CHECKPOINT, "%s ends at byte %lld, where %zu bytes more were expected: the file was cut off", path_.c_str(),
               lld(at), least - done);
    done += static_cast<size_t>(got);
  }
  return {};
}

Status File::write_at(std::span<const std::byte> data, int64_t offset, int *out_errno) const {
  if (out_errno != nullptr) *out_errno = 0;
  const FileSizeSignalBlocked blocked;
  for (size_t done = 0; done < data.size();) {
    const int64_t at = offset + static_cast<int64_t>(done);
    const ssize_t put = uninterrupted([&] { return file_calls().write_at(fd_.get(), data.data() + done, data.size() - done, at); });
    // If nothing is written without a reason, report a full disk; otherwise the loop would not end.
    const int reason = put < 0 ? errno : ENOSPC;
    if (put <= 0 && out_errno != nullptr) *out_errno = reason;
    if (put <= 0) return transfer_error(ZERO_E_SYSTEM, "write", data.size() - done, at, *this, reason);
    done += static_cast<size_t>(put);
  }
  return {};
}

bool File::set_direct(bool direct) const {
  return uninterrupted([&] { return file_calls().set_direct(fd_.get(), direct); }) == 0;
}

Status File::allocate(int64_t nbytes) const {
  const FileSizeSignalBlocked blocked;
  if (nbytes == 0 || uninterrupted([&] { return file_calls().allocate(fd_.get(), nbytes); }) == 0) return {};
  const int reason = errno;
  if (reason == EOPNOTSUPP || reason == ENOSYS) return {};
  return transfer_error(ZERO_E_SYSTEM, "reserve", static_cast<size_t>(nbytes), 0, *this, reason);
}

Status File::truncate(int64_t nbytes) const {
  const FileSizeSignalBlocked blocked;
  if (uninterrupted([&] { return file_calls().truncate(fd_.get(), nbytes); }) == 0) return {};
  return file_error("set the size of", path_, errno);
}

Status File::sync() const {
  if (file_calls().sync(fd_.get()) == 0) return {};
  return file_error("sync", path_, errno);
}

Status File::close() {
  // After EINTR the descriptor is closed all the same.
  if (file_calls().close(std::move(fd_)) == 0 || errno == EINTR) return {};
  return file_error("close", path_, errno);
}

Status File::size(int64_t *out) const {
  struct stat found{};
  if (uninterrupted([&] { return file_calls().stat(fd_.get(), &found); }) != 0) return file_error("look at", path_, errno);
  *out = found.st_size;
  return {};
}

Status Folder::open(const std::string &path, Folder *out) {
  OwnedFd fd = open_uninterrupted(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (!fd.valid()) {
    const int reason = errno;
    const char *const full = remedy(reason);
    return Status::error(reason == ENOENT ? ZERO_E_NOT_FOUND : ZERO_E_SYSTEM, "cannot open folder %s: %s%s", path.c_str(),
                         std::strerror(reason), *full != '\0' ? full : "; give the path of an existing folder");
  }
  *out = Folder(std::move(fd), path);
  return {};
}

/// All calls below read errno before path_of(), which may change it.
Status Folder::make(const std::string &name) const {
  if (uninterrupted([&] { return file_calls().make_folder(fd(), name.c_str(), kFolderMode); }) == 0) return {};
  const int reason = errno;
  return file_error("make folder", path_of(name), reason);
}

Status Folder::has(const std::string &name, bool *out) const {
  struct stat found{};
  *out = uninterrupted([&] { return file_calls().stat_at(fd(), name.c_str(), &found); }) == 0;
  const int reason = errno;
  if (*out || reason == ENOENT) return {};
  return file_error("look at", path_of(name), reason);
}

Status Folder::file_size(const std::string &name, int64_t *out) const {
  struct stat found{};
  if (uninterrupted([&] { return file_calls().stat_at(fd(), name.c_str(), &found); }) != 0) {
    const int reason = errno;
    return Status::error(reason == ENOENT ? ZERO_E_CHECKPOINT : ZERO_E_SYSTEM, "cannot look at %s: %s", path_of(name).c_str(),
                         std::strerror(reason));
  }
  ZERO_CHECK(S_ISREG(found.st_mode), ZERO_E_CHECKPOINT, "%s is no regular file", path_of(name).c_str());
  *out = found.st_size;
  return {};
}

Status Folder::open_folder(const std::string &name, Folder *out, int *out_errno) const {
  OwnedFd found = open_uninterrupted(fd(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (!found.valid()) {
    const int reason = errno;
    if (out_errno != nullptr) *out_errno = reason;
    return file_error("open folder", path_of(name), reason);
  }
  *out = Folder(std::move(found), path_of(name));
  return {};
}

Status Folder::create_file(const std::string &name, File *out) const {
  OwnedFd made = open_uninterrupted(fd(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
  if (!made.valid()) {
    const int reason = errno;
    return file_error("create", path_of(name), reason);
  }
  *out = File(std::move(made), path_of(name));
  return {};
}

Status Folder::open_file(const std::string &name, File *out, int *out_errno, Links links) const {
  const int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | (links == Links::refused ? O_NOFOLLOW : 0);
  OwnedFd found = open_uninterrupted(fd(), name.c_str(), flags, 0);
  if (!found.valid()) {
    const int reason = errno;
    if (out_errno != nullptr) *out_errno = reason;
    const bool missing = reason == ENOENT || reason == ESTALE || reason == ELOOP;
    return Status::error(missing ? ZERO_E_CHECKPOINT : ZERO_E_SYSTEM, "cannot open %s: %s", path_of(name).c_str(), std::strerror(reason));
  }
  struct stat kind{};
  if (uninterrupted([&] { return file_calls().stat(found.get(), &kind); }) != 0) {
    const int reason = errno;
    return file_error("look at", path_of(name), reason);
  }
  ZERO_CHECK(S_ISREG(kind.st_mode), ZERO_E_CHECKPOINT, "%s is no regular file", path_of(name).c_str());
  *out = File(std::move(found), path_of(name));
  return {};
}

Status Folder::rename(const std::string &from, const std::string &to) const {
  if (uninterrupted([&] { return file_calls().rename(fd(), from.c_str(), fd(), to.c_str()); }) == 0) return {};
  const int reason = errno;
  return Status::error(ZERO_E_SYSTEM, "cannot rename %s to %s: %s%s", path_of(from).c_str(), to.c_str(), std::strerror(reason),
                       remedy(reason));
}

Status Folder::unlink(const std::string &name, int *out_errno) const {
  if (uninterrupted([&] { return file_calls().unlink(fd(), name.c_str(), 0); }) == 0) return {};
  const int reason = errno;
  if (out_errno != nullptr) *out_errno = reason;
  return file_error("remove", path_of(name), reason);
}

Status Folder::remove_folder(const std::string &name) const {
  if (uninterrupted([&] { return file_calls().unlink(fd(), name.c_str(), AT_REMOVEDIR); }) == 0) return {};
  const int reason = errno;
  return file_error("remove folder", path_of(name), reason);
}

Status Folder::list(std::vector<FolderEntry> *out) const {
  if (uninterrupted([&] { return file_calls().list(fd(), out); }) == 0) return {};
  return file_error("list folder", path_, errno);
}

Status Folder::is_folder(const std::string &name, const Folder &other, bool *out) const {
  struct stat here{};
  struct stat open{};
  if (uninterrupted([&] { return file_calls().stat(other.fd(), &open); }) != 0) return file_error("look at", other.path(), errno);
  *out = false;
  if (uninterrupted([&] { return file_calls().stat_at(fd(), name.c_str(), &here); }) != 0) {
    const int reason = errno;
    if (reason == ENOENT) return {};
    return file_error("look at", path_of(name), reason);
  }
  *out = here.st_dev == open.st_dev && here.st_ino == open.st_ino;
  return {};
}

Status Folder::sync() const {
  if (file_calls().sync(fd()) == 0) return {};
  if (errno != EINVAL && errno != ENOTSUP) return file_error("sync folder", path_, errno);
  return {};
}

}  // namespace zero
