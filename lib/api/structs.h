/// @file Result structs: public structs that grow at their end. The caller's struct_size limits the
/// bytes to write. Knows no object.
#pragma once

#include "core/status.h"

#include <zero/checkpoint.h>
#include <zero/config.h>
#include <zero/optimizer.h>
#include <zero/server.h>
#include <zero/stats.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace zero::api {

/// The size of a struct in the version in which it first shipped; no caller has a smaller one.
/// These numbers never change.
template <class Struct>
inline constexpr uint64_t kFirstNbytes = 0;
template <>
inline constexpr uint64_t kFirstNbytes<zero_key_bounds> = 64;
template <>
inline constexpr uint64_t kFirstNbytes<zero_step_result> = 48;
template <>
inline constexpr uint64_t kFirstNbytes<zero_verify_result> = 88;
template <>
inline constexpr uint64_t kFirstNbytes<zero_checkpoint_result> = 96;
template <>
inline constexpr uint64_t kFirstNbytes<zero_server_result> = 128;
template <>
inline constexpr uint64_t kFirstNbytes<zero_memory_stats> = 40;
template <>
inline constexpr uint64_t kFirstNbytes<zero_traffic_stats> = 32;
template <>
inline constexpr uint64_t kFirstNbytes<zero_step_stats> = 64;

/// The upper limit of all versions of all structs; catches sizes that were never set.
inline constexpr uint64_t kLargestStructNbytes = 4096;

inline Status check_struct_nbytes(uint64_t nbytes, uint64_t first_nbytes) {
  ZERO_CHECK(nbytes >= first_nbytes && nbytes <= kLargestStructNbytes && nbytes % 8 == 0, ZERO_E_INVALID_ARGUMENT,
             "struct_size is %llu, but must be the sizeof of the struct: a multiple of 8 from %llu to %llu, which its init function sets",
             static_cast<unsigned long long>(nbytes), static_cast<unsigned long long>(first_nbytes),
             static_cast<unsigned long long>(kLargestStructNbytes));
  return {};
}

/// Checks a result struct that a caller offers.
template <class Struct>
Status check_struct(const Struct *out, const char *argument) {
  ZERO_CHECK(out != nullptr, ZERO_E_INVALID_ARGUMENT, "%s is NULL, but must be an address", argument);
  return check_struct_nbytes(out->struct_size, kFirstNbytes<Struct>);
}

/// Writes a result as far as the caller's struct reaches. Fields that only a newer caller knows
/// keep the values of its init function.
template <class Struct>
void write_struct(const Struct &value, Struct *out) {
  const uint64_t nbytes = std::min<uint64_t>(out->struct_size, sizeof(Struct));
  std::memcpy(reinterpret_cast<char *>(out) + sizeof(uint64_t), reinterpret_cast<const char *>(&value) + sizeof(uint64_t),
              nbytes - sizeof(uint64_t));
}

/// The body of the exported init functions: sets all bytes of the caller's struct, whatever its
/// size.
template <class Struct>
Status init_struct(Struct *out, uint64_t struct_size) {
  static_assert(offsetof(Struct, struct_size) == 0);
  ZERO_CHECK(out != nullptr, ZERO_E_INVALID_ARGUMENT, "out is NULL, but must be an address");
  ZERO_TRY(check_struct_nbytes(struct_size, kFirstNbytes<Struct>));
  std::memset(static_cast<void *>(out), 0, struct_size);
  out->struct_size = struct_size;
  return {};
}

}  // namespace zero::api
