/// @file Arena: one zeroed allocation from which views are handed out. Knows where memory comes from (hook, pages, shared mappings, a
/// device) and who counts it; never what is kept in it.
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

/// Who provides memory and who is told of it. All outlive every arena made with them.
struct MemorySource {
  const AllocatorHook *hook;
  Accounting *accounting;
  bool for_threads = false;        ///< shared arenas are for threads of this process alone
  const Device *device = nullptr;  ///< arenas lie there, and the hook is not told of them
};

class Arena {
 public:
  Arena() = default;
  Arena(Arena &&other) noexcept { swap(other); }
  Arena &operator=(Arena &&other) noexcept;
  ~Arena() { release(); }

  /// Memory of this process: from the hook where there is one, otherwise pages of the system. Every page is touched, because the first
  /// touch is several times slower than later ones. 0 bytes make an empty arena.
  static Status create_private(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out);
  /// Memory that other processes may map; the hook is told of it. 0 bytes make one page, so that every rank has a mapping to share.
  static Status create_shared(const MemorySource &source, int32_t category, int64_t nbytes, Arena *out);

  /// What create_private takes for `nbytes`: whole pages.
  static int64_t private_nbytes(int64_t nbytes);

  /// Gives the memory back now.
  void release();

  std::byte *data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  /// nullptr for private memory of the host.
  const std::shared_ptr<Mapping> &mapping() const { return mapping_; }

  /// The next `nbytes` bytes, aligned to kViewAlignment. The arena must have been made large enough.
  std::byte *take(int64_t nbytes);

  /// Bytes that a view takes up in an arena.
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
