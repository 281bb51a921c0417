/// @file Reduction over sources, plain: elements one by one for float types, blocks for integers.
#include "kernels/reduce.h"

#include "kernels/reference/reduce-inl.h"
#include "kernels/target.h"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace zero::kernels::reference {
namespace {

template <typename Format>
typename Format::Value tree(const Reduction &reduction, int64_t index, int64_t lo, int64_t hi) {
  if (hi - lo == 1) {
    const typename Format::Value leaf = Format::load(static_cast<const typename Format::Element *>(reduction.sources[lo])[index]);
    return reduction.weights == nullptr ? leaf : leaf * static_cast<typename Format::Value>(reduction.weights[lo]);
  }
  const auto mid = lo + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(hi - lo - 1)));
  return combine(reduction.op, tree<Format>(reduction, index, lo, mid), tree<Format>(reduction, index, mid, hi));
}

template <typename Format, typename Stored = Format>
bool reduce_floats(const Reduction &reduction, int64_t begin, int64_t end) {
  using Value = typename Format::Value;
  const bool is_divided = divides<Value>(reduction.op, reduction.divisor);
  const auto divisor = static_cast<Value>(reduction.divisor);
  auto *out = static_cast<typename Stored::Element *>(reduction.out);
  bool finite = true;
  for (int64_t i = begin; i < end; ++i) {
    Value value = tree<Format>(reduction, i, 0, reduction.source_count);
    if (is_divided) value /= divisor;
    out[i] = Stored::store(value);
    finite = finite && is_finite<Stored>(out[i]);
  }
  return finite;
}

template <ReduceOp op, typename Element>
void reduce_integers(const Reduction &reduction, int64_t begin, int64_t end) {
  using Format = Integer<Element, std::conditional_t<op == ReduceOp::avg, int64_t, Element>>;
  using Wide = typename Format::Value;
  constexpr int64_t kBlock = 1024;  // fits the L1 cache; sources are read before a block is written
  const bool is_divided = divides<Wide>(op, reduction.divisor);
  const auto divisor = is_divided ? static_cast<Wide>(reduction.divisor) : Wide{1};
  auto *out = static_cast<Element *>(reduction.out);
  Wide block[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t count = std::min(kBlock, end - at);
    for (int64_t s = 0; s < reduction.source_count; ++s) {
      const auto *source = static_cast<const Element *>(reduction.sources[s]) + at;
      for (int64_t i = 0; i < count; ++i) block[i] = s == 0 ? Format::load(source[i]) : combine<Wide>(op, block[i], source[i]);
    }
    for (int64_t i = 0; i < count; ++i) out[at + i] = Format::store(is_divided ? block[i] / divisor : block[i]);
  }
}

template <typename Element>
bool reduce_integers_by(const Reduction &reduction, int64_t begin, int64_t end) {
  switch (reduction.op) {
    case ReduceOp::sum:
      reduce_integers<ReduceOp::sum, Element>(reduction, begin, end);
      break;
    case ReduceOp::avg:
      reduce_integers<ReduceOp::avg, Element>(reduction, begin, end);
      break;
    case ReduceOp::min:
      reduce_integers<ReduceOp::min, Element>(reduction, begin, end);
      break;
    case ReduceOp::max:
      reduce_integers<ReduceOp::max, Element>(reduction, begin, end);
      break;
    case ReduceOp::prod:
      reduce_integers<ReduceOp::prod, Element>(reduction, begin, end);
      break;
  }
  return true;
}

}  // namespace

bool reduce_range(const Reduction &reduction, int64_t begin, int64_t end) {
  const bool widens = reduction.out_dtype == DType::f32;
  switch (reduction.dtype) {
    case DType::f32:
      if (reduction.out_dtype == DType::f16) return reduce_floats<F32, F16>(reduction, begin, end);
      return (reduction.out_dtype == DType::bf16 ? reduce_floats<F32, Bf16> : reduce_floats<F32, F32>)(reduction, begin, end);
    case DType::f64:
      return reduce_floats<F64>(reduction, begin, end);
    case DType::f16:
      return (widens ? reduce_floats<F16, F32> : reduce_floats<F16, F16>)(reduction, begin, end);
    case DType::bf16:
      return (widens ? reduce_floats<Bf16, F32> : reduce_floats<Bf16, Bf16>)(reduction, begin, end);
    case DType::i32:
      return reduce_integers_by<int32_t>(reduction, begin, end);
    case DType::i64:
      return reduce_integers_by<int64_t>(reduction, begin, end);
    case DType::u8:
      return reduce_integers_by<uint8_t>(reduction, begin, end);
    case DType::u16:
    case DType::f8e4m3:
    case DType::f8ue5m3:
      break;  // only in slots
  }
  return true;
}

bool reduce(const Reduction &reduction) { return reduce_range(reduction, 0, reduction.count); }

}  // namespace zero::kernels::reference
