/// @file Gathers and decodes 8-bit parameters, and encodes them from masters.
#include "engine/parameters/quantized_params.h"

#include "engine/parameters/tensor_gather.h"

#include <algorithm>

namespace zero {

Status QuantizedParams::open(const MemorySource &source) {
  int64_t most = 0;
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (tensors_.coded(id) && tensors_.sharded(id)) most = std::max(most, codes_nbytes(params_[id].count));
  }
  return Arena::create_private(source, ZERO_MEMORY_WORKSPACE, most, &gathered_);
}

void QuantizedParams::agree(int64_t id, Range range, Lead lead) const {
  std::byte *masters = tensors_.at(*tensors_.memory().find(ZERO_SLOT_MASTER), id, range.begin);
  kernels_.agree(reinterpret_cast<float *>(masters), tensors_.codes_at(id, range.begin), range.count(), lead);
}

void QuantizedParams::encode_masters(bool may_skip) const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Range range = tensors_.coded(id) && layout_.format_of(id).trains ? tensors_.updated(id) : Range{};
    if (range.empty()) continue;
    encode(id, range, tensors_.at(*tensors_.memory().find(ZERO_SLOT_MASTER), id, range.begin), DType::f32, may_skip);
  }
}

Task QuantizedParams::decode(Group &group, int64_t id, std::byte *whole) {
  const Slot &stored = tensors_.memory().param();
  const int64_t count = params_[id].count;
  const DType dtype = tensors_.place(stored, id).dtype;
  kernels::Elements codes;
  if (tensors_.sharded(id)) {
    const Slot &scales = *tensors_.memory().find(ZERO_SLOT_PARAM_SCALE);
    std::byte *lines = gathered_.data() + round_up(count, kLine);
    codes = {gathered_.data(), dtype, reinterpret_cast<float *>(lines)};
    ZERO_CO_AWAIT(gather_tensor(group, layout_.plan(), tensors_, stored, id, gathered_.data()));
    ZERO_CO_AWAIT(gather_tensor(group, layout_.plan(), tensors_, scales, id, lines));
  } else {
    codes = tensors_.codes_at(id, 0);
  }
  kernels_.decode(whole, params_[id].dtype, codes, count);
  co_return Status();
}

}  // namespace zero
