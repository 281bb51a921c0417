/// @file Hashes: ranks compare data by XXH3 of 64 bits instead of sending it. Not safe against an
/// attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace zero {

uint64_t hash_of(const void *data, size_t nbytes, uint64_t seed = 0);

/// XXH3 of 128 bits.
struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128 &, const Hash128 &) = default;
};
Hash128 hash128_of(const void *data, size_t nbytes, uint64_t seed = 0);

inline uint64_t hash_of_text(std::string_view text, uint64_t seed = 0) { return hash_of(text.data(), text.size(), seed); }

/// A hash of data that is added part by part.
class Hash {
 public:
  Hash();
  void add(const void *data, size_t nbytes);
  /// The type must have no padding.
  template <class T>
  void add(const T &value) {
    static_assert(std::is_trivially_copyable_v<T>);
    add(&value, sizeof value);
  }
  uint64_t value() const;

 private:
  alignas(64) std::byte state_[576];  ///< the state of xxHash, whose header is not included here
};

}  // namespace zero
