/// @file OpenSave: one save for tools, which describe, verify, compare and export it. Another
/// thread may read the progress.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/inspect.h"
#include "checkpoint/manifest.h"
#include "core/file.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace zero::checkpoint {

class OpenSave {
 public:
  /// Opens a save, or the newest valid one of a folder of saves.
  static Status open(const std::string &path, std::shared_ptr<OpenSave> *out);

  std::string describe(TextForm form) const;
  Status verify();
  Status compare(OpenSave &other, int64_t *out_count);
  /// The result of the last compare().
  const std::string &differences(TextForm form) const { return differences_[form == TextForm::json ? 1 : 0]; }
  Status export_to(const std::string &path);

  int64_t done() const { return done_.load(std::memory_order_relaxed); }
  int64_t total() const { return total_.load(std::memory_order_relaxed); }

 private:
  class Counter;
  void begin(int64_t total);

  Folder saves_;
  std::string name_;
  Manifest manifest_;
  std::array<std::string, 2> differences_;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> total_{0};
};

/// Deletes a save of a folder. Returns ZERO_E_STATE for the newest valid one.
Status remove_older_save(const Folder &saves, const std::string &name);

}  // namespace zero::checkpoint
