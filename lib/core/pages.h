/// @file Pages: mapped as huge pages if they fit, and touched before use.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>

namespace zero {

/// The bytes that one entry of the page table above the lowest maps (x86, and arm64 with 4 KiB
/// pages).
inline constexpr int64_t kHugePageBytes = int64_t{2} << 20;

/// Maps zeroed, private pages for reading and writing. From kHugePageBytes on they begin at a
/// multiple of it. Returns nullptr on failure, with the reason in errno. Unmap with munmap.
std::byte *map_pages(int64_t nbytes);

/// As map_pages, but each page is allocated when it is first touched: for large memory with sparse
/// use.
std::byte *map_sparse_pages(int64_t nbytes);

/// As map_pages, but maps a memory file, whose pages all mappings share. `fd` stays the caller's.
std::byte *map_file_pages(int64_t nbytes, int fd);

/// Touches every page of mapped memory before other processes map it. Uses huge pages if there are
/// any, also for memory files to which the system's setting gives none by itself (Linux 6.1).
/// Returns an error instead of raising a signal if the system can report that memory is short.
Status touch_pages(std::byte *data, int64_t nbytes);

}  // namespace zero
