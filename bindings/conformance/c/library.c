/// @file library: scenarios that need no group.
#include <inttypes.h>
#include <zero/zero.h>

#include "check.h"
#include "scenarios.h"
#include "text.h"

static void version(struct text *text) { text_add(text, "%s", zero_version()); }

static void abi(struct text *text) { text_add(text, "%" PRId64, zero_abi_version()); }

static void status_names(struct text *text) {
  text_add_status(text, -300);
  text_add_status(text, 0);
  text_add_status(text, 1);
}

static void dtype_sizes(struct text *text) {
  const int32_t dtypes[] = {ZERO_DTYPE_F32, ZERO_DTYPE_F64, ZERO_DTYPE_F16, ZERO_DTYPE_BF16, ZERO_DTYPE_I32, ZERO_DTYPE_I64, ZERO_DTYPE_U8};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    int64_t nbytes;
    must(zero_dtype_nbytes(dtypes[i], &nbytes));
    text_add(text, "%" PRId64, nbytes);
  }
}

static void dtype_unknown(struct text *text) {
  int64_t nbytes;
  text_add_error(text, zero_dtype_nbytes(99, &nbytes));
}

static void feature_local(struct text *text) { text_add(text, "%" PRId64, zero_has_feature(ZERO_FEATURE_LOCAL)); }

static void launcher(struct text *text) {
  char name[64];
  must(zero_group_launcher(name, sizeof name, NULL));
  text_add(text, "%s", name);
}

static void bounds_stage(struct text *text) {
  zero_key_bounds bounds;
  must(zero_key_bounds_init(&bounds, sizeof bounds));
  must(zero_config_bounds(ZERO_KEY_STAGE, &bounds));
  text_add(text, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, bounds.type, bounds.min_i64, bounds.max_i64, bounds.default_i64);
}

static void bounds_lr(struct text *text) {
  zero_key_bounds bounds;
  must(zero_key_bounds_init(&bounds, sizeof bounds));
  must(zero_config_bounds(ZERO_KEY_LR, &bounds));
  text_add(text, "%" PRId64, bounds.type);
  text_add_double(text, bounds.min_f64);
  text_add_double(text, bounds.max_f64);
  text_add_double(text, bounds.default_f64);
}

static void bounds_unknown(struct text *text) {
  zero_key_bounds bounds;
  must(zero_key_bounds_init(&bounds, sizeof bounds));
  text_add_error(text, zero_config_bounds(99999, &bounds));
}

static void config_unknown_key(struct text *text) {
  zero_config *config;
  must(zero_config_create(&config));
  text_add_error(text, zero_config_set_i64(config, 99999, 1));
  zero_config_release(config);
}

static void config_wrong_type(struct text *text) {
  zero_config *config;
  must(zero_config_create(&config));
  text_add_error(text, zero_config_set_f64(config, ZERO_KEY_STAGE, 1));
  zero_config_release(config);
}

static void config_out_of_bounds(struct text *text) {
  zero_config *config;
  must(zero_config_create(&config));
  text_add_error(text, zero_config_set_i64(config, ZERO_KEY_STAGE, 4));
  zero_config_release(config);
}

static void config_string(struct text *text) {
  zero_config *config;
  must(zero_config_create(&config));
  text_add_error(text, zero_config_set_str(config, ZERO_KEY_ALGORITHM, "adamw"));
  zero_config_release(config);
}

static const struct {
  const char *name;
  void (*body)(struct text *text);
} scenarios[] = {
    {"version", version},
    {"abi", abi},
    {"status-names", status_names},
    {"dtype-sizes", dtype_sizes},
    {"dtype-unknown", dtype_unknown},
    {"feature-local", feature_local},
    {"launcher", launcher},
    {"bounds-stage", bounds_stage},
    {"bounds-lr", bounds_lr},
    {"bounds-unknown", bounds_unknown},
    {"config-unknown-key", config_unknown_key},
    {"config-wrong-type", config_wrong_type},
    {"config-out-of-bounds", config_out_of_bounds},
    {"config-string", config_string},
};

void library_scenarios(void) {
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
    struct text text = {0};
    scenarios[i].body(&text);
    text_print(scenarios[i].name, &text);
  }
}
