/// @file Exports a save's parameters as plain safetensors from its files, without a run. Types stay
/// as they were saved.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/difference.h"

#include <cstdint>
#include <string>

namespace zero::checkpoint {

/// True for parameters, and for slots that are needed to read their values.
bool is_exported(const Section &section, const SavedSlot &slot);

/// `path` is a folder that is new or holds no safetensors, or a file that ends with .safetensors.
/// `most_nbytes` limits one file of a folder. Checks every block that it reads. Exports 8-bit
/// parameters with their scales. After an error nothing of the export remains.
Status export_save(const OpenedSave &save, const std::string &path, int64_t most_nbytes, const StreamOptions &options, Progress *progress);

}  // namespace zero::checkpoint
