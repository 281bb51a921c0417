/// @file Renames: what tensors of a save are called here. Knows names only.
#pragma once

#include "core/status.h"

#include <string>
#include <utility>
#include <vector>

namespace zero {

/// Names of a save, and what they are here: of one tensor, or of all whose names begin alike ("old.*", "new.*").
class Renames {
 public:
  Status add(const char *in_file, const char *here);
  /// By the first rule that fits.
  std::string here(const std::string &in_file) const;

 private:
  std::vector<std::pair<std::string, std::string>> rules_;
};

}  // namespace zero
