/// @file Reduction over sources, SIMD: reduce.h states the formula. A few sources are combined in
/// registers, many in one cached block per level of the tree. Integers and the first and last few
/// elements go to the reference.
#include "kernels/reduce.h"

#include <hwy/cache_control.h>

#include "kernels/cpu/tree-inl.h"

HWY_BEFORE_NAMESPACE();
namespace zero::kernels::ZERO_KERNEL_NAMESPACE {
namespace {

/// Divides and stores values, and checks the stored values for NaN and infinity.
template <class Format>
class Output {
  using D = typename Format::D;
  using V = typename Format::V;

 public:
  HWY_INLINE Output(const Reduction &reduction, bool divides, bool streams)
      : out_(reduction.out), streams_(streams), divider_(divides ? reduction.divisor : 1), check_(D()) {}

  HWY_INLINE void put(V value, int64_t index) { check_.add(Format::put(canonical(D(), divider_.divide(value)), out_, index, streams_)); }
  HWY_INLINE bool finite() const { return check_.passed(D()); }

 private:
  void *out_;
  bool streams_;
  Divider<Format> divider_;
  FiniteCheck<D> check_;
};

/// The elements of one pass, and whether the results bypass the caches.
struct Part {
  int64_t begin;
  int64_t end;
  bool streams;
};

/// Reduces kCount sources in one pass, with intermediate values in registers.
template <int64_t kCount, class Format, class Op>
bool reduce_few(const Reduction &reduction, const Part &part) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(typename Format::D()));
  const void *sources[kCount];
  for (int64_t s = 0; s < kCount; ++s) sources[s] = reduction.sources[s];
  Output<Format> output(reduction, Op::kDivides, part.streams);
  for (int64_t i = part.begin; i < part.end; i += kStep<typename Format::Element>) {
    for (const void *source : sources) prefetch(static_cast<const typename Format::Element *>(source) + i);
    for (int64_t lane = i; lane < i + kStep<typename Format::Element>; lane += lanes) {
      output.put(tree<kCount, Format, Op>(sources, lane), lane);
    }
  }
  return output.finite();
}

constexpr int64_t kBlock = 512;  // elements; one block per level of the tree fits the L1 cache

/// block[0, count) = T over sources for the elements from `begin` on. kAsks: prefetches, because
/// the processor does not predict many short runs of reads.
template <bool kAsks, class Format, class Op, class Sources>
void fill_block(Sources sources, int64_t source_count, int64_t begin, int64_t count, typename Format::Value *block) {
  const typename Format::D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (source_count <= 2) {
    for (int64_t i = 0; i < count; i += lanes) {
      const int64_t at = begin + i;
      for (int64_t s = 0; kAsks && s < source_count; ++s) {
        prefetch(static_cast<const typename Format::Element *>(first_of(sources + s)) + at);
      }
      hn::StoreU(source_count == 1 ? tree<1, Format, Op>(sources, at) : tree<2, Format, Op>(sources, at), d, block + i);
    }
    return;
  }
  const int64_t cut = tree_cut(source_count);
  typename Format::Value upper[kBlock];
  fill_block<true, Format, Op>(sources, cut, begin, count, block);
  fill_block<true, Format, Op>(sources + cut, source_count - cut, begin, count, upper);
  for (int64_t i = 0; i < count; i += lanes) {
    hn::StoreU(Op::apply(d, hn::LoadU(d, block + i), hn::LoadU(d, upper + i)), d, block + i);
  }
}

template <class Format, class Op, class Sources>
bool reduce_many(const Reduction &reduction, const Part &part, Sources sources) {
  const typename Format::D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Output<Format> output(reduction, Op::kDivides, part.streams);
  typename Format::Value block[kBlock];
  for (int64_t begin = part.begin; begin < part.end; begin += kBlock) {
    const int64_t block_count = part.end - begin < kBlock ? part.end - begin : kBlock;
    fill_block<false, Format, Op>(sources, reduction.source_count, begin, block_count, block);
    for (int64_t i = 0; i < block_count; i += lanes) output.put(hn::LoadU(d, block + i), begin + i);
  }
  return output.finite();
}

