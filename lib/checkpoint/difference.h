/// @file Compares two saves: steps, names, shapes, types, facts, and the values of each slot,
/// whatever number of ranks wrote them.
#pragma once

#include "checkpoint/blocks.h"
#include "checkpoint/manifest.h"
#include "core/file.h"

#include <cstdint>
#include <string>

namespace zero::checkpoint {

struct OpenedSave {
  const Folder &saves;
  const std::string &name;
  const Manifest &manifest;
};

/// Reads both saves once, checks each block, and compares them slot by slot. *out_count is the
/// number of differences; *out_plain has a line and *out_json an object for each. Ids, times and
/// the number of ranks may differ.
Status diff_saves(const OpenedSave &a, const OpenedSave &b, const StreamOptions &options, Progress *progress, std::string *out_plain,
                  std::string *out_json, int64_t *out_count);

}  // namespace zero::checkpoint
