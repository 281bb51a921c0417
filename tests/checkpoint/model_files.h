/// @file ModelFiles: a file system in memory that knows what of it would outlive a power cut. Behind FileCalls it does what Linux does; a
/// copy of its tree can be cut at any moment, with any part of what was not synced lost.
#pragma once

#include "core/file_calls.h"

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace zero::tests {

/// A change of a file or folder since its last sync. Nothing orders two of them on the disk.
struct PendingItem {
  enum class Kind { page, size, add, remove, rename };
  Kind kind;
  int64_t offset = 0;  ///< page: in the file; size: the size
  std::vector<std::byte> data;
  std::string name;
  std::string to;
  int node = -1;
};

struct ModelNode {
  bool is_folder = false;
  std::vector<std::byte> bytes;
  std::map<std::string, int> entries;
  std::vector<std::byte> durable_bytes;
  std::map<std::string, int> durable_entries;
  std::vector<PendingItem> pending;
};

/// Nodes by number; 0 is the folder of saves.
class ModelTree {
 public:
  ModelTree() : nodes(1) { nodes[0].is_folder = true; }

  int64_t pending_count() const;
  /// Returns the tree that a power cut leaves when exactly the items of `lost` (numbered over all nodes) are lost. The page with the number
  /// `torn` is written in part: some of its 512-byte sectors.
  ModelTree cut(const std::vector<bool> &lost, int64_t torn, std::mt19937_64 *random) const;
  /// Hashes all that can be reached.
  uint64_t hash() const;
  int find(const std::string &path) const;  ///< -1: not there

  std::vector<ModelNode> nodes;
};

class ModelFiles final : public FileCalls {
 public:
  static constexpr const char *kRoot = "/model";

  ModelFiles() = default;
  explicit ModelFiles(ModelTree found) : tree(std::move(found)) {}

  OwnedFd open_at(int folder, const char *name, int flags, mode_t mode) override;
  int make_folder(int folder, const char *name, mode_t mode) override;
  ssize_t read_at(int file, void *out, size_t nbytes, int64_t offset) override;
  ssize_t write_at(int file, const void *data, size_t nbytes, int64_t offset) override;
  int set_direct(int, bool direct) override;
  int allocate(int file, int64_t nbytes) override;
  int truncate(int file, int64_t nbytes) override;
  int sync(int file) override;
  int close(OwnedFd file) override;
  int rename(int folder, const char *from, int to_folder, const char *to) override;
  int unlink(int folder, const char *name, int flags) override;
  int stat(int file, struct stat *out) override;
  int stat_at(int folder, const char *name, struct stat *out) override;
  int list(int folder, std::vector<FolderEntry> *out) override;
  int64_t free_nbytes(int) override { return 1 << 20; }

  ModelTree tree;
  /// The syncs that do nothing but report success, as on a broken disk, or in a protocol that forgot them.
  enum class Ignored { none, files, saves, folder_of_saves } ignored = Ignored::none;
  /// After each call that changes something, on whichever thread made it, while the tree is locked.
  std::function<void(const char *call)> changed;

 private:
  int node_of(int fd) const;
  int find_from(int folder, const std::string &path) const;
  int add(int folder, const char *name, bool is_folder);
  void resize(ModelNode *node, int64_t nbytes);
  void tell(const char *call) {
    if (changed) changed(call);
  }

  mutable std::mutex mutex_;
  std::vector<int> open_;  ///< node of each descriptor
};

}  // namespace zero::tests