template <class Format>
bool reduce_sum(const Reduction &reduction, const Part &part) {
  switch (reduction.source_count) {
    case 1:
      return reduce_few<1, Format, Sum>(reduction, part);
    case 2:
      return reduce_few<2, Format, Sum>(reduction, part);
    case 3:
      return reduce_few<3, Format, Sum>(reduction, part);
    case 4:
      return reduce_few<4, Format, Sum>(reduction, part);
    case 5:
      return reduce_few<5, Format, Sum>(reduction, part);
    case 6:
      return reduce_few<6, Format, Sum>(reduction, part);
    case 7:
      return reduce_few<7, Format, Sum>(reduction, part);
    case 8:
      return reduce_few<8, Format, Sum>(reduction, part);
    case 16:
      return reduce_few<16, Format, Sum>(reduction, part);
    default:
      return reduce_many<Format, Sum>(reduction, part, reduction.sources);
  }
}

template <class Format>
bool reduce_floats(const Reduction &reduction, const Part &part) {
  if constexpr (sizeof(typename Format::Element) == 2) {
    if (reduction.weights != nullptr) {
      return reduce_many<Format, Sum>(reduction, part, WeightedSources{reduction.sources, reduction.weights});
    }
  }
  switch (reduction.op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return reduce_sum<Format>(reduction, part);
    case ReduceOp::min:
      return reduce_many<Format, Min>(reduction, part, reduction.sources);
    case ReduceOp::max:
      return reduce_many<Format, Max>(reduction, part, reduction.sources);
    case ReduceOp::prod:
      return reduce_many<Format, Product>(reduction, part, reduction.sources);
  }
  return true;
}

/// True if results should bypass the caches: they are too large to stay there until they are read,
/// and do not overwrite a source.
bool goes_past_caches(const Reduction &reduction) {
  bool apart = true;
  for (int64_t s = 0; s < reduction.source_count; ++s) apart = apart && reduction.sources[s] != reduction.out;
  return apart && reduction.total_nbytes > kStreamedNbytes;
}

template <class Format>
bool reduce_with_rest(const Reduction &reduction) {
  const int64_t before = goes_past_caches(reduction) ? until_line<typename Format::Stored>(reduction.out, reduction.count) : -1;
  const bool streams = before >= 0;
  const int64_t begin = streams ? before : 0;
  const int64_t end = begin + whole_steps<typename Format::Element>(reduction.count - begin);
  bool finite = reference::reduce_range(reduction, 0, begin);
  finite &= reduce_floats<Format>(reduction, {begin, end, streams});
  if (streams) hwy::FlushStream();
  return reference::reduce_range(reduction, end, reduction.count) && finite;
}

}  // namespace

bool reduce(const Reduction &reduction) {
  const bool widens = reduction.out_dtype == DType::f32;
  switch (reduction.dtype) {
    case DType::f32:
      if (reduction.out_dtype == DType::f16) return reduce_with_rest<Narrowed<F16>>(reduction);
      return (reduction.out_dtype == DType::bf16 ? reduce_with_rest<Narrowed<Bf16>> : reduce_with_rest<F32>)(reduction);
    case DType::f64:
      return reduce_with_rest<F64>(reduction);
    case DType::f16:
      return (widens ? reduce_with_rest<Widened<F16>> : reduce_with_rest<F16>)(reduction);
    case DType::bf16:
      return (widens ? reduce_with_rest<Widened<Bf16>> : reduce_with_rest<Bf16>)(reduction);
    default:
      return reference::reduce_range(reduction, 0, reduction.count);
  }
}

}  // namespace zero::kernels::ZERO_KERNEL_NAMESPACE
HWY_AFTER_NAMESPACE();
