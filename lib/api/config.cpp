/// @file zero/config.h.
#include "core/config.h"

#include "api/checks.h"
#include "api/nouns.h"
#include "api/structs.h"

namespace zero::api {

Status find_config(const zero_config *handle, std::shared_ptr<Config> *out) {
  if (handle != nullptr) return find(handle, "config", out);
  *out = std::make_shared<Config>();
  return {};
}

}  // namespace zero::api

using namespace zero;

int32_t zero_config_create(zero_config **out) {
  return api::guarded([&]() -> Status {
    ZERO_TRY(api::check_pointer(out, "out"));
    *out = api::make_handle<zero_config>(std::make_shared<Config>());
    return {};
  });
}

int32_t zero_config_set_i64(zero_config *config, int32_t key, int64_t value) {
  return api::call(config, "config", [&](Config &object) -> Status { return object.set_i64(key, value); });
}

int32_t zero_config_set_f64(zero_config *config, int32_t key, double value) {
  return api::call(config, "config", [&](Config &object) -> Status { return object.set_f64(key, value); });
}

int32_t zero_config_set_str(zero_config *config, int32_t key, const char *value) {
  return api::call(config, "config", [&](Config &object) -> Status { return object.set_str(key, value); });
}

int32_t zero_key_bounds_init(zero_key_bounds *out, uint64_t struct_size) {
  return api::guarded([&] { return api::init_struct(out, struct_size); });
}

int32_t zero_config_bounds(int32_t key, zero_key_bounds *out) {
  return api::guarded([&]() -> Status {
    ZERO_TRY(api::check_struct(out, "out"));
    const KeyInfo *info = find_key(key);
    ZERO_CHECK(info != nullptr, ZERO_E_UNSUPPORTED, "key %d is unknown to this version; keys are listed in zero/config.h", key);
    const zero_key_bounds bounds = {.struct_size = sizeof bounds,
                                    .type = static_cast<int64_t>(info->type),
                                    .min_i64 = info->min_i64,
                                    .max_i64 = info->max_i64,
                                    .default_i64 = info->default_i64,
                                    .min_f64 = info->min_f64,
                                    .max_f64 = info->max_f64,
                                    .default_f64 = info->default_f64};
    api::write_struct(bounds, out);
    return {};
  });
}

int32_t zero_config_set_allocator(zero_config *config, zero_alloc_fn alloc, zero_free_fn free_fn, zero_shared_fn shared, void *user) {
  return api::call(config, "config", [&](Config &object) -> Status {
    ZERO_CHECK((alloc == nullptr) == (free_fn == nullptr), ZERO_E_INVALID_ARGUMENT,
               "alloc is %s and free_fn is %s, but either both or neither must be given", alloc != nullptr ? "given" : "NULL",
               free_fn != nullptr ? "given" : "NULL");
    object.hook = {.alloc = alloc, .free = free_fn, .shared = shared, .user = user};
    return {};
  });
}

void zero_config_release(zero_config *config) { api::release(config, "config"); }
