/// @file Opens files and folders that another rank has made. A client of a network file system may
/// not see them for seconds, so the calls retry for a time that the caller gives.
#pragma once

#include "core/file.h"

#include <cstdint>
#include <string>

namespace zero::checkpoint {

Status open_with_retries(const Folder &folder, const std::string &name, int64_t retry_ms, Folder *out);
Status open_with_retries(const Folder &folder, const std::string &name, int64_t retry_ms, File *out);

}  // namespace zero::checkpoint
