/// @file Gathering a tensor block by block.
#include "engine/parameters/tensor_gather.h"

#include "group/collectives.h"

#include <algorithm>

namespace zero {

Task gather_tensor(Group &block, const Plan &plan, const TensorSlots &tensors, const Slot &slot, int64_t id, std::byte *whole) {
  const SlotPlace &place = tensors.place(slot, id);
  const HeldPieces pieces = tensors.held(slot, id);
  for (int64_t of = 0; of < plan.block_count(); ++of) {
    const Cuts cuts = TensorSlots::entry_cuts(place, plan.param_cuts(id, of));
    if (std::all_of(cuts.begin(), cuts.end(), [](Range cut) { return cut.empty(); })) continue;
    ZERO_CO_AWAIT(all_gather(block, pieces[static_cast<size_t>(of)].data, whole, cuts, place.dtype, static_cast<uint64_t>(id)));
  }
  co_return Status();
}

}  // namespace zero
