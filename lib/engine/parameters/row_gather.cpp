/// @file RowGather: gathers the rows that their owners updated.
#include "engine/parameters/row_gather.h"

namespace zero {

Status RowGather::open(const MemorySource &source) {
  packets_.open(source);
  return {};
}

/// Copies of shards in stage 3 follow as values.
Task RowGather::bucket(Group &group, int64_t index) {
  const RowMarks updated = rows_.updated(index);
  const SlotPlace &place = tensors_.memory().place(tensors_.memory().param(), index);
  if (updated.empty() || !place.whole) co_return co_await values_.bucket(group, index);
  ZERO_CO_AWAIT(packets_.share(group, index, updated, place, static_cast<uint64_t>(index)));
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    if (rank != group.rank()) packets_.unpack(index, rank, place);
  }
  co_return Status();
}

}  // namespace zero
