/// @file Modules: shared libraries beside libzero, loaded on first use. Each is a table of C
/// functions from the same build. Knows the place of modules and the check that one fits, not their
/// functions.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace zero {

/// The beginning of every module's table.
struct ModuleTable {
  uint64_t struct_size;
  const char *build;
};

struct ModuleKind {
  const char *noun;       ///< "MPI module", for texts
  const char *file_name;  ///< searched beside libzero, then on the loader's path
  const char *variable;   ///< environment variable that names the file if the caller does not
  const char *symbol;     ///< name of the function that returns the table
  const char *build;      ///< build that the table must name
  uint64_t table_nbytes;
  int flags;         ///< dlopen flags in addition to RTLD_NOW
  const char *help;  ///< advice if none can be loaded
  /// Checks a module before its table is read; nullptr: no check.
  Status (*check)(void *module, const std::string &path) = nullptr;
};

/// The only module of its kind in this process. Callable from any thread.
class Module {
 public:
  explicit Module(const ModuleKind &kind) : kind_(kind) {}

  /// Loads the module once and never unloads it: from `path`, or if that is empty the first one
  /// found. ZERO_E_MODULE names the files tried, the reasons and the remedy. If `out_loaded` is not
  /// nullptr, it is set to true if this call has loaded it.
  Status load(const std::string &path, const ModuleTable **out, bool *out_loaded = nullptr);
  const std::string &path() const { return path_; }

 private:
  const ModuleKind kind_;
  std::mutex mutex_;
  const ModuleTable *table_ = nullptr;
  std::string path_;
};

/// As Module::load, with the table as its own type.
template <class Table>
Status load_table(Module &module, const std::string &path, const Table **out, bool *out_loaded) {
  static_assert(offsetof(Table, struct_size) == offsetof(ModuleTable, struct_size) &&
                offsetof(Table, build) == offsetof(ModuleTable, build));
  const ModuleTable *table = nullptr;
  ZERO_TRY(module.load(path, &table, out_loaded));
  *out = reinterpret_cast<const Table *>(table);
  return {};
}

/// Returns the file that contains an address, or "" if unknown.
std::string file_of(const void *address);
/// Returns the path without symbolic links if it exists, otherwise unchanged.
std::string real_path(const std::string &path);

}  // namespace zero
