/// @file Folder and File: opened once, then accessed through descriptors alone. Errors name the
/// call, the path, the offset and the reason. Only EINTR is retried, and never for fsync. A write
/// past RLIMIT_FSIZE fails with EFBIG; SIGXFSZ, which would end the process, is blocked during the
/// call. Every system call goes through FileCalls. Knows no formats.
#pragma once

#include "core/file_calls.h"
#include "core/owned_fd.h"
#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// Returns the error of a call that failed with errno `reason`: ZERO_E_SYSTEM, "cannot <what>
/// <path>: <text>", and the remedy for a full disk.
Status file_error(const char *what, const std::string &path, int reason);

class File {
 public:
  File() = default;
  File(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  /// For texts.
  const std::string &path() const { return path_; }

  /// Reads at least the first `least` bytes of `out`, or fails. ZERO_E_CHECKPOINT if the file ends
  /// before that, or the system can no longer read it (EIO, ESTALE). If `out_errno` is not nullptr,
  /// it receives the reason of an error, or 0.
  Status read_at(std::span<std::byte> out, size_t least, int64_t offset, int *out_errno = nullptr) const;
  /// Writes all of `data`, or fails.
  Status write_at(std::span<const std::byte> data, int64_t offset, int *out_errno = nullptr) const;
  /// Sets whether later calls bypass the page cache. Returns false if the file system cannot do so.
  bool set_direct(bool direct) const;
  /// Reserves the blocks of the whole file. It is no error if the file system does not support this
  /// (EOPNOTSUPP).
  Status allocate(int64_t nbytes) const;
  Status truncate(int64_t nbytes) const;
  /// Call it once: an error reported here is never reported again, and the file is lost.
  Status sync() const;
  /// Reports errors of close. The File is invalid afterwards.
  Status close();
  Status size(int64_t *out) const;

 private:
  OwnedFd fd_;
  std::string path_;
};

class Folder {
 public:
  Folder() = default;
  Folder(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  /// Opens an existing folder by path.
  static Status open(const std::string &path, Folder *out);

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string &path() const { return path_; }
  std::string path_of(const std::string &name) const { return path_ + "/" + name; }

  /// An existing folder (EEXIST) is an error.
  Status make(const std::string &name) const;
  /// Reports an error if it cannot find out.
  Status has(const std::string &name, bool *out) const;
  /// Returns the size of a regular file; ZERO_E_CHECKPOINT if there is none of that name.
  Status file_size(const std::string &name, int64_t *out) const;
  /// Never follows a symbolic link. If `out_errno` is not nullptr, it receives the reason of an
  /// error.
  Status open_folder(const std::string &name, Folder *out, int *out_errno = nullptr) const;
  /// Creates a regular file (O_EXCL) for writing.
  Status create_file(const std::string &name, File *out) const;
  enum class Links { refused, followed };
  /// Opens a regular file for reading; never waits for a pipe. ZERO_E_CHECKPOINT if there is none.
  Status open_file(const std::string &name, File *out, int *out_errno = nullptr, Links links = Links::refused) const;
  Status rename(const std::string &from, const std::string &to) const;
  /// If `out_errno` is not nullptr, it receives the reason of an error.
  Status unlink(const std::string &name, int *out_errno = nullptr) const;
  Status remove_folder(const std::string &name) const;
  Status list(std::vector<FolderEntry> *out) const;
  /// Sets *out to whether `name` here is the folder that `other` holds open.
  Status is_folder(const std::string &name, const Folder &other, bool *out) const;
  /// It is no error if the file system cannot sync folders (EINVAL).
  Status sync() const;

 private:
  OwnedFd fd_;
  std::string path_;
};

}  // namespace zero
