/// @file ForwardedCalls: the system's calls on files, of which a test overrides some. Knows nothing of what files hold.
#pragma once

#include "core/file_calls.h"

#include <sys/stat.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace zero::test {

class ForwardedCalls : public FileCalls {
 public:
  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override { return system_.open_at(folder, name, flags, mode); }
  int make_folder(int folder, const char *name, mode_t mode) override { return system_.make_folder(folder, name, mode); }
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override { return system_.read_at(file, out, nbytes, offset); }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override { return system_.write_at(file, data, nbytes, offset); }
  int set_direct(int file, bool direct) override { return system_.set_direct(file, direct); }
  int allocate(int file, int64_t nbytes) override { return system_.allocate(file, nbytes); }
  int truncate(int file, int64_t nbytes) override { return system_.truncate(file, nbytes); }
  int sync(int file) override { return system_.sync(file); }
  int close(OwnedFd file) override { return system_.close(std::move(file)); }
  int rename(int folder, const char *from, int to_folder, const char *to) override { return system_.rename(folder, from, to_folder, to); }
  int unlink(int folder, const char *name, int flags) override { return system_.unlink(folder, name, flags); }
  int stat(int file, struct stat *out) override { return system_.stat(file, out); }
  int stat_at(int folder, const char *name, struct stat *out) override { return system_.stat_at(folder, name, out); }
  int list(int folder, std::vector<FolderEntry> *out) override { return system_.list(folder, out); }
  int64_t free_nbytes(int file) override { return system_.free_nbytes(file); }

 private:
  FileCalls &system_ = system_file_calls();
};

}  // namespace zero::test
