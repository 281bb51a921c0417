/// @file The properties of the NCCL module, and the checks that its NCCL is new enough and does not
/// block.
#include "group/nccl/nccl_module.h"

#include "core/log.h"
#include "core/module.h"

#include <cstdlib>

namespace zero {
namespace {

/// Not RTLD_GLOBAL: NCCL's plugins need no symbols of libnccl, and a program may bring a framework
/// with its own NCCL.
constexpr ModuleKind kNccl = {
    .noun = "NCCL module",
    .file_name = "libzero_nccl.so",
    .variable = "ZERO_NCCL_MODULE",
    .symbol = ZERO_NCCL_MODULE_SYMBOL,
    .build = ZERO_NCCL_BUILD,
    .table_nbytes = sizeof(zero_nccl_table),
    .flags = 0,
    .help =
        "install NCCL 2.28 or newer (libnccl.so.2) and build libzero with ZERO_NCCL=ON, or name the module's file "
        "with the key ZERO_KEY_NCCL_MODULE or the variable ZERO_NCCL_MODULE"};

/// The variable overrides the configuration of communicators.
Status check_environment() {
  const char *blocking = std::getenv("NCCL_COMM_BLOCKING");
  ZERO_CHECK(blocking == nullptr || std::strtoll(blocking, nullptr, 0) != 1, ZERO_E_MODULE,
             "NCCL_COMM_BLOCKING is %s, which makes calls of NCCL wait without a limit, so that no deadline holds; unset it", blocking);
  return {};
}

/// The loaded NCCL may differ from the one that the module was compiled with: the process may have
/// loaded another before.
Status check_version(const zero_nccl_table *table, const std::string &path, std::string *out_text) {
  int64_t version = 0;
  char reason[256] = "";
  const int32_t error = table->version(&version);
  if (error != 0) table->error_text(error, reason, sizeof reason);
  ZERO_CHECK(error == 0, ZERO_E_MODULE, "the NCCL of the module %s does not tell its version: %s", path.c_str(), reason);
  *out_text = nccl_version_text(version);
  ZERO_CHECK(version >= ZERO_NCCL_OLDEST, ZERO_E_MODULE,
             "the NCCL of the module %s is %s, libzero needs %s or newer; install one, or have no older libnccl.so.2 loaded before it",
             path.c_str(), out_text->c_str(), nccl_version_text(ZERO_NCCL_OLDEST).c_str());
  return {};
}

}  // namespace

std::string describe_nccl() {
  const zero_nccl_table *table = nullptr;
  if (const Status status = load_nccl_module({}, &table); !status.ok()) return std::string("not loaded: ") + status.text();
  int64_t version = 0;
  const int32_t error = table->version(&version);
  return std::string(table->build) + ", NCCL " + (error == 0 ? nccl_version_text(version) : "of an unknown version");
}

std::string nccl_version_text(int64_t version) {
  const int64_t major = version < 10000 ? 1000 : 10000;
  return std::to_string(version / major) + "." + std::to_string(version % major / 100) + "." + std::to_string(version % 100);
}

Status load_nccl_module(const std::string &path, const zero_nccl_table **out) {
  // Never destroyed: the library leaves nothing to run at exit.
  static auto *module = new Module(kNccl);
  const zero_nccl_table *nccl = nullptr;
  bool loaded = false;
  ZERO_TRY(load_table(*module, path, &nccl, &loaded));
  ZERO_TRY(check_environment());
  std::string version;
  ZERO_TRY(check_version(nccl, module->path(), &version));
  *out = nccl;
  if (loaded) log_line("NCCL module %s loaded: NCCL %s", module->path().c_str(), version.c_str());
  return {};
}

}  // namespace zero
