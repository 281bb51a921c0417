/// @file FileCalls: the operating system's calls on files that must be durable, as a table. Tests
/// replace the table to record calls and to make them fail. Each call returns the system's result,
/// with its errno. Knows no retries, no texts and no formats.
#pragma once

#include "core/owned_fd.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace zero {

/// An entry of a folder.
struct FolderEntry {
  std::string name;
  unsigned char type;  ///< DT_REG, DT_DIR, ..., or DT_UNKNOWN
};

class FileCalls {
 public:
  virtual ~FileCalls() = default;

  /// `folder` may be AT_FDCWD. The descriptor is above 2.
  virtual OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) = 0;
  virtual int make_folder(int folder, const char *name, mode_t mode) = 0;
  virtual ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) = 0;
  virtual ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) = 0;
  /// Sets whether calls from the next one on bypass the page cache (O_DIRECT).
  virtual int set_direct(int file, bool direct) = 0;
  /// Reserves blocks and sets the size: fallocate(2), never its emulation.
  virtual int allocate(int file, int64_t nbytes) = 0;
  virtual int truncate(int file, int64_t nbytes) = 0;
  virtual int sync(int file) = 0;
  /// Closes `file`, also if the system reports an error. A network file system may report a write
  /// error here first.
  virtual int close(OwnedFd file) = 0;
  virtual int rename(int folder, const char *from, int to_folder, const char *to) = 0;
  /// `flags`: 0, or AT_REMOVEDIR.
  virtual int unlink(int folder, const char *name, int flags) = 0;
  virtual int stat(int file, struct stat *out) = 0;
  /// Does not follow a symbolic link.
  virtual int stat_at(int folder, const char *name, struct stat *out) = 0;
  /// Lists an open folder in no particular order, without "." and "..".
  virtual int list(int folder, std::vector<FolderEntry> *out) = 0;
  /// Returns the bytes that a user without privileges may still write, or -1 with errno.
  virtual int64_t free_nbytes(int file) = 0;
};

/// The table in use: the system's, unless a test has replaced it.
FileCalls &file_calls() noexcept;
/// The system's own.
FileCalls &system_file_calls() noexcept;

/// Replaces the table for the whole process during its lifetime; for tests. One at a time.
class FileCallsReplaced {
 public:
  explicit FileCallsReplaced(FileCalls &calls) noexcept;
  FileCallsReplaced(const FileCallsReplaced &) = delete;
  ~FileCallsReplaced();
};

}  // namespace zero
