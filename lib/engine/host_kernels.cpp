/// @file Cutting kernels' work over threads.
#include "engine/host_kernels.h"

#include "core/partition.h"
#include "core/thread_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

namespace zero {
namespace {

/// Below this many elements per thread, waking a thread costs more than it saves.
constexpr int64_t kLeastElements = 32 * 1024;
constexpr int64_t kMostPieces = 64;

int64_t piece_count(int64_t elements, int64_t threads) {
  return std::clamp<int64_t>(std::min(elements / kLeastElements, threads), 1, kMostPieces);
}

/// Piece `index` of `pieces` of [0, count), cut on lines.
Range piece_of(int64_t count, int64_t index, int64_t pieces) {
  const int64_t lines = (count + kLine - 1) / kLine;
  return {std::min(scale_floor(lines, index, pieces) * kLine, count), std::min(scale_floor(lines, index + 1, pieces) * kLine, count)};
}

/// Runs function(range) over the pieces of [0, count).
template <class Function>
void over_pieces(int64_t count, int64_t threads, Function &&function) {
  const int64_t pieces = piece_count(count, threads);
  const DefaultFloats floats;
  parallel_pieces(pieces, [&](int64_t index) { function(piece_of(count, index, pieces)); });
}

template <class Pointer>
Pointer shifted(Pointer pointer, int64_t elements) {
  return pointer == nullptr ? nullptr : pointer + elements;
}

kernels::Slots slice(const kernels::Slots &slots, Range range) {
  kernels::Slots part = slots;
  part.param = shifted(slots.param, range.begin);
  part.grad = shifted(slots.grad, range.begin);
  for (float *&state : part.state) state = shifted(state, range.begin);
  part.count = range.count();
  return part;
}

/// As many sources as fit are moved without asking for memory.
constexpr int64_t kSourcesOnStack = 64;

bool reduce_part(const Reduction &whole, Range range) {
  const int64_t offset = range.begin * dtype_nbytes(whole.dtype);
  std::array<const void *, kSourcesOnStack> sources;
  for (int64_t i = 0; i < whole.source_count; ++i) {
    sources[static_cast<size_t>(i)] = static_cast<const std::byte *>(whole.sources[i]) + offset;
  }
  Reduction part = whole;
  part.out = static_cast<std::byte *>(whole.out) + offset;
  part.sources = sources.data();
  part.count = range.count();
  return kernels::active().reduce(part);
}

}  // namespace

int64_t host_threads(const Config &config, const Place &place) {
  if (const int64_t threads = config.i64(ZERO_KEY_THREADS); threads > 0) return threads;
  if (const char *text = std::getenv("ZERO_THREADS")) {
    if (const long threads = std::strtol(text, nullptr, 10); threads > 0) return std::min<int64_t>(threads, 4096);
  }
  return std::max<int64_t>(1, usable_cores() / std::max<int64_t>(1, place.local_size));
}

bool HostReducer::reduce(const Reduction &reduction) const {
  if (reduction.count == 0) return true;
  // More sources are more work per element.
  int64_t pieces = piece_count(reduction.count * reduction.source_count, threads_);
  if (reduction.source_count > kSourcesOnStack) pieces = 1;
  const DefaultFloats floats;
  if (pieces == 1) return kernels::active().reduce(reduction);
  std::atomic<bool> finite{true};
  parallel_pieces(pieces, [&](int64_t index) {
    const Range range = piece_of(reduction.count, index, pieces);
    if (!range.empty() && !reduce_part(reduction, range)) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

void HostKernels::update(kernels::UpdateKernel kernel, std::span<const kernels::Slots> pieces,
                         const kernels::HyperParameters &hyper) const {
  int64_t total = 0;
  for (const kernels::Slots &slots : pieces) total += round_up(slots.count, kLine);
  over_pieces(total, threads_, [&](Range mine) {
    int64_t begin = 0;
    for (const kernels::Slots &slots : pieces) {
      const Range part = intersect(mine, {begin, begin + slots.count});
      if (!part.empty()) kernel(slice(slots, {part.begin - begin, part.end - begin}), hyper);
      begin += round_up(slots.count, kLine);
    }
  });
}

bool HostKernels::all_finite(const float *values, int64_t count) const {
  std::atomic<bool> finite{true};
  over_pieces(count, threads_, [&](Range range) {
    if (!kernels::active().all_finite(values + range.begin, range.count())) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

void HostKernels::copy(float *out, const float *values, int64_t count) const {
  over_pieces(count, threads_, [&](Range range) {
    std::memcpy(out + range.begin, values + range.begin, static_cast<size_t>(range.count()) * sizeof(float));
  });
}

bool HostKernels::copy_finite(float *out, const float *values, int64_t count) const {
  constexpr int64_t kBlock = 16 * 1024;  // 64 KiB: what was copied is still in the second-level cache when it is looked at
  std::atomic<bool> finite{true};
  over_pieces(count, threads_, [&](Range range) {
    bool all = true;
    for (int64_t at = range.begin; at < range.end; at += kBlock) {
      const int64_t block = std::min(kBlock, range.end - at);
      std::memcpy(out + at, values + at, static_cast<size_t>(block) * sizeof(float));
      all &= kernels::active().all_finite(out + at, block);
    }
    if (!all) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

void HostKernels::scale(float *out, const float *values, int64_t count, float factor) const {
  over_pieces(count, threads_,
              [&](Range range) { kernels::active().scale(out + range.begin, values + range.begin, range.count(), factor); });
}

void HostKernels::add_squares(const float *values, int64_t count, kernels::ExactSum &sum) const {
  const int64_t pieces = piece_count(count, std::min<int64_t>(threads_, 16));
  const DefaultFloats floats;
  std::array<kernels::ExactSum, 16> sums{};
  parallel_pieces(pieces, [&](int64_t index) {
    const Range range = piece_of(count, index, pieces);
    kernels::active().add_squares(values + range.begin, range.count(), sums[static_cast<size_t>(index)]);
  });
  for (int64_t index = 0; index < pieces; ++index) sum.merge(sums[static_cast<size_t>(index)]);
}

}  // namespace zero
