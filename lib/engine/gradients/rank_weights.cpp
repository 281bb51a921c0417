/// @file Exchanging weights.
#include "engine/gradients/rank_weights.h"

#include "core/default_floats.h"
#include "group/collectives.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <bit>
#include <span>

namespace zero {

Task RankWeights::exchange(Group &group, Group *across, double weight) {
  bits_.resize(static_cast<size_t>(group.size()));
  const auto bits = std::bit_cast<int64_t>(weight);
  group.set_caller(Caller::gradients);
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.dtype = static_cast<int32_t>(DType::f64);
  fingerprint.count = 1;
  ZERO_CO_AWAIT(all_gather_words(group, fingerprint, {&bits, 1}, bits_));
  std::span<const int64_t> all = bits_;
  if (across != nullptr) {
    Cuts cuts;
    for (int64_t replica = 0; replica < across->size(); ++replica) cuts.push_back({replica * group.size(), (replica + 1) * group.size()});
    all_bits_.resize(static_cast<size_t>(cuts.back().end));
    const Status status = co_await all_gather(*across, bits_.data(), all_bits_.data(), cuts, DType::i64);
    if (!status.ok()) group.fail(status);
    ZERO_CO_TRY(status);
    all = all_bits_;
  }
  const DefaultFloats floats;
  weights_.clear();
  for (const int64_t bits_of_one : bits_) weights_.push_back(static_cast<float>(std::bit_cast<double>(bits_of_one)));
  for (const int64_t bits_of_one : all) sum_ += std::bit_cast<double>(bits_of_one);
  weighs_ = std::any_of(weights_.begin(), weights_.end(), [](float other) { return other != 1; });
  // All contributions are zero when the sum is: the step then ends with an error on every rank.
  divisor_ = sum_ > 0 ? static_cast<double>(static_cast<float>(sum_)) : 1.0;
  co_return Status();
}

}  // namespace zero
