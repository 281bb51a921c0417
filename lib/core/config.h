/// @file Config values: the table of keys (type, bounds, default) and a set of values. Each object
/// that reads a key decides its policy.
#pragma once

#include "core/choice.h"
#include "core/status.h"

#include <zero/config.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>

namespace zero {

enum class KeyType : int64_t { i64 = 1, f64 = 2, str = 3 };

/// One row of the key table.
struct KeyInfo {
  int32_t key;
  KeyType type;
  const char *name;  ///< as in the public header
  int64_t min_i64, max_i64, default_i64;
  double min_f64, max_f64, default_f64;
  /// For i64 keys: the only values, in rising order. Empty: all values within the bounds.
  std::span<const Choice> choices;
};

/// nullptr for an unknown key.
const KeyInfo *find_key(int32_t key);
std::span<const KeyInfo> all_keys();

/// Returns ZERO_OK if an f64 key accepts the value.
Status check_f64(int32_t key, double value);
/// Returns ZERO_OK if an i64 key accepts the value.
Status check_i64(int32_t key, int64_t value);
/// Returns the name of a value of a key with choices.
const char *choice_name(int32_t key, int64_t value);
/// "ZERO_KEY_STAGE = 2"
std::string setting_text(int32_t key, const std::string &value);

/// Memory hook of a config (zero_config_set_allocator).
struct AllocatorHook {
  zero_alloc_fn alloc = nullptr;
  zero_free_fn free = nullptr;
  zero_shared_fn shared = nullptr;
  void *user = nullptr;
};

class Config {
 public:
  Status set_i64(int32_t key, int64_t value);
  Status set_f64(int32_t key, double value);
  Status set_str(int32_t key, const char *value);

  /// The value, or the key's default. The key must exist with that type.
  int64_t i64(int32_t key) const;
  double f64(int32_t key) const;
  /// "" when unset.
  const std::string &str(int32_t key) const;

  bool is_set(int32_t key) const;
  bool empty() const { return i64_.empty() && f64_.empty() && str_.empty(); }

  AllocatorHook hook;

 private:
  std::map<int32_t, int64_t> i64_;
  std::map<int32_t, double> f64_;
  std::map<int32_t, std::string> str_;
};

}  // namespace zero
