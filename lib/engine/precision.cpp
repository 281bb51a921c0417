/// @file Reading and checking precisions.
#include "engine/precision.h"

namespace zero {
namespace {

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

Status check_moment(const char *key, DType dtype, DType eight_bits) {
  ZERO_CHECK(dtype == DType::f32 || dtype == DType::bf16 || dtype == eight_bits, ZERO_E_UNSUPPORTED,
             "%s is %d, but must be f32 (%d), bf16 (%d) or %s (%d)", key, static_cast<int>(dtype), ZERO_DTYPE_F32, ZERO_DTYPE_BF16,
             dtype_name(eight_bits), static_cast<int>(eight_bits));
  return {};
}

void read_dtype(const Config &config, int32_t key, DType *out) {
  if (config.is_set(key)) *out = static_cast<DType>(config.i64(key));
}

}  // namespace

Status read_precision(const Config &config, Precision *out) {
  if (config.is_set(ZERO_KEY_PARAM_DTYPE)) out->param = config.i64(ZERO_KEY_PARAM_DTYPE);
  if (config.is_set(ZERO_KEY_GRAD_DTYPE)) out->grad = config.i64(ZERO_KEY_GRAD_DTYPE);
  if (config.is_set(ZERO_KEY_MASTER)) out->master = static_cast<Master>(config.i64(ZERO_KEY_MASTER));
  read_dtype(config, ZERO_KEY_FIRST_MOMENT_DTYPE, &out->first_moment);
  read_dtype(config, ZERO_KEY_SECOND_MOMENT_DTYPE, &out->second_moment);
  ZERO_CHECK(out->param == 0 || out->param == ZERO_DTYPE_F8_E4M3, ZERO_E_UNSUPPORTED,
             "ZERO_KEY_PARAM_DTYPE is %lld, but must be 0 (that of the parameter) or f8_e4m3 (%d)", lld(out->param), ZERO_DTYPE_F8_E4M3);
  ZERO_CHECK(out->grad == 0 || is_float(static_cast<DType>(out->grad)), ZERO_E_UNSUPPORTED,
             "ZERO_KEY_GRAD_DTYPE is %lld, but must be 0 (that of the parameter), f32, f16 or bf16", lld(out->grad));
  ZERO_TRY(check_moment("ZERO_KEY_FIRST_MOMENT_DTYPE", out->first_moment, DType::f8e4m3));
  return check_moment("ZERO_KEY_SECOND_MOMENT_DTYPE", out->second_moment, DType::f8ue5m3);
}

Status check_precision(const char *name, DType dtype, const Precision &precision) {
  ZERO_CHECK(is_float(dtype), ZERO_E_UNSUPPORTED, "%s: dtype is %s, but parameters are f32, f16 or bf16", name, dtype_name(dtype));
  ZERO_CHECK(precision.master != Master::remainder || dtype != DType::f16, ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_MASTER is ZERO_MASTER_REMAINDER, which completes bf16 parameters, but the parameter is f16", name);
  ZERO_CHECK(precision.param == 0 || precision.master == Master::f32, ZERO_E_UNSUPPORTED,
             "%s: ZERO_KEY_PARAM_DTYPE is f8_e4m3, which is made from an fp32 master, but ZERO_KEY_MASTER is %lld", name,
             lld(static_cast<int64_t>(precision.master)));
  return {};
}

}  // namespace zero
