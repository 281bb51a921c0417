/// @file All pairs of differing collectives: one rank makes another call than the rest. Every rank must get an error that names both calls,
/// and no byte of user memory may change. Knows a Group, not its transport.
#pragma once

#include "tests/group/collective_cases.h"

namespace zero::test {

/// Runs the pairs whose index is a multiple of `every`, each in a child of `root`, which stays usable. report->cases counts pairs.
void run_mismatch_cases(Group &root, int64_t every, Report *report);

}  // namespace zero::test
