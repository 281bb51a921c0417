/// @file The table of element types in files.
#include "checkpoint/disk_type.h"

#include <array>

namespace zero::checkpoint {
namespace {

struct TypeRow {
  DiskType type;
  const char *name;
  int64_t nbytes;
  std::optional<DType> dtype;
};

constexpr std::array<TypeRow, 16> kTypes = {{
    {DiskType::boolean, "BOOL", 1, {}},
    {DiskType::u8, "U8", 1, DType::u8},
    {DiskType::i8, "I8", 1, {}},
    {DiskType::f8_e5m2, "F8_E5M2", 1, {}},
    {DiskType::f8_e4m3, "F8_E4M3", 1, DType::f8e4m3},
    {DiskType::i16, "I16", 2, {}},
    {DiskType::u16, "U16", 2, DType::u16},
    {DiskType::f16, "F16", 2, DType::f16},
    {DiskType::bf16, "BF16", 2, DType::bf16},
    {DiskType::i32, "I32", 4, DType::i32},
    {DiskType::u32, "U32", 4, {}},
    {DiskType::f32, "F32", 4, DType::f32},
    {DiskType::c64, "C64", 8, {}},
    {DiskType::f64, "F64", 8, DType::f64},
    {DiskType::i64, "I64", 8, DType::i64},
    {DiskType::u64, "U64", 8, {}},
}};

const TypeRow &row_of(DiskType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

const char *disk_type_name(DiskType type) { return row_of(type).name; }
int64_t disk_type_nbytes(DiskType type) { return row_of(type).nbytes; }
std::optional<DType> dtype_of(DiskType type) { return row_of(type).dtype; }

std::optional<DiskType> disk_type_of_name(std::string_view name) {
  for (const TypeRow &row : kTypes) {
    if (name == row.name) return row.type;
  }
  return std::nullopt;
}

DiskType disk_type_of(DType dtype) {
  for (const TypeRow &row : kTypes) {
    if (row.dtype == dtype) return row.type;
  }
  return DiskType::u8;  // f8_ue5m3
}

}  // namespace zero::checkpoint
