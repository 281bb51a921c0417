/// @file The exchange with neighbours, piece by piece, and the mean of what arrived.
#include "engine/replicas/neighbour_mean.h"

#include "core/default_floats.h"
#include "core/reduction.h"

#include <algorithm>
#include <array>

namespace zero {
namespace {

/// Elements that are worked on at once: 1 MiB from each neighbour.
constexpr int64_t kPieceElements = int64_t{1} << 18;

int64_t piece_nbytes(int64_t count) { return Arena::view_nbytes(std::min(count, kPieceElements) * static_cast<int64_t>(sizeof(float))); }

}  // namespace

int64_t NeighbourMean::nbytes(int64_t count, int64_t ranks) { return neighbours(ranks) * piece_nbytes(count); }

Status NeighbourMean::open(int64_t count, const Group &group, const MemorySource &source) {
  const int64_t ranks = group.size();
  ring_ = {group.rank(), (group.rank() + 1) % ranks};
  if (neighbours(ranks) == 2) ring_.push_back((group.rank() + ranks - 1) % ranks);
  std::sort(ring_.begin(), ring_.end());
  offers_.assign(static_cast<size_t>(ranks), {});
  receives_.assign(static_cast<size_t>(ranks), {});
  if (count == 0) return {};
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, nbytes(count, ranks), &memory_));
  for (const int64_t rank : ring_) {
    if (rank != group.rank()) receives_[static_cast<size_t>(rank)].data = memory_.take(piece_nbytes(count));
  }
  return {};
}

void NeighbourMean::close() {
  memory_.release();
  ring_.clear();
}

Task NeighbourMean::run(Group &group, float *values, int64_t count) {
  for (int64_t begin = 0; begin < count; begin += kPieceElements) {
    ZERO_CO_AWAIT(run_piece(group, values + begin, std::min(count - begin, kPieceElements)));
  }
  co_return Status();
}

Task NeighbourMean::run_piece(Group &group, float *values, int64_t count) {
  const int64_t nbytes = count * static_cast<int64_t>(sizeof(float));
  std::array<const void *, 3> sources{};
  size_t found = 0;
  for (const int64_t rank : ring_) {
    const auto peer = static_cast<size_t>(rank);
    sources[found++] = rank == group.rank() ? values : receives_[peer].data;
    if (rank == group.rank()) continue;
    offers_[peer] = {values, nbytes};
    receives_[peer].nbytes = nbytes;
  }
  ZERO_CO_AWAIT(exchange(group, offers_, receives_));
  const int64_t sent = std::ssize(ring_) - 1;
  group.count_direct(OperationKind::send, sent * count, sent * nbytes);
  const DefaultFloats floats;
  const auto divisor = static_cast<double>(ring_.size());
  (void)group.reducer()->reduce({values, sources.data(), std::ssize(ring_), count, DType::f32, ReduceOp::sum, divisor});
  co_return Status();
}

}  // namespace zero
