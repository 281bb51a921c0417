/// @file The gather of a tensor that is sharded over the ranks of a block. Knows where pieces lie;
/// never what they mean.
#pragma once

#include "core/task.h"
#include "engine/layout/plan.h"
#include "engine/storage/tensor_slots.h"
#include "group/group.h"

#include <cstddef>
#include <cstdint>

namespace zero {

/// Gathers a sharded parameter, or its scales, into `whole`. A collective over the ranks of a
/// block, which hold the cuts of all blocks between them; each block that has a part of the tensor
/// takes one all-gather.
Task gather_tensor(Group &block, const Plan &plan, const TensorSlots &tensors, const Slot &slot, int64_t id, std::byte *whole);

}  // namespace zero
