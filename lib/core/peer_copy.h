/// @file PeerCopy: copies into memory that another core reads next, and last read before: past the caches where the cores are so far apart
/// that taking lines back from the reader's cache costs more. Learns that from the time copies take. Knows nothing of whose memory it is.
#pragma once

#include <cstdint>

namespace zero {

/// One for each reader, or for each set of them. One thread at a time.
class PeerCopy {
 public:
  /// Who sees a later store with release order sees what was written.
  void copy(void *out, const void *from, int64_t nbytes);

  /// The next large copy goes past the caches.
  bool streams() const { return streamed_left_ > 0; }
  /// What the next large copy took, as copy() measures it.
  void learn(int64_t nbytes, int64_t ns);

 private:
  void learn_plain(int64_t ns_per_kib);
  void learn_streamed(int64_t ns_per_kib);

  int64_t slow_count_ = 0;       ///< plain copies in a row that were slow
  int64_t slow_ns_per_kib_ = 0;  ///< what they took
  int64_t useless_count_ = 0;    ///< streamed copies in a row that gained little
  int64_t streamed_left_ = 0;    ///< before a plain one is tried again
  int64_t plain_left_ = 0;       ///< before streamed ones are tried again
};

}  // namespace zero
