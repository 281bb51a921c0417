/// @file DiskType: element types of safetensors files. Some of them have a dtype of the library.
#pragma once

#include "core/dtype.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace zero::checkpoint {

enum class DiskType : uint8_t { boolean, u8, i8, f8_e5m2, f8_e4m3, i16, u16, f16, bf16, i32, u32, f32, c64, f64, i64, u64 };

/// "F32", ...
const char *disk_type_name(DiskType type);
std::optional<DiskType> disk_type_of_name(std::string_view name);
int64_t disk_type_nbytes(DiskType type);

/// UE5M3 has no type in files and is stored as U8.
DiskType disk_type_of(DType dtype);
std::optional<DType> dtype_of(DiskType type);

}  // namespace zero::checkpoint
