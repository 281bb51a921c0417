/// @file Rows measured by Google Benchmark, interleaved at random, printed as medians, extremes and ratios to another row of the same run.
/// Knows nothing of what the rows do.
#pragma once

#include "samples.h"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace zero::bench {

struct Row {
  std::string name;
  std::string reference;          ///< name of the row that it is compared with
  std::function<void()> work;     ///< timed, once per repeat
  std::function<void()> prepare;  ///< before it, not timed; may be empty
  double element_nbytes = 0;      ///< moved per element; 0: not told, and times are compared instead of rates
  double elements = 0;
};

/// Initialises Google Benchmark with interleaving on; returns what is left of the arguments.
inline std::vector<char *> begin_interleaved(int argc, char **argv) {
  static std::string interleaved = "--benchmark_enable_random_interleaving=true";
  std::vector<char *> arguments(argv, argv + argc);
  arguments.insert(arguments.begin() + 1, interleaved.data());
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  arguments.resize(static_cast<size_t>(count));
  return arguments;
}

class RatioTable final : public benchmark::BenchmarkReporter {
 public:
  explicit RatioTable(int repeats) : repeats_(repeats) {}

  void add(Row row) {
    benchmark::RegisterBenchmark(row.name.c_str(),
                                 [work = row.work, prepare = row.prepare](benchmark::State &state) { time(state, prepare, work); })
        ->Iterations(1)
        ->Repetitions(repeats_)
        ->UseManualTime()
        ->Unit(benchmark::kSecond);
    rows_.emplace_back(std::move(row), Samples());
  }
  /// Measures all rows and prints them.
  void run() { benchmark::RunSpecifiedBenchmarks(this); }

  /// The measured times of a row, once it was run.
  const Samples &samples(const std::string &name) const {
    static const Samples none;
    for (const auto &[row, samples] : rows_) {
      if (row.name == name) return samples;
    }
    return none;
  }

  bool ReportContext(const Context &) override { return true; }
  void ReportRuns(const std::vector<Run> &runs) override {
    for (const Run &run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      for (auto &[row, samples] : rows_) {
        if (row.name == run.run_name.function_name) samples.add(run.GetAdjustedRealTime());
      }
    }
  }
  void Finalize() override {
    std::printf("%-34s %8s %8s %10s %10s %10s %4s %9s %9s  %s\n", "", "B/elem", "GB/s", "median ms", "min ms", "max ms", "n", "ratio",
                "of minima", "to");
    for (const auto &[row, samples] : rows_) {
      if (samples.size() > 0) print(row, samples);
    }
  }

 private:
  static void time(benchmark::State &state, const std::function<void()> &prepare, const std::function<void()> &work) {
    for ([[maybe_unused]] auto unused : state) {
      if (prepare) prepare();
      const auto begin = std::chrono::steady_clock::now();
      work();
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }

  const Row *find(const std::string &name) const {
    for (const auto &[row, samples] : rows_) {
      if (row.name == name) return &row;
    }
    return nullptr;
  }

  /// Rows with bytes: their rate as a share of the reference's. Others: their time as a multiple of the reference's.
  void print(const Row &row, const Samples &samples) const {
    const double nbytes = row.element_nbytes * row.elements;
    char rate[32] = "-";
    char traffic[32] = "-";
    if (nbytes > 0) std::snprintf(rate, sizeof rate, "%.1f", 1e-9 * nbytes / samples.median());
    if (nbytes > 0) std::snprintf(traffic, sizeof traffic, "%.2f", row.element_nbytes);
    std::printf("%-34s %8s %8s %10.3f %10.3f %10.3f %4zu", row.name.c_str(), traffic, rate, 1e3 * samples.median(), 1e3 * samples.least(),
                1e3 * samples.most(), samples.size());
    const Row *reference = find(row.reference);
    if (reference != nullptr && this->samples(row.reference).size() > 0) print_ratio(row, samples, *reference);
    std::printf("\n");
  }
  void print_ratio(const Row &row, const Samples &mine, const Row &reference) const {
    const Samples &other = samples(reference.name);
    const double times = mine.median() / other.median();
    const double least = mine.least() / other.least();
    if (row.element_nbytes > 0) {
      const double traffic = row.element_nbytes * row.elements / (reference.element_nbytes * reference.elements);
      std::printf(" %8.1f%% %8.1f%%  %s", 100 * traffic / times, 100 * traffic / least, reference.name.c_str());
    } else {
      std::printf(" %8.3fx %8.3fx  %s", times, least, reference.name.c_str());
    }
  }

  int repeats_;
  std::vector<std::pair<Row, Samples>> rows_;
};

}  // namespace zero::bench
