/// @file CUDA module: the properties that identify it.
#include "memory/cuda_module.h"

#include "core/log.h"
#include "core/module.h"

namespace zero {
namespace {

constexpr ModuleKind kCuda = {.noun = "CUDA module",
                              .file_name = "libzero_cuda.so",
                              .variable = "ZERO_CUDA_MODULE",
                              .symbol = ZERO_CUDA_MODULE_SYMBOL,
                              .build = ZERO_CUDA_BUILD,
                              .table_nbytes = sizeof(zero_cuda_table),
                              .flags = 0,
                              .help =
                                  "build libzero with ZERO_CUDA=ON, which needs the CUDA Toolkit, or name its file with the key "
                                  "ZERO_KEY_CUDA_MODULE or the variable ZERO_CUDA_MODULE"};

}  // namespace

Status load_cuda_module(const std::string &path, const zero_cuda_table **out) {
  // Never destroyed: the library leaves nothing to run at exit.
  static auto *module = new Module(kCuda);
  bool loaded = false;
  ZERO_TRY(load_table(*module, path, out, &loaded));
  if (loaded) log_line("CUDA module %s loaded", module->path().c_str());
  return {};
}

}  // namespace zero
