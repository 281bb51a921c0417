/// @file FaultyCalls: file calls of which one, or one and all later ones of its kind, fail.
#pragma once

#include "core/file_calls.h"

#include <atomic>
#include <set>
#include <string>
#include <utility>

namespace zero::tests {

class FaultyCalls final : public FileCalls {
 public:
  /// In place of an errno: a write or read that does half of its work.
  static constexpr int kShort = -1;

  explicit FaultyCalls(FileCalls &calls) : calls_(calls) {}

  /// Call `at` (counted from 0) fails with `reason`; `always`: and all later ones of its kind.
  void fail(int64_t at, int reason, bool always) {
    at_ = at;
    reason_ = reason;
    always_ = always;
  }

  int64_t count() const { return count_; }
  /// The kind of the call that failed; empty where none did.
  const std::string &failed() const { return failed_; }
  /// A file was synced again after its sync had failed.
  bool synced_again() const { return synced_again_; }

  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override {
    if (fails("openat")) return OwnedFd();
    return calls_.open_at(folder, name, flags, mode);
  }
  int make_folder(int folder, const char *name, mode_t mode) override {
    return fails("mkdirat") ? -1 : calls_.make_folder(folder, name, mode);
  }
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override {
    if (fails("pread64")) return reason_ == kShort ? calls_.read_at(file, out, (nbytes + 1) / 2, offset) : -1;
    return calls_.read_at(file, out, nbytes, offset);
  }
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override {
    if (fails("pwrite64")) return reason_ == kShort ? calls_.write_at(file, data, (nbytes + 1) / 2, offset) : -1;
    return calls_.write_at(file, data, nbytes, offset);
  }
  int set_direct(int file, bool direct) override { return calls_.set_direct(file, direct); }
  int allocate(int file, int64_t nbytes) override { return fails("fallocate") ? -1 : calls_.allocate(file, nbytes); }
  int truncate(int file, int64_t nbytes) override { return fails("ftruncate") ? -1 : calls_.truncate(file, nbytes); }
  int sync(int file) override {
    synced_again_ = synced_again_ || failed_syncs_.contains(file);
    if (!fails("fsync")) return calls_.sync(file);
    failed_syncs_.insert(file);
    return -1;
  }
  int close(OwnedFd file) override {
    const bool failing = fails("close");
    const int reason = errno;
    const int result = calls_.close(std::move(file));
    if (failing) errno = reason;
    return failing ? -1 : result;
  }
  int rename(int folder, const char *from, int to_folder, const char *to) override {
    return fails("renameat") ? -1 : calls_.rename(folder, from, to_folder, to);
  }
  int unlink(int folder, const char *name, int flags) override { return fails("unlinkat") ? -1 : calls_.unlink(folder, name, flags); }
  int stat(int file, struct stat *out) override { return fails("fstat") ? -1 : calls_.stat(file, out); }
  int stat_at(int folder, const char *name, struct stat *out) override { return fails("fstatat") ? -1 : calls_.stat_at(folder, name, out); }
  int list(int folder, std::vector<FolderEntry> *out) override { return fails("getdents64") ? -1 : calls_.list(folder, out); }
  int64_t free_nbytes(int file) override { return calls_.free_nbytes(file); }

 private:
  bool fails(const char *kind) {
    const int64_t number = count_++;
    const std::string name = kind;
    if (reason_ == kShort && name != "pread64" && name != "pwrite64") return false;
    if (number == at_) failed_ = name;
    if (number != at_ && !(always_ && number > at_ && failed_ == name)) return false;
    errno = reason_;
    return true;
  }

  FileCalls &calls_;
  int64_t at_ = -1;
  int reason_ = 0;
  bool always_ = false;
  int64_t count_ = 0;
  std::string failed_;
  std::set<int> failed_syncs_;
  bool synced_again_ = false;
};

}  // namespace zero::tests
