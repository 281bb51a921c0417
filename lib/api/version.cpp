/// @file zero/zero.h: versions and features of the loaded library.
#include "core/status.h"
#include "group/mpi/mpi_module.h"
#include "group/nccl/nccl_module.h"
#include "memory/cuda_module.h"

#include <zero/zero.h>

#define ZERO_TEXT_(x) #x
#define ZERO_TEXT(x) ZERO_TEXT_(x)

using namespace zero;

int64_t zero_abi_version(void) { return int64_t{ZERO_ABI_MAJOR} * 65536 + ZERO_ABI_MINOR; }

const char *zero_version(void) { return ZERO_TEXT(ZERO_VERSION_MAJOR) "." ZERO_TEXT(ZERO_VERSION_MINOR) "." ZERO_TEXT(ZERO_VERSION_PATCH); }

namespace {

bool has_mpi() {
  const zero_mpi_table *table = nullptr;
  return load_mpi_module({}, &table).ok();
}

bool has_device() {
  const zero_cuda_table *table = nullptr;
  int64_t count = 0;
  return load_cuda_module({}, &table).ok() && table->device_count(&count) == 0;
}

bool has_nccl() {
  const zero_nccl_table *table = nullptr;
  return load_nccl_module({}, &table).ok();
}

}  // namespace

int64_t zero_has_feature(int32_t feature) {
  // A missing module is an answer here, not an error: the caller's last error is kept.
  try {
    if (feature == ZERO_FEATURE_MPI) return has_mpi() ? 1 : 0;
    if (feature == ZERO_FEATURE_CUDA) return has_device() ? 1 : 0;
    if (feature == ZERO_FEATURE_NCCL) return has_nccl() ? 1 : 0;
    return feature == ZERO_FEATURE_LOCAL ? 1 : 0;
  } catch (...) {
    return 0;
  }
}
