/// @file Element types and reduce operations inside the library. The numbers are those of the
/// public headers.
#pragma once

#include <zero/dtype.h>
#include <zero/group.h>

#include <cstdint>

namespace zero {

enum class DType : int32_t {
  f32 = ZERO_DTYPE_F32,
  f64 = ZERO_DTYPE_F64,
  f16 = ZERO_DTYPE_F16,
  bf16 = ZERO_DTYPE_BF16,
  i32 = ZERO_DTYPE_I32,
  i64 = ZERO_DTYPE_I64,
  u8 = ZERO_DTYPE_U8,
  u16 = ZERO_DTYPE_U16,
  f8e4m3 = ZERO_DTYPE_F8_E4M3,
  f8ue5m3 = ZERO_DTYPE_F8_UE5M3,
};

enum class ReduceOp : int32_t {
  sum = ZERO_REDUCE_SUM,
  avg = ZERO_REDUCE_AVG,
  min = ZERO_REDUCE_MIN,
  max = ZERO_REDUCE_MAX,
  prod = ZERO_REDUCE_PROD,
};

/// Bytes of one element; 0 for a number that is no dtype.
constexpr int64_t dtype_nbytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return 2;
    case DType::u8:
    case DType::f8e4m3:
    case DType::f8ue5m3:
      return 1;
  }
  return 0;
}

constexpr const char *dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
    case DType::u16:
      return "u16";
    case DType::f8e4m3:
      return "f8_e4m3";
    case DType::f8ue5m3:
      return "f8_ue5m3";
  }
  return "?";
}

/// nullptr for a number that is no reduce operation.
constexpr const char *reduce_name(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::avg:
      return "avg";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::prod:
      return "prod";
  }
  return nullptr;
}

}  // namespace zero
