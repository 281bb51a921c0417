/// @file Steps of ranks that reach each other's memory on devices, where threads agree on what the host knows, devices on the rest, and no
/// thread waits for a device. Three times the devices come into line: when all contributions are there, when all sums are looked at, and
/// when all parameters are written.
#include "engine/optimizer/optimizer.h"

#include <array>
#include <span>

namespace zero {

/// Steps and reduces of late gradients both begin here, so that one which meets the other is told.
Task Optimizer::meet_in_line() {
  fill_in_ballot(false);
  const std::span<const int64_t> words = ballot_.words(false);
  ZERO_CO_AWAIT(line_up_.run(words, ballot_.sums(words)));
  co_return check_same_call(ballot_.sum(Ballot::splits));
}

Task Optimizer::vote_on_devices() {
  ZERO_CO_TRY(tell_update_counts());
  ZERO_CO_AWAIT(meet_in_line());
  ZERO_CO_AWAIT(check_alike(false));
  if (ballot_.sum(Ballot::edited) > 0) ZERO_CO_AWAIT(compare_runs());
  ZERO_CO_AWAIT(agree_on_stop());
  sums_ = !settings_.grad_norm;
  skips_ = false;
  if (settings_.skips_nonfinite || settings_.grad_norm) {
    sum_contributions();
    ZERO_CO_AWAIT(line_up_.run());
  }
  run_.judge_on_device(verdict_rules(), false);
  co_return kernels_.status();
}

/// Runs go alike until a caller sets their scalars; then all ranks must have come to the same, and wait for their devices to know.
Task Optimizer::compare_runs() {
  ZERO_CO_TRY(run_.learn());
  fill_in_ballot(true);
  const std::span<const int64_t> words = ballot_.words(false);
  ZERO_CO_AWAIT(line_up_.run(words, ballot_.sums(words)));
  ZERO_CO_AWAIT(check_alike(true));
  ZERO_CO_AWAIT(compare_update_counts());
  run_.compared();
  co_return Status();
}

/// A norm needs the sums themselves; otherwise they are made by the update, and looked at before only where they might overflow.
void Optimizer::sum_contributions() const {
  if (sums_) device_kernels_->ask();
  const auto ranks = static_cast<size_t>(group_->size());
  const double divisor = settings_.divisor == ZERO_DIVISOR_RANKS ? static_cast<double>(ranks) : 1;
  std::array<const void *, kernels::cuda::kMostSources> sources;
  for (const int64_t index : plan_.order()) {
    const Range own = plan_.bucket(index).own;
    if (own.empty()) continue;
    const SlotPlace &place = slots_.place(slots_.grad(), index);
    std::byte *mine = place.at(own.begin);
    for (size_t rank = 0; rank < ranks; ++rank) sources[rank] = grad_views_.at(static_cast<int64_t>(rank), mine);
    const Reduction sum{mine, sources.data(), group_->size(), own.count(), place.dtype, ReduceOp::sum, divisor};
    if (sums_) {
      device_kernels_->look_at_sum(sum);
    } else {
      device_kernels_->sum(sum);
      device_kernels_->add_squares_of_sum(mine, place.dtype, own.count());
    }
  }
}

}  // namespace zero
