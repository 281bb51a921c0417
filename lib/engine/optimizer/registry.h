/// @file Registry: the parameters, hyper-parameter sets and module buffers that a caller registers
/// before seal, with their options. Knows no memory and no ranks.
#pragma once

#include "core/config.h"
#include "engine/config/hyper_set.h"
#include "engine/config/settings.h"
#include "engine/layout/params.h"
#include "engine/storage/module_buffers.h"

#include <cstdint>
#include <vector>

namespace zero {

struct Registry {
  /// `given_settings` must outlive this object; `hyper` is set 0.
  Registry(const Settings &given_settings, const HyperSet &hyper) : settings(given_settings), sets{hyper} {}

  /// Returns ZERO_E_UNSUPPORTED if a key of single parameters is set for the whole optimizer.
  static Status check_keys_of_all(const Config &config);

  /// `config` may be nullptr.
  Status add_param(const Config *config, const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int64_t *out_id);
  Status add_set(const Config &config, int64_t *out_set);
  Status add_module_buffer(const char *name, int32_t dtype, const int64_t *shape, int64_t ndim, int32_t rule, int64_t *out_id);
  Status set_order(const int64_t *ids, int64_t count);
  /// *out: the parameters that own the memory of these; for a tied parameter, its holder.
  Status read_gather_order(const int64_t *ids, int64_t count, std::vector<int64_t> *out) const;
  Status check_set(int64_t set) const;
  Status check_range(int64_t id, int64_t offset, int64_t count) const;

  const Settings &settings;
  std::vector<HyperSet> sets;
  Params params;
  ModuleBuffers module_buffers;

 private:
  Status read_options(const Config &config, const char *name, ParamOptions *out) const;
};

}  // namespace zero
