/// @file Mapping: page-aligned memory shared by several ranks, which are threads of this process or
/// other processes. Knows nothing of ranks or of the contents.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace zero {

/// Memory that lives until its last holder releases it. Memory that other processes attach is
/// backed by a memory file without a path, so a killed process leaves nothing behind.
class Mapping {
 public:
  Mapping(const Mapping &) = delete;
  ~Mapping();

  /// Zeroed memory shared by passing fd() to other processes. A size of 0 gives one page.
  static Status create_shared(int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// Zeroed memory for the threads of this process alone, which attach it by its id. Uses huge
  /// pages if the system has them. fd() is -1.
  static Status create_for_threads(int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// The same in small pages, which are allocated when they are first touched.
  static Status create_sparse_for_threads(int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// Adopts memory of another kind, which the threads of this process access at `data`. `release`
  /// frees it, also if this call fails.
  static Status adopt(std::byte *data, int64_t nbytes, std::function<void()> release, std::shared_ptr<Mapping> *out);

  /// Returns the mapping with this id: the existing one of this process, otherwise `fd` mapped.
  /// Takes `fd` in any case. An attached mapping has no fd() and is left out of core dumps.
  static Status attach(uint64_t id, int fd, int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// Returns this process's mapping with this id, or nullptr.
  static std::shared_ptr<Mapping> find(uint64_t id);
  /// Finds the mappings of several ids; nullptr for 0 and for unknown ids.
  static void find_all(std::span<const uint64_t> ids, std::span<std::shared_ptr<Mapping>> out);

  /// Closes fd(). Call it once every process that should attach the mapping has done so.
  void close_fd();

  std::byte *data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  uint64_t id() const { return id_; }
  /// The descriptor of memory that this process created for others, otherwise -1.
  int fd() const { return fd_; }

 private:
  Mapping(uint64_t id, int fd, std::byte *data, int64_t nbytes) : id_(id), fd_(fd), data_(data), nbytes_(nbytes) {}
  static Status create_private(int64_t nbytes, std::byte *(*map_memory)(int64_t), std::shared_ptr<Mapping> *out);
  static Status map(uint64_t id, int fd, int64_t nbytes, std::shared_ptr<Mapping> *out);
  static Status enter(uint64_t id, int fd, std::byte *data, int64_t nbytes, std::shared_ptr<Mapping> *out);

  uint64_t id_;
  int fd_;
  std::byte *data_;
  int64_t nbytes_;
  std::function<void()> release_;  ///< empty: pages of the system
};

}  // namespace zero
