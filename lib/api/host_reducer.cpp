/// @file The reducer over host kernels. Cuts fall on lines and every element is computed alone, so the bits do not depend on the threads.
#include "api/host_reducer.h"

#include "core/partition.h"
#include "core/thread_pool.h"
#include "kernels/kernels.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace zero::api {
namespace {

/// Below this many elements a piece costs less than waking a thread.
constexpr int64_t kSmallestPiece = 32768;
/// Sources of one piece are listed on the stack; reductions over more ranks than this run on one thread.
constexpr int64_t kMostSources = 256;

bool reduce_part(const Reduction &whole, Range part) {
  std::array<const void *, kMostSources> sources;
  const int64_t skip = part.begin * dtype_nbytes(whole.dtype);
  for (int64_t i = 0; i < whole.source_count; ++i) sources[static_cast<size_t>(i)] = static_cast<const std::byte *>(whole.sources[i]) + skip;
  Reduction reduction = whole;
  reduction.out = static_cast<std::byte *>(whole.out) + skip;
  reduction.sources = sources.data();
  reduction.count = part.count();
  return kernels::active().reduce(reduction);
}

class HostReducer final : public Reducer {
 public:
  explicit HostReducer(int64_t threads) : threads_(threads) {}

  bool reduce(const Reduction &reduction) const override {
    const int64_t pieces = std::min(threads_, reduction.count / kSmallestPiece);
    if (pieces <= 1 || reduction.source_count > kMostSources) return kernels::active().reduce(reduction);
    const int64_t lines = (reduction.count + kLine - 1) / kLine;
    std::atomic<bool> finite = true;
    parallel_pieces(pieces, [&](int64_t piece) {
      const Range share = even_share(lines, piece, pieces);
      const Range part = {share.begin * kLine, std::min(share.end * kLine, reduction.count)};
      if (!reduce_part(reduction, part)) finite.store(false, std::memory_order_relaxed);
    });
    return finite.load(std::memory_order_relaxed);
  }

 private:
  const int64_t threads_;
};

}  // namespace

ReducerFactory host_reducer_factory(const Config &config) {
  const int64_t wanted = config.i64(ZERO_KEY_THREADS);
  return [wanted](const Place &place) -> std::shared_ptr<const Reducer> {
    const int64_t share = std::max<int64_t>(1, usable_cores() / place.local_size);
    return std::make_shared<HostReducer>(wanted != 0 ? wanted : share);
  };
}

}  // namespace zero::api
