/// @file ExportedTensors: the parameters that an export writes, under their names in files, either
/// as they are stored or with values rounded once. Knows the places of their bytes; never files.
#pragma once

#include "checkpoint/export.h"
#include "core/choice.h"
#include "engine/checkpoint/file_work.h"
#include "engine/checkpoint/saved_things.h"

#include <zero/checkpoint.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace zero {

inline constexpr Choice kExportDtypes[] = {{ZERO_EXPORT_AS_KEPT, "ZERO_EXPORT_AS_KEPT"},
                                           {ZERO_DTYPE_F32, "ZERO_DTYPE_F32"},
                                           {ZERO_DTYPE_F16, "ZERO_DTYPE_F16"},
                                           {ZERO_DTYPE_BF16, "ZERO_DTYPE_BF16"}};

/// A tensor of the export, and the slots from which it is made.
struct ExportedTensor {
  int64_t section;
  int64_t tensor;
  int64_t slot;         ///< index in the tensor's description
  int64_t second = -1;  ///< slot of the scales or of the remainder; -1: none
  bool copied = true;   ///< the bytes of the slot are copied unchanged
  DType dtype = DType::f32;
};

struct ExportedTensors {
  std::vector<checkpoint::ExportTensor> names;
  std::vector<ExportedTensor> tensors;      ///< one for each name
  std::map<std::string, std::string> ties;  ///< tied name to the name that holds the values
};

/// `dtype`: one of kExportDtypes.
void list_exported(const checkpoint::SaveDescription &description, int32_t dtype, ExportedTensors *out);

/// Reads the bytes of an export's tensors from this rank or, by wishes, from other ranks.
class ExportedSource final : public checkpoint::ExportSource {
 public:
  /// All arguments must outlive the source.
  ExportedSource(const SavedThings &things, const checkpoint::SaveDescription &description, const ExportedTensors &exported, FileWork &work)
      : things_(things), description_(description), exported_(exported), work_(work) {}

  Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) override;
  /// Estimates the number of bytes of these tensors that other ranks hold.
  int64_t wishes_nbytes(const std::vector<int64_t> &tensors) const;

 private:
  const checkpoint::SavedTensor &saved(const ExportedTensor &tensor) const;
  const checkpoint::SavedSlot &slot(const ExportedTensor &tensor, int64_t slot) const;
  bool has(const ExportedTensor &tensor, int64_t slot) const;
  Status fetch(const ExportedTensor &tensor, int64_t slot, int64_t first, std::span<std::byte> out) const;
  Status make_values(const ExportedTensor &tensor, Range elements, std::span<std::byte> out) const;

  const SavedThings &things_;
  const checkpoint::SaveDescription &description_;
  const ExportedTensors &exported_;
  FileWork &work_;
};

}  // namespace zero
