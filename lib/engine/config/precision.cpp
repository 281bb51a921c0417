/// @file Reads and checks precisions.
#include "engine/config/precision.h"

namespace zero {
namespace {

void read_dtype(const Config &config, int32_t key, DType *out) {
  if (config.is_set(key)) *out = static_cast<DType>(config.i64(key));
}

}  // namespace

void read_precision(const Config &config, Precision *out) {
  if (config.is_set(ZERO_KEY_PARAM_DTYPE)) out->param = config.i64(ZERO_KEY_PARAM_DTYPE);
  if (config.is_set(ZERO_KEY_GRAD_DTYPE)) out->grad = config.i64(ZERO_KEY_GRAD_DTYPE);
  if (config.is_set(ZERO_KEY_MASTER)) out->master = static_cast<Master>(config.i64(ZERO_KEY_MASTER));
  read_dtype(config, ZERO_KEY_FIRST_MOMENT_DTYPE, &out->first_moment);
  read_dtype(config, ZERO_KEY_SECOND_MOMENT_DTYPE, &out->second_moment);
}

Status check_precision(const char *name, DType dtype, const Precision &precision) {
  const auto number = static_cast<int32_t>(dtype);
  ZERO_CHECK(find_choice(kRegisteredDtypes, number) != nullptr, ZERO_E_UNSUPPORTED, "%s: dtype is %d (%s), but must be %s", name, number,
             dtype_name(dtype), choices_text(kRegisteredDtypes).c_str());
  ZERO_CHECK(precision.master != Master::remainder || dtype != DType::f16, ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_MASTER is ZERO_MASTER_REMAINDER, which completes bf16 parameters, but the parameter is f16", name);
  ZERO_CHECK(precision.param == 0 || precision.master == Master::f32, ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_PARAM_DTYPE is f8_e4m3, which is made from an fp32 master, but ZERO_KEY_MASTER is %s", name,
             choice_name(ZERO_KEY_MASTER, static_cast<int64_t>(precision.master)));
  return {};
}

}  // namespace zero
