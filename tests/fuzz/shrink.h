/// @file Making a program that fails smaller while it still fails. Knows nothing of what fails.
#pragma once

#include "tests/fuzz/program.h"

#include <functional>
#include <optional>

namespace zero::test::fuzz {

/// A program and the ways in which it is run.
struct Case {
  Program program;
  std::optional<Program> beside;  ///< run in turn with it
  std::vector<Way> ways;

  std::string text() const;
};

/// Leaves out steps, edits, micro-steps, tensors, sets and settings, one after another, as long as fails(case) stays true.
Case shrink(Case failing, const std::function<bool(const Case &)> &fails);

}  // namespace zero::test::fuzz
