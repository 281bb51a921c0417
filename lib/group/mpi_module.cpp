/// @file dlopen of libzero_mpi.so and the checks that make its table safe to call.
#include "group/mpi_module.h"

#include "core/log.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace zero {
namespace {

constexpr const char *kFileName = "libzero_mpi.so";

std::string real_path(const std::string &path) {
  char *resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

/// The file that holds an address; "" when unknown.
std::string file_of(const void *address) {
  Dl_info info{};
  return address != nullptr && ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::vector<std::string> candidates(const std::string &path) {
  if (!path.empty()) return {path};
  const char *variable = std::getenv("ZERO_MPI_MODULE");
  if (variable != nullptr && *variable != '\0') return {variable};
  std::vector<std::string> out;
  const std::string own = file_of(reinterpret_cast<const void *>(&load_mpi_module));
  if (const size_t slash = own.rfind('/'); slash != std::string::npos) out.push_back(own.substr(0, slash + 1) + kFileName);
  out.emplace_back(kFileName);
  return out;
}

/// The first candidate that loads.
Status open_first(const std::vector<std::string> &paths, void **out, std::string *out_path) {
  std::string reasons;
  for (const std::string &path : paths) {
    // Global: Open MPI's plugins are linked to nothing and look for libmpi's symbols in the global scope.
    *out = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (*out != nullptr) {
      *out_path = path;
      return {};
    }
    const char *reason = ::dlerror();
    reasons += (reasons.empty() ? "" : "; ") + path + ": " + (reason != nullptr ? reason : "unknown reason");
  }
  return Status::error(
      ZERO_E_MODULE,
      "the MPI module cannot be loaded (%s); build libzero with ZERO_MPI=ON or build the module alone with the site's mpicc, "
      "install the MPI it was built for (Open MPI: openmpi-bin, MPICH: mpich), or name its file with the key "
      "ZERO_KEY_MPI_MODULE or the variable ZERO_MPI_MODULE",
      reasons.c_str());
}

/// A program that brings another MPI than the module's would have the module call into the wrong one.
Status check_same_mpi(void *module, const std::string &path) {
  const std::string global = file_of(::dlsym(RTLD_DEFAULT, "MPI_Init_thread"));
  const std::string own = file_of(::dlsym(module, "MPI_Init_thread"));
  ZERO_CHECK(global.empty() || own.empty() || real_path(global) == real_path(own), ZERO_E_MODULE,
             "this process uses the MPI of %s, but the module %s was built for that of %s; build the module with the program's MPI",
             global.c_str(), path.c_str(), own.c_str());
  return {};
}

Status read_table(void *module, const std::string &path, const zero_mpi_table **out) {
  const auto entry = reinterpret_cast<zero_mpi_module_fn>(::dlsym(module, ZERO_MPI_MODULE_SYMBOL));
  ZERO_CHECK(entry != nullptr, ZERO_E_MODULE, "%s is not a libzero MPI module: it has no symbol %s", path.c_str(), ZERO_MPI_MODULE_SYMBOL);
  const zero_mpi_table *table = entry();
  ZERO_CHECK(table != nullptr && table->build != nullptr && std::strcmp(table->build, ZERO_MPI_BUILD) == 0, ZERO_E_MODULE,
             "the module %s is from another build: it says \"%s\", this library needs \"%s\"; build it again from this library's sources",
             path.c_str(), table != nullptr && table->build != nullptr ? table->build : "", ZERO_MPI_BUILD);
  ZERO_CHECK(table->struct_size == sizeof(zero_mpi_table), ZERO_E_MODULE, "the table of module %s has %llu bytes, this library's has %zu",
             path.c_str(), static_cast<unsigned long long>(table->struct_size), sizeof(zero_mpi_table));
  *out = table;
  return {};
}

Status load(const std::string &path, const zero_mpi_table **out, std::string *out_path) {
  void *module = nullptr;
  ZERO_TRY(open_first(candidates(path), &module, out_path));
  Status status = check_same_mpi(module, *out_path);
  if (status.ok()) status = read_table(module, *out_path, out);
  if (!status.ok()) return status;  // the handle stays open: what a library's start-up code did cannot be undone
  char library[256];
  (*out)->library_text(library, sizeof library);
  log_line("MPI module %s loaded: %s", out_path->c_str(), library);
  return {};
}

}  // namespace

Status load_mpi_module(const std::string &path, const zero_mpi_table **out) {
  static std::mutex mutex;
  static const zero_mpi_table *loaded = nullptr;
  static std::string loaded_path;
  const std::lock_guard lock(mutex);
  if (loaded == nullptr) ZERO_TRY(load(path, &loaded, &loaded_path));
  ZERO_CHECK(path.empty() || real_path(path) == real_path(loaded_path), ZERO_E_MODULE,
             "this process uses the MPI module %s already; a second one, %s, cannot be used beside it", loaded_path.c_str(), path.c_str());
  *out = loaded;
  return {};
}

}  // namespace zero
