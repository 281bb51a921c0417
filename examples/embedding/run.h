/// @file run: one training as its program sees it: options, the samples of each step, and what becomes of its losses. The main function
/// too. Knows nothing of frameworks. Alone it is the whole training; ranks.h makes it one rank's part.
#pragma once

#include <cstdint>
#include <functional>

#include "batches.h"
#include "memory.h"
#include "options.h"
#include "report.h"

namespace embedding {

class Run {
 public:
  Run(const Options &options, const Data &data, int64_t rank = 0, int64_t ranks = 1);
  virtual ~Run() = default;
  Run(const Run &) = delete;
  Run &operator=(const Run &) = delete;

  const Options &options() const { return options_; }
  const Data &data() const { return data_; }
  Batches &batches() { return batches_; }
  Batches &tests() { return tests_; }

  /// The mean loss of a step's samples.
  void add_loss(double loss, int64_t samples);
  /// How many of the tests were classified correctly, and what the model takes.
  void end(int64_t correct, const Memory &memory);

 protected:
  /// The mean over ranks of means, each over so many samples; the sum over ranks; the largest.
  virtual double mean(double value, int64_t samples);
  virtual int64_t sum(int64_t value);
  virtual int64_t largest(int64_t value);

 private:
  const Options &options_;
  const Data &data_;
  Batches batches_;
  Batches tests_;
  Report report_;
};

/// The main function of a program: exit code 0, 1 after a line that says what failed, 2 after one about the command line.
int run_program(int argc, char **argv, const Program &program, const std::function<void(const Options &, const Data &)> &body);

/// That of a program without libzero.
int run_alone(int argc, char **argv, const std::function<void(Run &)> &train);

}  // namespace embedding
