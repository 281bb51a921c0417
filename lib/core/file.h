/// @file Folder and File: opened once, then reached through descriptors alone. Errors name the call, the path, the offset and the reason.
/// Only EINTR is retried, and never for fsync. A write past RLIMIT_FSIZE fails with EFBIG: SIGXFSZ, which would end the process, is blocked
/// during the call. Every system call goes through FileCalls. Knows no formats.
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

/// The error of a call that failed with `reason` (an errno): ZERO_E_SYSTEM, "cannot <what> <path>: <text>", and the remedy for a full disk.
Status file_error(const char *what, const std::string &path, int reason);

class File {
 public:
  File() = default;
  File(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  /// For texts.
  const std::string &path() const { return path_; }

  /// At least the first `least` bytes of `out`, or an error. ZERO_E_CHECKPOINT when the file ends before, or the system cannot read it any
  /// more (EIO, ESTALE). *out_errno, where given, is the reason of an error, or 0.
  Status read_at(std::span<std::byte> out, size_t least, int64_t offset, int *out_errno = nullptr) const;
  /// All of `data`, or an error.
  Status write_at(std::span<const std::byte> data, int64_t offset, int *out_errno = nullptr) const;
  /// Past the page cache from now on, or not. False: the file system cannot.
  bool set_direct(bool direct) const;
  /// Reserves the blocks of the whole file. A file system that cannot (EOPNOTSUPP) is no error.
  Status allocate(int64_t nbytes) const;
  Status truncate(int64_t nbytes) const;
  /// Once: an error reported here is never reported again, so that the file is lost.
  Status sync() const;
  /// Reports errors of close; invalid afterwards.
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

  /// A folder that exists, by path.
  static Status open(const std::string &path, Folder *out);

  bool valid() const { return fd_.valid(); }
  int fd() const { return fd_.get(); }
  const std::string &path() const { return path_; }
  std::string path_of(const std::string &name) const { return path_ + "/" + name; }

  /// EEXIST is an error.
  Status make(const std::string &name) const;
  /// An error where it cannot be seen.
  Status has(const std::string &name, bool *out) const;
  /// Size of a regular file; ZERO_E_CHECKPOINT when there is none of that name.
  Status file_size(const std::string &name, int64_t *out) const;
  /// Never through a symbolic link. *out_errno, where given, is the reason.
  Status open_folder(const std::string &name, Folder *out, int *out_errno = nullptr) const;
  /// A new regular file (O_EXCL) for writing.
  Status create_file(const std::string &name, File *out) const;
  enum class Links { refused, followed };
  /// A regular file for reading, never waiting for a pipe. ZERO_E_CHECKPOINT when there is none.
  Status open_file(const std::string &name, File *out, int *out_errno = nullptr, Links links = Links::refused) const;
  Status rename(const std::string &from, const std::string &to) const;
  /// *out_errno, where given, is the reason.
  Status unlink(const std::string &name, int *out_errno = nullptr) const;
  Status remove_folder(const std::string &name) const;
  Status list(std::vector<FolderEntry> *out) const;
  /// True when `name` here is the folder that `other` holds open.
  Status is_folder(const std::string &name, const Folder &other, bool *out) const;
  /// A file system that cannot sync folders (EINVAL) is no error.
  Status sync() const;

 private:
  OwnedFd fd_;
  std::string path_;
};

}  // namespace zero
