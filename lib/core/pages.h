/// @file Pages of the system: mapped where huge ones fit, and touched before they are used.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>

namespace zero {

/// What one entry of the page table above the last maps (x86, and arm64 with pages of 4 KiB).
inline constexpr int64_t kHugePageBytes = int64_t{2} << 20;

/// Maps zeroed pages of this process's own for reading and writing. From kHugePageBytes on they begin at a multiple of it. nullptr on
/// failure, with the reason in errno. Ended by munmap.
std::byte *map_pages(int64_t nbytes);

/// Such pages, each made when it is first touched, for what is large and used here and there. nullptr on failure, as above.
std::byte *map_sparse_pages(int64_t nbytes);

/// As map_pages, of a memory file, whose pages all who map it share; `fd` stays the caller's.
std::byte *map_file_pages(int64_t nbytes, int fd);

/// Touches every page of what these gave, before other processes map it: in huge pages where there are any, also for memory files
/// that the system's setting gives none by itself (Linux 6.1). An error instead of a signal where the system can tell that memory is
/// short.
Status touch_pages(std::byte *data, int64_t nbytes);

}  // namespace zero
