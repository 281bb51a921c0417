/// @file Renames: maps names in a save to names of this program. Knows names only.
#pragma once

#include "core/status.h"

#include <string>
#include <utility>
#include <vector>

namespace zero {

/// Rules that rename one tensor, or all tensors of a prefix ("old.*" to "new.*").
class Renames {
 public:
  Status add(const char *in_file, const char *here);
  /// Returns the name by the first rule that matches, or `in_file` if none does.
  std::string here(const std::string &in_file) const;

 private:
  std::vector<std::pair<std::string, std::string>> rules_;
};

}  // namespace zero
