/// @file ExportedTensors: the parameters that an export writes, by their names in files, each as it is kept or as its values rounded once.
/// Knows the places of their bytes; never files.
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

/// A tensor of the export, and the slots that it is made from.
struct ExportedTensor {
  int64_t section;
  int64_t tensor;
  int64_t slot;         ///< in the tensor's description
  int64_t second = -1;  ///< scales, or the remainder; -1: none
  bool copied = true;   ///< its bytes are those of the slot
  DType dtype = DType::f32;
};

struct ExportedTensors {
  std::vector<checkpoint::ExportTensor> names;
  std::vector<ExportedTensor> tensors;      ///< one for each name
  std::map<std::string, std::string> ties;  ///< a tied name, and the one under which its values are
};

/// `dtype`: one of kExportDtypes.
void list_exported(const checkpoint::SaveDescription &description, int32_t dtype, ExportedTensors *out);

/// Bytes of an export's tensors, from this rank or, by wish, from the others.
class ExportedSource final : public checkpoint::ExportSource {
 public:
  /// All must outlive the source.
  ExportedSource(const SavedThings &things, const checkpoint::SaveDescription &description, const ExportedTensors &exported, FileWork &work)
      : things_(things), description_(description), exported_(exported), work_(work) {}

  Status copy(int64_t tensor, int64_t offset, std::span<std::byte> out) override;
  /// About the bytes that other ranks hold.
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
