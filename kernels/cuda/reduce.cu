/// @file Reductions over sources: kernels/reduce.h states the formula. Sums of floats move quads;
/// all others go element by element. source_count reads and one write per element must move.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/over_quads.h"
#include "kernels/cuda/sources.h"
#include "kernels/reference/reduce-inl.h"

#include <algorithm>
#include <limits>

namespace zero::kernels::cuda {
namespace {

/// A call and the addresses of its sources, as passed to kernels.
struct Given {
  Reduce call;
  const void *address[kMostSources];
  int32_t *flag;
};

/// Sums of f32, f16 or bf16 as they are stored.
ZERO_DEVICE Quad<float> sum_of(const Given &given, int64_t index, int count) {
  const Reduce &call = given.call;
  const Sources sources = {given.address, static_cast<DType>(call.dtype), index, count};
  return rounded(reduced(sources, call.source_count, call.divisor), static_cast<DType>(call.out_dtype));
}

/// f32, f16, bf16: sum and avg.
struct Summing {
  Given given;

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    const Quad<float> kept = sum_of(given, index, count);
    store_narrow(given.call.out, static_cast<DType>(given.call.out_dtype), index, count, kept);
    if (given.flag != nullptr) check(kept, count, std::numeric_limits<float>::max(), given.flag);
  }
};

/// f16, bf16: sums with weights.
struct WeightedSumming {
  Given given;
  float weights[kMostSources];

  ZERO_DEVICE void operator()(int64_t index, int count) const {
    const Reduce &call = given.call;
    const Sources sources = {given.address, static_cast<DType>(call.dtype), index, count};
    const auto out_dtype = static_cast<DType>(call.out_dtype);
    const Quad<float> sum = tree_of(WeightedAddends{sources, weights}, call.source_count);
    const Quad<float> kept = rounded(divided(sum, call.divisor), out_dtype);
    store_narrow(call.out, out_dtype, index, count, kept);
    if (given.flag != nullptr) check(kept, count, std::numeric_limits<float>::max(), given.flag);
  }
};

/// Elements of one thread, kThreads apart, so that adjacent threads read adjacent elements at any
/// address.
template <class Element, int kCount>
struct Lanes {
  Element lane[kCount];
};

/// Leaves of the tree: elements from `index` on.
template <class Format, ReduceOp op>
struct Operands {
  static constexpr int kLanes = sizeof(typename Format::Value) == 8 ? 2 : 4;  // by registers
  using Loaded = Lanes<typename Format::Element, kLanes>;
  using Value = Lanes<typename Format::Value, kLanes>;
  const Given &given;
  int64_t index;

  ZERO_DEVICE bool has(int i) const { return index + i * kThreads < given.call.count; }

  ZERO_DEVICE Loaded load(int64_t source) const {
    const auto *from = static_cast<const typename Format::Element *>(given.address[source]) + index;
    Loaded loaded = {};
    ZERO_UNROLLED
    for (int i = 0; i < kLanes; ++i) {
      if (has(i)) loaded.lane[i] = from[i * kThreads];
    }
    return loaded;
  }
  ZERO_DEVICE Value value_of(const Loaded &loaded) const {
    Value value;
    ZERO_UNROLLED
    for (int i = 0; i < kLanes; ++i) value.lane[i] = Format::load(loaded.lane[i]);
    return value;
  }
  ZERO_DEVICE Value combine(const Value &a, const Value &b) const {
    Value value;
    ZERO_UNROLLED
    for (int i = 0; i < kLanes; ++i) value.lane[i] = reference::combine(op, a.lane[i], b.lane[i]);
    return value;
  }
};

/// Returns false if the stored value is not finite.
template <class Format, class Value>
ZERO_DEVICE bool put(void *out, int64_t index, Value value) {
  const auto element = Format::store(value);
  static_cast<typename Format::Element *>(out)[index] = element;
  return reference::is_finite<Format>(element);
}

template <class Format, ReduceOp op>
struct Reducing : ThreadsAlone {
  using Value = typename Format::Value;
  static constexpr int kLanes = Operands<Format, op>::kLanes;
  Given given;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    const Operands<Format, op> operands = {given, place.block * kThreads * kLanes + place.thread};
    if (!operands.has(0)) return;
    const auto reduced = tree_of(operands, given.call.source_count);
    bool finite = true;
    ZERO_UNROLLED
    for (int i = 0; i < kLanes; ++i) {
      if (operands.has(i)) finite = store(operands.index + i * kThreads, reduced.lane[i]) && finite;
    }
    if (!finite && given.flag != nullptr) raise(given.flag);
  }

