/// @file Reading the delay of gradients.
#include "engine/config/grad_delay.h"

namespace zero {
namespace {

Status check_algorithm(const Settings &settings) {
  ZERO_CHECK(settings.trains, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_GRAD_DELAY is 1, but has no effect with ZERO_KEY_ALGORITHM \"none\", which has no gradients; leave out "
             "ZERO_KEY_GRAD_DELAY");
  ZERO_CHECK(
      settings.algorithm != nullptr, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_ALGORITHM \"custom\", but the caller's own update would have to leave out steps that have "
      "nothing to apply; use another algorithm, or delay gradients in your update");
  return {};
}

/// The memory in which gradients wait for their update.
Status check_memory_of_grads(const Settings &settings) {
  ZERO_CHECK(settings.stage <= 1, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_STAGE %lld, but a rank holds whole gradients while they wait, which is the memory that "
             "this stage saves; use stage 0 or 1, or leave out ZERO_KEY_GRAD_DELAY",
             lld(settings.stage));
  ZERO_CHECK(
      !settings.gathers.one_copy, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_ONE_COPY 1, but one saves memory that the other spends on a second gradient per rank; set "
      "one of the two");
  ZERO_CHECK(
      !settings.on_device, ZERO_E_UNSUPPORTED,
      "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_TIER ZERO_TIER_DEVICE, but gradients wait in memory of the host only; use ZERO_TIER_HOST, "
      "or leave out ZERO_KEY_GRAD_DELAY");
  return {};
}

}  // namespace

Status read_grad_delay(const Config &config, Settings *out) {
  out->delays_grads = config.i64(ZERO_KEY_GRAD_DELAY) != 0;
  if (!out->delays_grads) return {};
  ZERO_TRY(check_algorithm(*out));
  ZERO_TRY(check_memory_of_grads(*out));
  ZERO_CHECK(!out->replicas.part(), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_SYNC_PERIOD %lld, but replicas that make steps of their own reduce gradients within "
             "themselves, where links are fast; leave out ZERO_KEY_GRAD_DELAY, or use ZERO_KEY_SYNC_DELAY to hide synchronisations",
             lld(out->replicas.period));
  ZERO_CHECK(!out->replicas.residual, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GRAD_DELAY is 1 and ZERO_KEY_RESIDUAL ZERO_RESIDUAL_F32, but reductions behind the caller's pass would change the "
             "residuals that a save reads; use ZERO_RESIDUAL_NONE with ZERO_CODE_I8 or ZERO_CODE_F8, or leave out ZERO_KEY_GRAD_DELAY");
  return {};
}

}  // namespace zero
