/// @file Arena: one zeroed allocation that is divided into views. Knows the source of the memory
/// (hook, pages, shared mappings, a device) and its accounting, not its contents.
#pragma once

#include "core/config.h"
#include "core/mapping.h"
#include "core/partition.h"
#include "core/status.h"
#include "memory/accounting.h"
#include "memory/device.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zero {

/// Views begin on multiples of this many bytes.
inline constexpr int64_t kViewAlignment = 64;

/// The provider of memory and its accounting. All outlive every arena made with them.
struct MemorySource {
  const AllocatorHook *hook;
  Accounting *accounting;
  bool for_threads = false;        ///< shared arenas are for the threads of this process alone
  const Device *device = nullptr;  ///< arenas are allocated there, and the hook is not called
};

class Arena {
 public:
  Arena() = default;
  Arena(Arena &&other) noexcept { swap(other); }
  Arena &operator=(Arena &&other) noexcept;
  ~Arena() { release(); }

  /// Allocates memory of this process, from the hook if there is one, otherwise from the system.
  /// Every page is touched, because the first touch is several times slower than later ones. 0
  /// bytes make an empty arena.
  static Status create_private(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out);
  /// Allocates memory that other processes may map, and reports it to the hook. 0 bytes make one
  /// page, so that every rank has a mapping to share.
  static Status create_shared(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out);

  /// Returns the bytes that create_private allocates for `nbytes`: whole pages.
  static int64_t private_nbytes(int64_t nbytes);

  /// Frees the memory now.
  void release();

  std::byte *data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  /// nullptr for private memory of the host.
  const std::shared_ptr<Mapping> &mapping() const { return mapping_; }

  /// Returns the next `nbytes` bytes, aligned to kViewAlignment. The arena must be large enough.
  std::byte *take(int64_t nbytes);

  /// The bytes that a view occupies in an arena.
  static constexpr int64_t view_nbytes(int64_t nbytes) { return round_up(nbytes, kViewAlignment); }

 private:
  static Status create_on_device(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out);
  void hold(const MemorySource &source, int32_t category, std::shared_ptr<Mapping> mapping);
  void swap(Arena &other) noexcept;

  MemorySource source_{};
  int32_t category_ = 0;
  std::byte *data_ = nullptr;
  int64_t nbytes_ = 0;
  int64_t taken_ = 0;
  bool from_hook_ = false;
  std::shared_ptr<Mapping> mapping_;
};

}  // namespace zero
