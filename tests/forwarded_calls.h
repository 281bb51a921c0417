/// @file ForwardedCalls: file calls that go on to others. A test overrides the calls that it watches or changes.
#pragma once

#include "core/file_calls.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace zero::tests {

class ForwardedCalls : public FileCalls {
 public:
  explicit ForwardedCalls(FileCalls &calls = system_file_calls()) : calls_(calls) {}

  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override { return calls_.open_at(folder, name, flags, mode); }
  int make_folder(int folder, const char *name, mode_t mode) override { return calls_.make_folder(folder, name, mode); }
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override { return calls_.read_at(file, out, nbytes, offset); }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    return calls_.write_at(file, data, nbytes, offset);
  }
  int set_direct(int file, bool direct) override { return calls_.set_direct(file, direct); }
  int allocate(int file, int64_t nbytes) override { return calls_.allocate(file, nbytes); }
  int truncate(int file, int64_t nbytes) override { return calls_.truncate(file, nbytes); }
  int sync(int file) override { return calls_.sync(file); }
  int close(OwnedFd file) override { return calls_.close(std::move(file)); }
  int rename(int folder, const char *from, int to_folder, const char *to) override { return calls_.rename(folder, from, to_folder, to); }
  int unlink(int folder, const char *name, int flags) override { return calls_.unlink(folder, name, flags); }
  int stat(int file, struct stat *out) override { return calls_.stat(file, out); }
  int stat_at(int folder, const char *name, struct stat *out) override { return calls_.stat_at(folder, name, out); }
  int list(int folder, std::vector<FolderEntry> *out) override { return calls_.list(folder, out); }
  int64_t free_nbytes(int file) override { return calls_.free_nbytes(file); }

 private:
  FileCalls &calls_;
};

}  // namespace zero::tests
