/// @file NCCL modules that libzero must refuse, one per value of BAD: another build; an NCCL that first tells no version, and then an old
/// one.
#include "group/module/zero_nccl_module.h"

#include <stdio.h>

#define BAD_BUILD 1
#define BAD_VERSION 2

static int32_t version(int64_t *out) {
  static int asked;
  *out = 21801;
  return asked++ == 0 ? 3 : 0;
}

static void error_text(int32_t error, char *out, int64_t out_nbytes) {
  snprintf(out, (size_t)out_nbytes, "error %d on demand", (int)error);
}

__attribute__((visibility("default"))) const zero_nccl_table *zero_nccl_module(void);
const zero_nccl_table *zero_nccl_module(void) {
  static zero_nccl_table table;
  table.struct_size = sizeof table;
  table.build = BAD == BAD_BUILD ? "libzero 0.0.0" : ZERO_NCCL_BUILD;
  table.version = version;
  table.error_text = error_text;
  return &table;
}
