/// @file Loads modules by dlopen, and checks that their tables are safe to call.
#include "core/module.h"

#include "core/owned_fd.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace zero {
namespace {

std::vector<std::string> candidates(const ModuleKind &kind, const std::string &path) {
  if (!path.empty()) return {path};
  const char *variable = std::getenv(kind.variable);
  if (variable != nullptr && *variable != '\0') return {variable};
  std::vector<std::string> out;
  const std::string own = file_of(reinterpret_cast<const void *>(&real_path));
  if (const size_t slash = own.rfind('/'); slash != std::string::npos) out.push_back(own.substr(0, slash + 1) + kind.file_name);
  out.emplace_back(kind.file_name);
  return out;
}

/// True if the program was linked with -static, and so names no loader of shared libraries. dlopen
/// would load glibc's own loader, which crashes next to the C library inside the program.
bool program_is_static() {
  bool names_loader = false;
  const auto look = [](dl_phdr_info *program, size_t, void *out) {
    for (int i = 0; i < program->dlpi_phnum; i++) *static_cast<bool *>(out) |= program->dlpi_phdr[i].p_type == PT_INTERP;
    return 1;  // the first object is the program
  };
  ::dl_iterate_phdr(look, &names_loader);
  return !names_loader;
}

/// Opens the first candidate that loads.
Status open_first(const ModuleKind &kind, const std::vector<std::string> &paths, void **out, std::string *out_path) {
  ZERO_CHECK(!program_is_static(), ZERO_E_MODULE,
             "the %s cannot be loaded into a program that was linked with -static; link it with the shared C library (libzero.a may stay "
             "inside the program)",
             kind.noun);
  std::string reasons;
  // Covers the files that the module and its libraries open while they are loaded. Files opened
  // later are their own matter.
  const StandardFdsHeld held;
  for (const std::string &path : paths) {
    *out = ::dlopen(path.c_str(), RTLD_NOW | kind.flags);
    if (*out != nullptr) {
      *out_path = path;
      return {};
    }
    const char *reason = ::dlerror();
    reasons += (reasons.empty() ? "" : "; ") + path + ": " + (reason != nullptr ? reason : "unknown reason");
  }
  return Status::error(ZERO_E_MODULE, "the %s cannot be loaded (%s); %s", kind.noun, reasons.c_str(), kind.help);
}

Status read_table(const ModuleKind &kind, void *module, const std::string &path, const ModuleTable **out) {
  using Entry = const ModuleTable *(*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(module, kind.symbol));
  ZERO_CHECK(entry != nullptr, ZERO_E_MODULE, "%s is no %s of libzero: it has no symbol %s", path.c_str(), kind.noun, kind.symbol);
  const ModuleTable *table = entry();
  ZERO_CHECK(table != nullptr && table->build != nullptr && std::strcmp(table->build, kind.build) == 0, ZERO_E_MODULE,
             "the module %s is from another build: it says \"%s\", this library needs \"%s\"; build it again from this library's sources",
             path.c_str(), table != nullptr && table->build != nullptr ? table->build : "", kind.build);
  ZERO_CHECK(table->struct_size == kind.table_nbytes, ZERO_E_MODULE, "the table of module %s has %llu bytes, this library's has %llu",
             path.c_str(), static_cast<unsigned long long>(table->struct_size), static_cast<unsigned long long>(kind.table_nbytes));
  *out = table;
  return {};
}

}  // namespace

std::string real_path(const std::string &path) {
  char *resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string out = resolved;
  std::free(resolved);
  return out;
}

std::string file_of(const void *address) {
  Dl_info info{};
  return address != nullptr && ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

Status Module::load(const std::string &path, const ModuleTable **out, bool *out_loaded) {
  const std::lock_guard lock(mutex_);
  if (table_ == nullptr) {
    void *module = nullptr;
    const ModuleTable *table = nullptr;
    // A refused module stays open: the effects of its start-up code cannot be undone.
    ZERO_TRY(open_first(kind_, candidates(kind_, path), &module, &path_));
    if (kind_.check != nullptr) ZERO_TRY(kind_.check(module, path_));
    ZERO_TRY(read_table(kind_, module, path_, &table));
    table_ = table;
    if (out_loaded != nullptr) *out_loaded = true;
  }
  ZERO_CHECK(path.empty() || real_path(path) == real_path(path_), ZERO_E_MODULE,
             "this process uses the %s %s already; a second one, %s, cannot be used beside it", kind_.noun, path_.c_str(), path.c_str());
  *out = table_;
  return {};
}

}  // namespace zero
