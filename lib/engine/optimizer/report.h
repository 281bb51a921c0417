/// @file OptimizerReport: statistics of an optimizer, and the text that says what was chosen and
/// why. Any thread.
#pragma once

#include "engine/optimizer/parts.h"
#include "engine/stats/results.h"
#include "kernels/coded_lines.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace zero {

class OptimizerReport {
 public:
  explicit OptimizerReport(const OptimizerParts &parts) : parts_(parts) {}

  Status memory(int32_t category, MemoryUse *out) const;
  Traffic traffic(OperationKind kind) const;
  std::string describe() const;
  /// The newest events, in the Chrome trace format.
  Status trace(std::string *out) const;

 private:
  int64_t formula_nbytes(int32_t category) const;
  int64_t constant_nbytes(int32_t category) const;
  int64_t gathered_nbytes() const;
  void describe_plan(std::string &text) const;
  void describe_replicas(std::string &text) const;
  int64_t sent_for_gradients_nbytes() const;
  int64_t sent_across_nbytes(const kernels::Coder *code, bool all) const;
  void describe_space(std::string &text, size_t space) const;
  void describe_memory(std::string &text) const;

  const OptimizerParts &parts_;
};

}  // namespace zero
