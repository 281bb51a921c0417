/// @file run: see run.h.
#include "run.h"

#include <cstdio>
#include <exception>
#include <stdexcept>

namespace embedding {

Run::Run(const Options &options, const Data &data, int64_t rank, int64_t ranks)
    : options_(options),
      data_(data),
      batches_(data.train, options, rank, ranks),
      tests_(data.test, options, rank, ranks),
      report_(options, rank == 0) {}

void Run::add_loss(double loss, int64_t samples) { report_.add_loss(mean(loss, samples)); }

void Run::end(int64_t correct, const Memory &memory) {
  report_.end(
      sum(correct), data_.test.count(),
      {largest(memory.parameters), largest(memory.gradients), largest(memory.states), largest(memory.pools), largest(memory.staging)});
}

double Run::mean(double value, int64_t) { return value; }
int64_t Run::sum(int64_t value) { return value; }
int64_t Run::largest(int64_t value) { return value; }

int run_program(int argc, char **argv, const Program &program, const std::function<void(const Options &, const Data &)> &body) {
  try {
    Options options;
    if (!parse_options(argc, argv, program, &options)) return 0;
    body(options, {{options, "train"}, {options, "t10k"}});
    return 0;
  } catch (const std::invalid_argument &wrong) {
    std::fprintf(stderr, "%s: %s\n", argv[0], wrong.what());
    return 2;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "%s: %s\n", argv[0], failure.what());
    return 1;
  }
}

int run_alone(int argc, char **argv, const std::function<void(Run &)> &train) {
  return run_program(argc, argv, {}, [&train](const Options &options, const Data &data) {
    Run run(options, data);
    train(run);
  });
}

}  // namespace embedding
