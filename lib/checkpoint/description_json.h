/// @file The text form of a description, without the cuts, which the manifest stores as numbers.
#pragma once

#include "checkpoint/description.h"
#include "core/status.h"

#include <string>
#include <string_view>

namespace zero::checkpoint {

class JsonText;

/// The fields of the description, without the brackets around them.
void write_description(const SaveDescription &description, JsonText *out);

std::string description_text(const SaveDescription &description);

/// `file` names the file in texts. Cuts stay empty. Unknown fields are ignored. ZERO_E_CHECKPOINT.
Status parse_description(std::string_view text, const std::string &file, SaveDescription *out);

}  // namespace zero::checkpoint
