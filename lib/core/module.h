/// @file Modules: shared libraries beside libzero that are loaded when they are first asked for, each a table of C functions from the same
/// build. Knows where modules lie and how to tell that one fits; never what its functions do.
#pragma once

#include "core/status.h"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace zero {

/// How every module's table begins.
struct ModuleTable {
  uint64_t struct_size;
  const char *build;
};

struct ModuleKind {
  const char *noun;       ///< "MPI module", for texts
  const char *file_name;  ///< looked for beside libzero, then wherever the loader looks
  const char *variable;   ///< names the file where the caller does not
  const char *symbol;     ///< of the function that returns the table
  const char *build;      ///< that the table must have
  uint64_t table_nbytes;
  int flags;         ///< of dlopen, beside RTLD_NOW
  const char *help;  ///< what to do when none can be loaded
  /// Looks at a module before its table is read; nullptr: nothing to look at.
  Status (*check)(void *module, const std::string &path) = nullptr;
};

/// The one module of its kind that a process uses. Any thread.
class Module {
 public:
  explicit Module(const ModuleKind &kind) : kind_(kind) {}

  /// Loads it once and for ever: `path`, or the first that is found where that is empty. ZERO_E_MODULE tells what was tried, why it failed
  /// and what to do. *out_loaded, where given, is set when this call has loaded it.
  Status load(const std::string &path, const ModuleTable **out, bool *out_loaded = nullptr);
  const std::string &path() const { return path_; }

 private:
  const ModuleKind kind_;
  std::mutex mutex_;
  const ModuleTable *table_ = nullptr;
  std::string path_;
};

/// As Module::load, with the table as what it is.
template <class Table>
Status load_table(Module &module, const std::string &path, const Table **out, bool *out_loaded) {
  static_assert(offsetof(Table, struct_size) == offsetof(ModuleTable, struct_size) &&
                offsetof(Table, build) == offsetof(ModuleTable, build));
  const ModuleTable *table = nullptr;
  ZERO_TRY(module.load(path, &table, out_loaded));
  *out = reinterpret_cast<const Table *>(table);
  return {};
}

/// The file that holds an address; "" when unknown.
std::string file_of(const void *address);
/// Without symbolic links where it exists, otherwise as it is.
std::string real_path(const std::string &path);

}  // namespace zero
