/// @file Element types and reduce operations: sizes and names.
#include "core/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace zero::dtype_test {
namespace {

TEST(DType, SizesAndNamesAreThoseOfTheHeaders) {
  struct Row {
    DType dtype;
    int64_t nbytes;
    const char *name;
  };
  const Row rows[] = {{DType::f32, 4, "f32"},        {DType::f64, 8, "f64"},         {DType::f16, 2, "f16"}, {DType::bf16, 2, "bf16"},
                      {DType::i32, 4, "i32"},        {DType::i64, 8, "i64"},         {DType::u8, 1, "u8"},   {DType::u16, 2, "u16"},
                      {DType::f8e4m3, 1, "f8_e4m3"}, {DType::f8ue5m3, 1, "f8_ue5m3"}};
  for (const Row &row : rows) {
    EXPECT_EQ(dtype_nbytes(row.dtype), row.nbytes) << row.name;
    EXPECT_STREQ(dtype_name(row.dtype), row.name);
  }
}

TEST(DType, NumbersThatAreNoDtypeHaveNoSize) {
  for (int32_t number = -300; number < 300; ++number) {
    const bool known =
        (number >= 1 && number <= 4) || number == 20 || number == 21 || number == 40 || number == 41 || number == 50 || number == 51;
    EXPECT_EQ(dtype_nbytes(static_cast<DType>(number)) != 0, known) << number;
    EXPECT_EQ(std::string(dtype_name(static_cast<DType>(number))) != "?", known) << number;
  }
}

TEST(ReduceOp, NamesAreThoseOfTheHeadersAndUnknownOnesHaveNone) {
  const char *const names[] = {nullptr, "sum", "avg", "min", "max", "prod", nullptr};
  for (int32_t number = 0; number < 7; ++number) EXPECT_STREQ(reduce_name(static_cast<ReduceOp>(number)), names[number]);
}

}  // namespace
}  // namespace zero::dtype_test
