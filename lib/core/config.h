/// @file Config values: the table of keys (type, bounds, default) and a set of values. Policy of each key lies with the object that reads
/// it.
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
  std::span<const Choice> choices;  ///< i64 keys: the only values, in rising order; empty: all within the bounds
};

/// nullptr for an unknown key.
const KeyInfo *find_key(int32_t key);
std::span<const KeyInfo> all_keys();

/// ZERO_OK when the value may be given to an f64 key.
Status check_f64(int32_t key, double value);
/// ZERO_OK when the value may be given to an i64 key.
Status check_i64(int32_t key, int64_t value);
/// The name of a value that a key with choices takes.
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
