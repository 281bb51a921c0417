/// @file Texts of models and manners, for the messages of failed tests.
#include "tests/engine/training.h"

#include <string>

namespace zero::test {

std::string Model::text() const {
  std::string text = algorithm + " momentum " + std::to_string(momentum) + " divisor " + std::to_string(divisor) + " weight unit " +
                     std::to_string(weight_unit) + " ranks " + std::to_string(ranks) + " seed " + std::to_string(seed) + " counts";
  for (const int64_t count : counts) text += " " + std::to_string(count);
  return text + "\n" + recipe.text();
}

std::string Recipe::text() const {
  std::string text =
      std::string("dtype ") + dtype_name(dtype) + " mixed " + std::to_string(mixed) + " grad " + std::to_string(grad) + " master " +
      std::to_string(master) + " coded " + std::to_string(coded) + " moments " + dtype_name(first_moment) + " " +
      dtype_name(second_moment) + " stochastic " + std::to_string(stochastic) + " clip " + std::to_string(clip_norm) + " " +
      std::to_string(clip_value) + " scale " + std::to_string(loss_scale) + " f32 sums " + std::to_string(accumulates_in_f32) +
      " average " + std::to_string(average) + " sets " + std::to_string(sets) + " frozen " + std::to_string(frozen_every) + " tied " +
      std::to_string(tied) + " untouched " + std::to_string(untouched) + " unfilled " + std::to_string(unfilled_every) + " by chance " +
      std::to_string(unfilled_seed) + " gather below " + std::to_string(gather_below) + " overflow " + std::to_string(overflow_step) +
      " replicas of " + std::to_string(replica_ranks) + " period " + std::to_string(sync_period) + " after " + std::to_string(sync_after) +
      " fragments " + std::to_string(sync_fragments) + " delay " + std::to_string(sync_delay) + " mix " + std::to_string(sync_mix) +
      " outer " + std::to_string(outer_lr) + " " + std::to_string(outer_momentum) + " ring " + std::to_string(ring) + " codes " +
      std::to_string(grad_code) + " " + std::to_string(sync_code) + " " + std::to_string(gather_code) + " residual " +
      std::to_string(residual) + " flush " + std::to_string(flush_period) + " micro-steps";
  for (const int32_t kind : micro_steps) text += " " + std::to_string(kind);
  return text;
}

std::string Manner::text() const {
  return "stage " + std::to_string(stage) + " bucket " + std::to_string(bucket_nbytes) + " overlap " + std::to_string(overlap) +
         " caller memory " + std::to_string(caller_memory) + " ranges " + std::to_string(by_ranges) + " threads " +
         std::to_string(threads) + " shard weights '" + shard_weights + "' ready seed " + std::to_string(ready_seed) + " order seed " +
         std::to_string(order_seed) + " source " + std::to_string(source) + " verify every " + std::to_string(verify_every) + " norm " +
         std::to_string(norm) + " one copy " + std::to_string(keeps_one_copy()) + " device " + std::to_string(remote != nullptr ? 1 : 0) +
         " kept there " + std::to_string(kept_there ? 1 : 0) + " splits " + std::to_string(splits ? 1 : 0) + " ranks of a replica " +
         std::to_string(replica_ranks) + " for parameters " + std::to_string(param_ranks);
}

}  // namespace zero::test