  ZERO_DEVICE bool store(int64_t index, Value value) const {
    const Reduce &call = given.call;
    if (reference::divides<Value>(op, call.divisor)) value = value / static_cast<Value>(call.divisor);
    if constexpr (std::is_same_v<Value, float>) {
      if (call.out_dtype == static_cast<int64_t>(DType::f16)) return put<reference::F16>(call.out, index, value);
      if (call.out_dtype == static_cast<int64_t>(DType::bf16)) return put<reference::Bf16>(call.out, index, value);
      return put<reference::F32>(call.out, index, value);
    } else {
      return put<Format>(call.out, index, value);
    }
  }
};

Given given_of(const Reduce &call, int32_t *flag) {
  Given given = {call, {}, flag};
  std::copy(call.sources, call.sources + call.source_count, given.address);
  return given;
}

/// The stream on which a reduction runs.
struct Queue {
  int64_t device;
  void *stream;
};

template <class Format, ReduceOp op>
int32_t launch_reducing(const Queue &queue, const Given &given) {
  constexpr int64_t kPerBlock = kThreads * Reducing<Format, op>::kLanes;
  return launch(queue.device, queue.stream, (given.call.count + kPerBlock - 1) / kPerBlock, Reducing<Format, op>{{}, given});
}

/// min, max, prod.
template <class Format>
int32_t reduce_unsummed(const Queue &queue, const Given &given) {
  const auto op = static_cast<ReduceOp>(given.call.op);
  if (op == ReduceOp::min) return launch_reducing<Format, ReduceOp::min>(queue, given);
  if (op == ReduceOp::max) return launch_reducing<Format, ReduceOp::max>(queue, given);
  return launch_reducing<Format, ReduceOp::prod>(queue, given);
}

bool is_sum(const Given &given) {
  const auto op = static_cast<ReduceOp>(given.call.op);
  return op == ReduceOp::sum || op == ReduceOp::avg;
}

int32_t reduce_weighted(const Queue &queue, const Given &given) {
  WeightedSumming summing = {given, {}};
  std::copy(given.call.weights, given.call.weights + given.call.source_count, summing.weights);
  return over_quads(queue.device, queue.stream, given.call.count, summing);
}

template <class Format>
int32_t reduce_floats(const Queue &queue, const Given &given) {
  if (given.call.weights != nullptr) return reduce_weighted(queue, given);
  if (is_sum(given)) return over_quads(queue.device, queue.stream, given.call.count, Summing{given});
  return reduce_unsummed<Format>(queue, given);
}

template <class Element>
int32_t reduce_integers(const Queue &queue, const Given &given) {
  const auto op = static_cast<ReduceOp>(given.call.op);
  if (op == ReduceOp::avg) return launch_reducing<reference::Integer<Element, int64_t>, ReduceOp::avg>(queue, given);
  if (op == ReduceOp::sum) return launch_reducing<reference::Integer<Element>, ReduceOp::sum>(queue, given);
  return reduce_unsummed<reference::Integer<Element>>(queue, given);
}

}  // namespace

int32_t reduce(int64_t device, const Reduce *call, int32_t *flag, void *stream) {
  const Queue queue = {device, stream};
  const Given given = given_of(*call, flag);
  switch (static_cast<DType>(call->dtype)) {
    case DType::f32:
      return reduce_floats<reference::F32>(queue, given);
    case DType::f16:
      return reduce_floats<reference::F16>(queue, given);
    case DType::bf16:
      return reduce_floats<reference::Bf16>(queue, given);
    case DType::f64:
      if (is_sum(given)) return launch_reducing<reference::F64, ReduceOp::sum>(queue, given);
      return reduce_unsummed<reference::F64>(queue, given);
    case DType::i32:
      return reduce_integers<int32_t>(queue, given);
    case DType::i64:
      return reduce_integers<int64_t>(queue, given);
    case DType::u8:
      return reduce_integers<uint8_t>(queue, given);
    case DType::u16:
    case DType::f8e4m3:
    case DType::f8ue5m3:
      break;  // only in slots
  }
  return 0;
}

}  // namespace zero::kernels::cuda
