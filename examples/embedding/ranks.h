/// @file ranks: a training that ranks share, and how they are started.
/// Knows nothing of frameworks.
#pragma once

#include <cstdint>
#include <functional>

#include "handles.h"
#include "run.h"

namespace embedding {

/// One rank's part of a run: of each batch the samples that are this rank's.
class Rank : public Run {
 public:
  Rank(const Options &options, const Data &data, GroupHandle group);

  zero_group *group() const { return group_.get(); }
  /// How the options want an optimizer to shard.
  ConfigHandle sharding() const;

 private:
  double mean(double value, int64_t samples) override;
  int64_t sum(int64_t value) override;
  int64_t largest(int64_t value) override;

  GroupHandle group_;
};

/// The main function of a program with libzero: `train` runs on one thread per rank, or in the process that a launcher started. A rank that
/// throws ends the others too; told is what the first one threw.
int run_ranks(int argc, char **argv, const std::function<void(Rank &)> &train);

}  // namespace embedding
