/// @file Worlds of ranks that run one program, and what became of them.
#pragma once

#include "tests/fuzz/training.h"

namespace zero::test::fuzz {

struct World {
  std::vector<Facts> facts;                     ///< by rank
  std::vector<std::vector<std::string>> lines;  ///< calls, by rank
  std::vector<std::string> failures;
  bool trained = false;  ///< nothing was refused before the training began
  int64_t errors = 0;    ///< calls that failed

  /// All calls of all ranks.
  std::string text() const;
};

/// Runs the program in one way. deadline_ms: of the group; limit_ms: what no call may take where ranks deviate, otherwise 0.
/// beside: another program of as many ranks, whose steps come in turn with its own; or nullptr.
World run_program(const Program &program, const Program *beside, const Way &way, int64_t deadline_ms, int64_t limit_ms = 0,
                  const Deviation &deviation = {});

/// The first fact in which two worlds differ; empty: none.
std::string difference(const World &a, const World &b);

}  // namespace zero::test::fuzz
