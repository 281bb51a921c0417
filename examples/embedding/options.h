/// @file options: the command line of the programs that train in a framework, with its own optimizer or with libzero.
/// Knows nothing of what the options do.
#pragma once

#include <cstdint>
#include <string>

namespace embedding {

/// What is fixed before the command line is read.
struct Program {
  bool sharded = false;  ///< with libzero
  std::string launcher;  ///< the variable in which a launcher says how many ranks it started; empty: none did
};

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string losses;  ///< file; empty: none
  int64_t limit = 0;   ///< 0: all images
  int64_t epochs = 1;
  int64_t batch = 192;  ///< of all ranks together
  int64_t seed = 1;
  double lr = 0.004;  ///< the first; it falls to 0 along a line

  // Of programs with libzero.
  int64_t ranks = 1;
  int64_t stage = 3;
  bool framework_update = false;  ///< the framework's optimizer updates libzero's shards
};

/// Reads the command line. Throws std::invalid_argument. Returns false after printing --help.
bool parse_options(int argc, char **argv, const Program &program, Options *out);

}  // namespace embedding
