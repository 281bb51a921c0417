/// @file Rounding masters to parameters, which are then gathered.
#include "engine/parameters/master_gather.h"

#include "core/default_floats.h"
#include "kernels/convert.h"

namespace zero {

/// This rank's cut of W <- M.
void MasterGather::follow_masters(int64_t index) const {
  const DefaultFloats floats;
  const SlotMemory &slots = tensors_.memory();
  const Range own = layout_.plan().bucket(index).own;
  if (own.empty()) return;
  const SlotPlace &place = slots.place(slots.param(), index);
  const std::byte *masters = slots.place(*slots.find(ZERO_SLOT_MASTER), index).at(own.begin);
  kernels::narrow(kernels::active(), place.at(own.begin), place.dtype, reinterpret_cast<const float *>(masters), own.count());
}

Task MasterGather::bucket(Group &group, int64_t index) {
  follow_masters(index);
  co_return co_await values_.bucket(group, index);
}

}  // namespace zero
