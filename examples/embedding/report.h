/// @file report: what a training prints: its loss curve, its accuracy, and what a rank keeps in memory.
/// Knows nothing of frameworks.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

#include "memory.h"
#include "options.h"

namespace embedding {

class Report {
 public:
  /// One rank prints and writes.
  Report(const Options &options, bool prints);

  void add_loss(double loss);
  void end(int64_t correct, int64_t tested, const Memory &memory) const;

 private:
  struct Close {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  bool prints_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<double> losses_;
};

}  // namespace embedding
