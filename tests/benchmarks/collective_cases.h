/// @file What is timed of collectives, the same for libzero and for MPI: operations, sizes, repeats, and the file in which MPI's medians
/// reach the table of a run without it. `nbytes` is that of the whole buffer. Knows neither library.
#pragma once

#include "samples.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace zero::bench {

enum class Collective { all_reduce, reduce_scatter, all_gather };

inline constexpr Collective kCollectives[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather};

constexpr const char *collective_name(Collective collective) {
  return collective == Collective::all_reduce ? "all_reduce" : collective == Collective::all_gather ? "all_gather" : "reduce_scatter";
}

/// 1 KiB to `most` in factors of 8; with 256 MiB the last factor is smaller.
inline std::vector<int64_t> collective_nbytes(int64_t most) {
  std::vector<int64_t> sizes;
  for (int64_t nbytes = 1024; nbytes < most; nbytes *= 8) sizes.push_back(nbytes);
  sizes.push_back(most);
  return sizes;
}

/// Calls that one sample is the mean of: a sample of short calls lasts long enough for the clock.
constexpr int64_t calls_per_sample(int64_t nbytes) {
  const int64_t calls = (int64_t{4} << 20) / nbytes;
  return calls < 1 ? 1 : calls > 200 ? 200 : calls;
}

constexpr int collective_repeats(int64_t nbytes) { return nbytes <= (int64_t{4} << 20) ? 21 : 9; }

/// Seconds per call.
template <class Call>
double time_calls(int64_t calls, Call &&call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(calls);
}

/// Medians by operation, size and number of ranks, in seconds.
class Medians {
 public:
  void set(Collective collective, int64_t nbytes, int64_t ranks, double seconds) {
    values_[{collective_name(collective), nbytes, ranks}] = seconds;
  }
  /// 0 when it is not known.
  double get(Collective collective, int64_t nbytes, int64_t ranks) const {
    const auto found = values_.find({collective_name(collective), nbytes, ranks});
    return found == values_.end() ? 0 : found->second;
  }
  /// Appends to the file.
  void save(const std::string &path) const {
    std::ofstream file(path, std::ios::app);
    for (const auto &[key, seconds] : values_) {
      file << std::get<0>(key) << ' ' << std::get<1>(key) << ' ' << std::get<2>(key) << ' ' << seconds << '\n';
    }
  }
  /// Without the file nothing is known.
  void load(const std::string &path) {
    std::ifstream file(path);
    std::string name;
    int64_t nbytes = 0;
    int64_t ranks = 0;
    double seconds = 0;
    while (file >> name >> nbytes >> ranks >> seconds) values_[{name, nbytes, ranks}] = seconds;
  }

 private:
  std::map<std::tuple<std::string, int64_t, int64_t>, double> values_;
};

}  // namespace zero::bench
