/// @file Random numbers of elements, SIMD: random.h defines them. There is one Philox state per
/// 64-bit lane. Each word is in the lower half of a vector of its own; the upper halves are never
/// read. 4 bytes per element must move.
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

/// States computed at once, as many as registers hold: a single one would wait for its products.
constexpr int kStates = HWY_MAX_BYTES == 64 ? 4 : 2;

struct States {
  HWY_INLINE States() {}  // a defaulted one would not be compiled for this target
  V word[4][kStates];
};

/// The keys of all rounds.
struct Keys {
  HWY_INLINE explicit Keys(uint64_t seed) {
    auto key0 = static_cast<uint32_t>(seed);
    auto key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kRounds; ++round) {
      word[round][0] = hn::Set(D(), key0);
      word[round][1] = hn::Set(D(), key1);
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
  }
  V word[kRounds][2];
};

HWY_INLINE void philox(States &x, const Keys &keys) {
  const D d;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kStates; ++i) {
      const V product0 = multiply(x.word[0][i], hn::Set(d, kMultiplier0));
      const V product1 = multiply(x.word[2][i], hn::Set(d, kMultiplier1));
      x.word[0][i] = hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(x.word[1][i], keys.word[round][0]));
      x.word[1][i] = product1;
      x.word[2][i] = hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(x.word[3][i], keys.word[round][1]));
      x.word[3][i] = product0;
    }
  }
}

/// The lower halves of a and b side by side.
HWY_INLINE V pair(V a, V b) { return hn::BitCast(D(), hn::OddEven(hn::BitCast(Halves(), hn::ShiftLeft<32>(b)), hn::BitCast(Halves(), a))); }

}  // namespace

void random_words(uint32_t *out, int64_t count, const RandomKey &key, uint64_t first) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t step = 4 * lanes * kStates;
  const int64_t whole = count / step * step;
  const Keys keys(key.seed);
  const V word2 = hn::Set(d, counter_word2(key));
  const V word3 = hn::Set(d, counter_word3(key));
  for (int64_t begin = 0; begin < whole; begin += step) {
    States x;
    for (int i = 0; i < kStates; ++i) {
      const V place = hn::Add(hn::Iota(d, 0), hn::Set(d, first / 4 + static_cast<uint64_t>(begin / 4 + i * lanes)));
      x.word[0][i] = place;
      x.word[1][i] = hn::ShiftRight<32>(place);
      x.word[2][i] = word2;
      x.word[3][i] = word3;
    }
    philox(x, keys);
    for (int i = 0; i < kStates; ++i) {
      auto *to = reinterpret_cast<uint64_t *>(out + begin + 4 * lanes * i);
      hn::StoreInterleaved2(pair(x.word[0][i], x.word[1][i]), pair(x.word[2][i], x.word[3][i]), d, to);
    }
  }
  reference::random_words(out + whole, count - whole, key, first + static_cast<uint64_t>(whole));
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
