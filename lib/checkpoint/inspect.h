/// @file What a folder of saves and a save hold, as texts for people and as JSON for programs. Knows manifests; reads no data.
#pragma once

#include "checkpoint/manifest.h"
#include "checkpoint/saves.h"
#include "core/file.h"

#include <string>

namespace zero::checkpoint {

enum class TextForm { plain, json };

/// One line, or one object, for each save of the folder, newest first: whether it is committed and valid, its size, when it was made, what is
/// wrong with it. Reads the manifests and the sizes of files.
Status list_text(const Folder &saves, TextForm form, std::string *out);

/// All that a manifest says: step, run, sections with their facts, tensors with types, shapes and slots, extras, texts, files.
std::string describe_text(const Manifest &manifest, const std::string &path, TextForm form);

}  // namespace zero::checkpoint
