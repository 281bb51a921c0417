/// @file Random numbers of elements, SIMD: random.h says which. One Philox state per 64-bit lane, each word in the lower half of a vector
/// of its own; what the products leave in the upper halves is never read. 4 bytes per element must move.
#include "kernels/cpu/vector-inl.h"
#include "kernels/elementwise.h"
#include "kernels/random.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

using D = hn::ScalableTag<uint64_t>;
using V = hn::Vec<D>;
using Halves = hn::RepartitionToNarrow<D>;

/// The constants of Philox4x32-10.
constexpr uint32_t kMultiplier0 = 0xD2511F53;
constexpr uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr uint32_t kWeyl0 = 0x9E3779B9;
constexpr uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

/// 64-bit products of the lower halves.
HWY_INLINE V multiply(V a, V b) { return hn::MulEven(hn::BitCast(Halves(), a), hn::BitCast(Halves(), b)); }

struct State {
  V word[4];
};

HWY_INLINE State philox(State x, uint64_t seed) {
  const D d;
  auto key0 = static_cast<uint32_t>(seed);
  auto key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < kRounds; ++round) {
    const V product0 = multiply(x.word[0], hn::Set(d, kMultiplier0));
    const V product1 = multiply(x.word[2], hn::Set(d, kMultiplier1));
    x.word[0] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), x.word[1]), hn::Set(d, key0));
    x.word[1] = product1;
    x.word[2] = hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), x.word[3]), hn::Set(d, key1));
    x.word[3] = product0;
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return x;
}

/// The lower halves of a and b side by side.
HWY_INLINE V pair(V a, V b) { return hn::Or(hn::And(a, hn::Set(D(), 0xffffffff)), hn::ShiftLeft<32>(b)); }

}  // namespace

void random_words(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = count / (4 * lanes) * (4 * lanes);
  const V word2 = hn::Set(d, counter_word2(key));
  const V word3 = hn::Set(d, counter_word3(key));
  for (int64_t i = 0; i < whole; i += 4 * lanes) {
    const V place = hn::Add(hn::Iota(d, 0), hn::Set(d, first / 4 + static_cast<uint64_t>(i / 4)));
    const State x = philox({{place, hn::ShiftRight<32>(place), word2, word3}}, key.seed);
    hn::StoreInterleaved2(pair(x.word[0], x.word[1]), pair(x.word[2], x.word[3]), d, reinterpret_cast<uint64_t *>(out + i));
  }
  reference::random_words(out + whole, count - whole, key, first + static_cast<uint64_t>(whole));
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
