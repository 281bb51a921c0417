/// @file A save's parameters as plain safetensors, read from its files and without a run: types as they were saved.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/difference.h"

#include <cstdint>
#include <string>

namespace zero::checkpoint {

/// True for parameters, and for what their values cannot be read without.
bool is_exported(const Section &section, const SavedSlot &slot);

/// `path`: a folder that is new or holds no safetensors, or a file that ends with .safetensors. `most_nbytes`: of one file of a folder.
/// Every block is checked on the way. 8-bit parameters are exported with their scales. After an error nothing of the export is left.
Status export_save(const OpenedSave &save, const std::string &path, int64_t most_nbytes, const StreamOptions &options, Progress *progress);

}  // namespace zero::checkpoint
