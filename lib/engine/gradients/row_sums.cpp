/// @file RowSums: each rank sends every owner the rows that it was given of the owner's cut; the
/// owner sums them in the fixed tree, with zeros for ranks that lack a row. The form is that of
/// Renggli et al., "SparCML", 2019.
#include "engine/gradients/row_sums.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace zero {
namespace {

/// The number by which calls are compared: sums and gathers of one bucket must match neither each
/// other nor those of another bucket.
uint64_t number_of(int64_t bucket, uint64_t what) { return 4 * static_cast<uint64_t>(bucket) + what; }
constexpr uint64_t kGathers = 2;

}  // namespace

Status RowSums::open(const MemorySource &source) {
  packets_.open(source);
  return {};
}

Task RowSums::sum(Group &group, int64_t bucket, Contribution given, ReduceScatter call) {
  call.whole = given.data;
  ZERO_CO_AWAIT(packets_.scatter(group, bucket, given.rows, given.data, dtype_nbytes(call.dtype), number_of(bucket, call.what)));
  if (!add_up(group, bucket, given.rows, call) && call.out_finite != nullptr) *call.out_finite = false;
  co_return Status();
}

/// False where a sum is not finite.
bool RowSums::add_up(const Group &group, int64_t bucket, RowMarks given, const ReduceScatter &call) {
  const Range own = plan_.bucket(bucket).own;
  const int64_t element = dtype_nbytes(call.dtype);
  const int64_t out_element = dtype_nbytes(result_dtype(call));
  std::vector<const std::byte *> sources(static_cast<size_t>(group.size()));
  std::vector<const void *> at(sources.size());
  const Range rows = packets_.rows_in(bucket, own);
  bool finite = true;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const Range part = packets_.part_of(bucket, row, own);
    bool any = false;
    for (size_t rank = 0; rank < sources.size(); ++rank) {
      sources[rank] = nullptr;
      if (static_cast<int64_t>(rank) == group.rank()) {
        if (given[static_cast<size_t>(row)] != 0) sources[rank] = static_cast<const std::byte *>(call.whole) + part.begin * element;
      } else {
        sources[rank] = packets_.take(static_cast<int64_t>(rank), row, part.count() * element);
      }
      any = any || sources[rank] != nullptr;
    }
    std::byte *to = static_cast<std::byte *>(call.out) + (part.begin - own.begin) * out_element;
    if (any) {
      finite &= add_row(group, part.count(), sources, at, call, to);
      rows_.of(bucket)[static_cast<size_t>(row)] = 1;
    } else {
      std::memset(to, 0, static_cast<size_t>(part.count() * out_element));
    }
  }
  return finite;
}

/// As many elements at a time as there are zeros. `at`: room for as many addresses as there are
/// sources.
bool RowSums::add_row(const Group &group, int64_t count, std::span<const std::byte *const> sources, std::span<const void *> at,
                      const ReduceScatter &call, std::byte *to) const {
  const int64_t element = dtype_nbytes(call.dtype);
  const int64_t out_element = dtype_nbytes(result_dtype(call));
  const int64_t step = kZerosNbytes / element;
  bool finite = true;
  for (int64_t begin = 0; begin < count; begin += step) {
    for (size_t rank = 0; rank < at.size(); ++rank) at[rank] = sources[rank] == nullptr ? kZeros.data() : sources[rank] + begin * element;
    finite &= group.reducer()->reduce({to + begin * out_element, at.data(), std::ssize(at), std::min(step, count - begin), call.dtype,
                                       call.op, call.divisor, call.out_dtype, 0, call.weights});
  }
  return finite;
}

/// A rank's cut becomes what its packet has, and zero elsewhere.
Task RowSums::gather(Group &group, int64_t bucket, const SlotPlace &place) {
  ZERO_CO_AWAIT(packets_.share(group, bucket, rows_.of(bucket), place, number_of(bucket, kGathers)));
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank()) continue;
    const Range cut = plan_.bucket_cut(bucket, rank);
    if (!cut.empty()) std::memset(place.at(cut.begin), 0, static_cast<size_t>(cut.count() * dtype_nbytes(place.dtype)));
    packets_.unpack(bucket, rank, place, rows_.of(bucket));
  }
  co_return Status();
}

}  // namespace zero
