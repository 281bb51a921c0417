/// @file Copies by non-temporal stores if every processor of the architecture has them, and the
/// choice between these and plain copies.
#include "core/peer_copy.h"

#include "core/clock.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace zero {
namespace {

/// Smaller copies are fast either way.
constexpr int64_t kLargeNbytes = 16'384;
/// On AMD's Zen 4, a plain copy into lines that the reader's cache holds takes 20 ns per KiB if the
/// cores share an L2 cache, 110 if they share an L3 cache, otherwise 440. A streamed copy takes 45,
/// and the reader then takes 65 instead of 20 to 70.
constexpr int64_t kSlowNsPerKib = 300;
/// If memory itself is slow, as when many ranks use it at once, streaming only adds to its load.
constexpr int64_t kLeastGain = 2;
/// More than one, because any copy may be interrupted.
constexpr int64_t kInARow = 2;
constexpr int64_t kCopiesBetweenTrials = 64;

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

int64_t stream_lines(std::byte *, const std::byte *, int64_t) { return 0; }
#endif

}  // namespace

void PeerCopy::learn(int64_t nbytes, int64_t ns) {
  const int64_t ns_per_kib = ns * 1024 / nbytes;
  if (streams()) {
    learn_streamed(ns_per_kib);
  } else {
    learn_plain(ns_per_kib);
  }
}

void PeerCopy::learn_plain(int64_t ns_per_kib) {
  if (plain_left_ > 0) {
    --plain_left_;
    return;
  }
  const bool slow = ns_per_kib > kSlowNsPerKib;
  slow_ns_per_kib_ = slow_count_ == 0 ? ns_per_kib : std::min(slow_ns_per_kib_, ns_per_kib);
  slow_count_ = slow ? slow_count_ + 1 : 0;
  if (slow_count_ < kInARow) return;
  slow_count_ = kInARow - 1;  // then a single slow copy decides the next trial
  streamed_left_ = kCopiesBetweenTrials;
}

void PeerCopy::learn_streamed(int64_t ns_per_kib) {
  --streamed_left_;
  useless_count_ = kLeastGain * ns_per_kib > slow_ns_per_kib_ ? useless_count_ + 1 : 0;
  if (useless_count_ < kInARow) return;
  useless_count_ = 0;
  slow_count_ = 0;
  streamed_left_ = 0;
  plain_left_ = kCopiesBetweenTrials;
}

void PeerCopy::copy(void *out, const void *from, int64_t nbytes) {
  auto *to = static_cast<std::byte *>(out);
  const auto *bytes = static_cast<const std::byte *>(from);
  const bool large = kStreams && nbytes >= kLargeNbytes;
  const int64_t begin = large ? now_ns() : 0;
  const int64_t done = large && streams() ? stream_lines(to, bytes, nbytes) : 0;
  if (done < nbytes) std::memcpy(to + done, bytes + done, static_cast<size_t>(nbytes - done));
  if (large) learn(nbytes, now_ns() - begin);
}

}  // namespace zero
