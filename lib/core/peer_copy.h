/// @file PeerCopy: copies into memory that another core has read before and reads next. Copies
/// bypass the caches if the cores are so far apart that fetching lines from the reader's cache
/// costs more. Learns this from the time that copies take. Knows nothing of the owner of the
/// memory.
#pragma once

#include <cstdint>

namespace zero {

/// Use one for each reader or set of readers. One thread at a time.
class PeerCopy {
 public:
  /// A thread that sees a later store with release order also sees the copied bytes.
  void copy(void *out, const void *from, int64_t nbytes);

  /// True if the next large copy bypasses the caches.
  bool streams() const { return streamed_left_ > 0; }
  /// Reports the time of a large copy, as copy() measures it.
  void learn(int64_t nbytes, int64_t ns);

 private:
  void learn_plain(int64_t ns_per_kib);
  void learn_streamed(int64_t ns_per_kib);

  int64_t slow_count_ = 0;       ///< plain copies in a row that were slow
  int64_t slow_ns_per_kib_ = 0;  ///< least time among them
  int64_t useless_count_ = 0;    ///< streamed copies in a row that gained little
  int64_t streamed_left_ = 0;    ///< streamed copies left before a plain one is tried again
  int64_t plain_left_ = 0;       ///< plain copies left before streamed ones are tried again
};

}  // namespace zero
