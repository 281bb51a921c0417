/// @file Non-temporal stores where every processor of the architecture has them, and when they are used.
#include "core/peer_copy.h"

#include "core/clock.h"

#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace zero {
namespace {

/// Smaller copies are short either way.
constexpr int64_t kLargeNbytes = 16'384;
/// On AMD's Zen 4 a plain copy into lines that the reader's cache holds takes 20 ns per KiB where the cores share a second-level cache, 110
/// where they share the third, and 440 where they share none; streamed it takes 45, and the reader then 65 instead of 20 to 70.
constexpr int64_t kSlowNsPerKib = 300;
/// More than one, because any copy may be interrupted.
constexpr int64_t kSlowCopies = 2;
constexpr int64_t kStreamedCopies = 64;

#if defined(__SSE2__)
constexpr bool kStreams = true;

/// Whole lines; `out` begins one. Returns the bytes that were copied.
int64_t stream_lines(std::byte *out, const std::byte *from, int64_t nbytes) {
  constexpr int64_t kLineNbytes = 64;
  if (reinterpret_cast<uintptr_t>(out) % kLineNbytes != 0) return 0;
  const int64_t whole = nbytes / kLineNbytes * kLineNbytes;
  for (int64_t at = 0; at < whole; at += static_cast<int64_t>(sizeof(__m128i))) {
    _mm_stream_si128(reinterpret_cast<__m128i *>(out + at), _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + at)));
  }
  _mm_sfence();
  return whole;
}
#else
constexpr bool kStreams = false;

int64_t stream_lines(std::byte * /*out*/, const std::byte * /*from*/, int64_t /*nbytes*/) { return 0; }
#endif

}  // namespace

void PeerCopy::learn(int64_t nbytes, int64_t ns) {
  slow_count_ = ns > nbytes / 1024 * kSlowNsPerKib ? slow_count_ + 1 : 0;
  if (slow_count_ < kSlowCopies) return;
  slow_count_ = kSlowCopies - 1;  // where it is slow still, the next one that is tried says so alone
  streamed_left_ = kStreamedCopies;
}

void PeerCopy::copy(void *out, const void *from, int64_t nbytes) {
  auto *to = static_cast<std::byte *>(out);
  const auto *bytes = static_cast<const std::byte *>(from);
  if (nbytes < kLargeNbytes) {
    std::memcpy(to, bytes, static_cast<size_t>(nbytes));
  } else if (streams()) {
    --streamed_left_;
    const int64_t done = stream_lines(to, bytes, nbytes);
    std::memcpy(to + done, bytes + done, static_cast<size_t>(nbytes - done));
  } else {
    const int64_t begin = now_ns();
    std::memcpy(to, bytes, static_cast<size_t>(nbytes));
    if (kStreams) learn(nbytes, now_ns() - begin);
  }
}

}  // namespace zero
