/// @file Describes a folder of saves, or one save, as text for people or as JSON for programs.
/// Knows manifests; reads no data.
#pragma once

#include "checkpoint/manifest.h"
#include "checkpoint/saves.h"
#include "core/file.h"

#include <string>

namespace zero::checkpoint {

enum class TextForm { plain, json };

/// Writes a line or an object for each save of the folder, newest first: its state (valid, damaged,
/// unreadable, not committed), size, time, run and error. Reads the manifests and the sizes of
/// files.
Status list_text(const Folder &saves, TextForm form, std::string *out);

/// Writes the content of a manifest: step, run, sections with their facts, tensors with types,
/// shapes and slots, extras, texts, files.
std::string describe_text(const Manifest &manifest, const std::string &path, TextForm form);

}  // namespace zero::checkpoint
