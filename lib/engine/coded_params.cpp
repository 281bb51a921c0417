/// @file Parameters that are stored as 8-bit codes with a scale per line: made from masters or from values, decoded for the caller. Knows
/// where codes lie; never when they change.
#include "engine/optimizer.h"

#include <algorithm>

namespace zero {

bool Optimizer::codes_params() const {
  return std::any_of(formats_.begin(), formats_.end(), [](const Format &format) { return format.coded(); });
}

bool Optimizer::coded(int64_t id) const { return plan_.param(id).bucket >= 0 && format_of(id).coded(); }

kernels::Elements Optimizer::codes_at(int64_t id, int64_t offset) const {
  const PlannedParam &param = plan_.param(id);
  const int64_t index = param.flat.begin - plan_.bucket(param.bucket).flat.begin + offset;
  return {slots_.param_at(param.bucket, index), place_of(slots_.param(), id).dtype, slots_.param_scales_at(param.bucket, index)};
}

/// Codes of whole tensors of stage 3 lie here while they are decoded: gathers follow one another.
Status Optimizer::open_codes() {
  int64_t most = 0;
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (coded(id) && shards_param(id)) most = std::max(most, codes_nbytes(params_[id].count));
  }
  return Arena::create_private(memory_source(), ZERO_MEMORY_WORKSPACE, most, &gathered_codes_);
}

void Optimizer::encode_param(int64_t id, Range range, const void *values, DType dtype, bool may_skip) const {
  kernels_.encode(codes_at(id, range.begin), values, dtype, range.count(), may_skip);
}

/// Where an algorithm of the caller's own has updated the masters. Whether a step is skipped that a device judges is known there only.
void Optimizer::encode_masters() const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Range range = coded(id) && !params_[id].tied() && check_trains(id).ok() ? updated_range(id) : Range{};
    if (range.empty()) continue;
    encode_param(id, range, slot_at(*slots_.find(ZERO_SLOT_MASTER), id, range.begin), DType::f32, device_judges_);
  }
}

Task Optimizer::decode_param(int64_t id, std::byte *whole) {
  const int64_t count = params_[id].count;
  const DType dtype = place_of(slots_.param(), id).dtype;
  kernels::Elements codes;
  if (shards_param(id)) {
    const Slot &scales = *slots_.find(ZERO_SLOT_PARAM_SCALE);
    const Cuts cuts = entry_cuts(place_of(scales, id), plan_.param(id).cuts);
    codes = {gathered_codes_.data(), dtype, reinterpret_cast<float *>(gathered_codes_.data() + round_up(count, kLine))};
    ZERO_CO_AWAIT(
        all_gather(*gather_group_, own_cut(slots_.param(), id), codes.data, plan_.param(id).cuts, dtype, static_cast<uint64_t>(id)));
    ZERO_CO_AWAIT(all_gather(*gather_group_, own_cut(scales, id), codes.scales, cuts, DType::f32, static_cast<uint64_t>(id)));
  } else {
    codes = codes_at(id, 0);
  }
  kernels_.decode(whole, params_[id].dtype, codes, count);
  co_return Status();
}

}  // namespace zero
