/// @file How the time of a step grows: over parameters in a world of one, over tensors, buckets and ranks; as a multiple of the time that
/// the bytes which must move (step_traffic.h) take at the rate of the loop of rank_limit.h, which is run before each step. AdamW fp32,
/// stage 1, gradients ready in the library's memory, ranks as threads. Prints the points and draws them. usage: scaling_benchmark [options
/// of Google Benchmark] [--most-elements=N] [--elements=N] [--repeats=9] [--svg=FILE]
#include "must.h"
#include "options.h"
#include "rank_limit.h"
#include "ranks.h"
#include "samples.h"
#include "step_traffic.h"
#include "svg_plot.h"

#include <benchmark/benchmark.h>

namespace {

using namespace zero::bench;

/// One point: what is stepped.
struct Case {
  int64_t elements;
  int64_t tensors = 1;
  int64_t ranks = 1;
  int64_t bucket_nbytes = 0;  ///< 0: the default
};

class Trainer {
 public:
  Trainer(zero_group *group, const Case &what) : count_(what.elements / what.tensors) {
    zero_config *config = nullptr;
    must(zero_config_create(&config));
    if (what.bucket_nbytes > 0) must(zero_config_set_i64(config, ZERO_KEY_BUCKET_BYTES, what.bucket_nbytes));
    // Without the progress thread all work happens in the calls that are timed.
    must(zero_config_set_i64(config, ZERO_KEY_OVERLAP, 0));
    must(zero_optimizer_create(group, config, &optimizer_));
    zero_config_release(config);
    for (int64_t i = 0; i < what.tensors; ++i) {
      int64_t id = 0;
      must(zero_optimizer_add_param(optimizer_, nullptr, ("t" + std::to_string(i)).c_str(), ZERO_DTYPE_F32, &count_, 1, &id));
    }
    must(zero_optimizer_seal(optimizer_));
    must(zero_optimizer_begin(optimizer_, ZERO_SOURCE_SHARDS));
    tensors_ = what.tensors;
  }
  Trainer(const Trainer &) = delete;
  ~Trainer() { zero_optimizer_release(optimizer_); }

  void give(bool fills) {
    for (int64_t id = tensors_ - 1; id >= 0; --id) {
      void *data = nullptr;
      int64_t accumulate = 0;
      must(zero_optimizer_grad_acquire(optimizer_, id, nullptr, &data, &accumulate));
      for (int64_t i = 0; fills && i < count_; ++i) static_cast<float *>(data)[i] = (static_cast<float>(i % 1021) - 510.5F) * 1e-4F;
      must(zero_optimizer_grad_ready(optimizer_, id, nullptr, 0, count_, nullptr));
    }
  }
  void step() { must(zero_optimizer_step(optimizer_, nullptr, nullptr)); }

 private:
  zero_optimizer *optimizer_ = nullptr;
  const int64_t count_;
  int64_t tensors_ = 0;
};

struct Measured {
  Samples seconds;    ///< of the slowest rank
  Samples multiples;  ///< of the ideal
};

Measured measure(const Case &what, int64_t repeats) {
  Measured result;
  run_ranks(Launch::threads, what.ranks, false, [&](zero_group *group) {
    int64_t rank = 0;
    must(zero_group_rank(group, &rank));
    RankLimit limit(group);
    Trainer trainer(group, what);
    Samples seconds;
    for (int64_t repeat = -2; repeat < repeats; ++repeat) {
      trainer.give(repeat == -2);
      if (repeat >= 0) limit.sample();
      const double step = slowest(group, [&] { trainer.step(); });
      if (repeat >= 0) seconds.add(step);
    }
    if (rank != 0) return;
    const int64_t nbytes = ideal_nbytes(1, what.ranks, Phase::step, false, false);
    result = {seconds, limit.multiples(seconds, static_cast<double>(nbytes * what.elements))};
  });
  return result;
}

/// Measures the points of one panel.
template <class CaseOf>
Panel panel_of(const std::string &title, const std::string &x_label, const std::vector<int64_t> &xs, int64_t repeats, CaseOf case_of) {
  Panel panel{title, x_label, "x ideal", {}};
  std::printf("%s\n%14s %12s %12s %12s %12s %14s\n", title.c_str(), x_label.c_str(), "x ideal", "min", "max", "median ms", "ns/parameter");
  for (const int64_t x : xs) {
    const Case what = case_of(x);
    const auto [seconds, multiples] = measure(what, repeats);
    panel.points.push_back({static_cast<double>(x), multiples.median(), multiples.least(), multiples.most()});
    std::printf("%14lld %12.2f %12.2f %12.2f %12.3f %14.4f\n", static_cast<long long>(x), multiples.median(), multiples.least(),
                multiples.most(), 1e3 * seconds.median(), 1e9 * seconds.median() / static_cast<double>(what.elements));
    std::fflush(stdout);
  }
  return panel;
}

std::vector<int64_t> powers(int64_t first, int64_t factor, int64_t last) {
  std::vector<int64_t> values;
  for (int64_t value = first; value <= last; value *= factor) values.push_back(value);
  return values;
}

}  // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  Options options(argc, argv, "[--most-elements=N] [--elements=N] [--repeats=9] [--svg=FILE]");
  const int64_t most = options.number("most-elements", int64_t{1} << 30);
  const int64_t elements = options.number("elements", int64_t{1} << 26);
  const int64_t repeats = options.number("repeats", 9);
  const std::string svg = options.text("svg", "");
  options.finish();
  const std::string size = std::to_string(elements >> 20) + "M parameters";
  SvgPlot plot;
  plot.add(
      panel_of("Parameters, one rank", "parameters", powers(1 << 16, 4, most), repeats, [](int64_t x) { return Case{.elements = x}; }));
  plot.add(panel_of("Tensors, one rank, " + size, "tensors", powers(1, 8, 1 << 15), repeats,
                    [=](int64_t x) { return Case{.elements = elements, .tensors = x}; }));
  plot.add(panel_of("Buckets, two ranks, " + size, "buckets", powers(1, 4, 1 << 12), repeats,
                    [=](int64_t x) { return Case{.elements = elements, .tensors = x, .ranks = 2, .bucket_nbytes = 4 * elements / x}; }));
  plot.add(panel_of("Ranks, " + size, "ranks", powers(1, 2, 8), repeats,
                    [=](int64_t x) { return Case{.elements = elements, .tensors = 64, .ranks = x}; }));
  if (!svg.empty()) plot.save(svg);
  return 0;
}
