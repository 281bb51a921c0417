/// @file The keys that ZERO_KEY_CODE_FREEZE needs, and those that it excludes.
#include "engine/config/code_freeze.h"

#include "core/number_text.h"

#include <string>

namespace zero {

/// A norm that is asked for without clipping is that of the gradients as they are decoded.
Status read_code_freeze(const Config &config, Settings *out) {
  ReplicaSettings &replicas = out->replicas;
  replicas.code_freeze = config.i64(ZERO_KEY_CODE_FREEZE) != 0;
  if (!replicas.code_freeze) return {};
  ZERO_CHECK(replicas.codes_grads(), ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_CODE_FREEZE is 1, but has no effect while ZERO_KEY_GRAD_CODE is ZERO_CODE_NONE: no step codes gradients; set it to "
             "ZERO_CODE_SIGN or another code, or leave out ZERO_KEY_CODE_FREEZE");
  constexpr const char *kClipping =
      "but a gradient is then known only as the difference of two first moments, whose coding error may be larger than itself, so that "
      "a bound on it has no meaning; set it to 0";
  const struct {
    bool works;
    int32_t key;
    std::string value;
    const char *reason;
  } kNeeds[] = {
      {replicas.low_rank == 0, ZERO_KEY_GRAD_CODE, "ZERO_CODE_LOW_RANK",
       "but only codes of lines carry the first moment; use ZERO_CODE_SIGN or another code"},
      {replicas.residual, ZERO_KEY_RESIDUAL, "ZERO_RESIDUAL_NONE",
       "but each first moment is then coded anew, and nothing makes good what codes lose of it; use ZERO_RESIDUAL_F32"},
      {replicas.code_after > 0, ZERO_KEY_CODE_AFTER, "0",
       "but the second moment that stays is that of the steps before codes begin; set it to at least 1"},
      {replicas.code_momentum == 0, ZERO_KEY_CODE_MOMENTUM, number_text(replicas.code_momentum),
       "but gradients carry one momentum only; set one of the two to 0"},
      {!replicas.part(), ZERO_KEY_SYNC_PERIOD, std::to_string(replicas.period),
       "but replicas that make steps of their own have different first moments; set it to 1"},
      {out->clipping.norm == 0, ZERO_KEY_CLIP_NORM, number_text(out->clipping.norm), kClipping},
      {out->clipping.value == 0, ZERO_KEY_CLIP_VALUE, number_text(out->clipping.value), kClipping},
  };
  for (const auto &need : kNeeds) {
    ZERO_CHECK(need.works, ZERO_E_UNSUPPORTED, "ZERO_KEY_CODE_FREEZE is 1 and %s is %s, %s", find_key(need.key)->name, need.value.c_str(),
               need.reason);
  }
  return {};
}

}  // namespace zero
