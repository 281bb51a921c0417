/// @file Mappings: page-aligned memory that several ranks use, threads of this process or other processes.
/// Knows nothing of ranks; what lies in a mapping is its owner's business.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace zero {

/// Memory that lives until the last holder lets go of it. What other processes attach is backed by a memory file that no path names, so
/// nothing is left behind by a process that is killed.
class Mapping {
 public:
  Mapping(const Mapping &) = delete;
  ~Mapping();

  /// Zeroed memory shared by passing fd() to other processes. A size of 0 gives one page.
  static Status create_shared(int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// Zeroed memory for the threads of this process alone, who attach it by its id; in huge pages where the system has them. fd() is -1.
  static Status create_for_threads(int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// The same in small pages that are made when they are touched.
  static Status create_sparse_for_threads(int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// Memory of another kind, which the threads of this process reach at `data`. `release` gives it back, also when this fails.
  static Status adopt(std::byte *data, int64_t nbytes, std::function<void()> release, std::shared_ptr<Mapping> *out);

  /// The mapping with this id: the one this process has already, otherwise fd mapped; takes fd in any case. What was attached has no fd()
  /// and is left out of core dumps.
  static Status attach(uint64_t id, int fd, int64_t nbytes, std::shared_ptr<Mapping> *out);

  /// The mapping with this id that this process has; nullptr: none.
  static std::shared_ptr<Mapping> find(uint64_t id);
  /// Those of several ids; nullptr for 0 and where there is none.
  static void find_all(std::span<const uint64_t> ids, std::span<std::shared_ptr<Mapping>> out);

  /// Once every process that is to attach it has: closes fd().
  void close_fd();

  std::byte *data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  uint64_t id() const { return id_; }
  int fd() const { return fd_; }  ///< of what this process made for others, otherwise -1

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
