/// @file RankLimit: what memory allows all ranks at once: the loop with AdamW's traffic (limits.h), which each of them runs on its own
/// threads, to be taken in turns with what is compared with it. Knows no optimizer.
#pragma once

#include "engine/compute/host_kernels.h"
#include "limits.h"
#include "must.h"
#include "samples.h"
#include "staggered.h"

#include <zero/zero.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace zero::bench {

/// Seconds of the slowest rank.
template <class Work>
double slowest(zero_group *group, Work &&work) {
  must(zero_group_barrier(group));
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double mine = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  double most = 0;
  must(zero_group_all_reduce(group, &mine, 1, &most, 1, ZERO_DTYPE_F64, ZERO_REDUCE_MAX, nullptr));
  return most;
}

class RankLimit {
 public:
  /// A collective, as sample().
  explicit RankLimit(zero_group *group, int64_t elements = kMost)
      : group_(group), size_(size_of(group)), count_(count_of(elements, size_)), memory_(kArrays, kArrays * 4 * count_) {
    int64_t local_size = 0;
    must(zero_group_local_size(group, &local_size));
    threads_ = std::max<int64_t>(1, usable_cores() / local_size);
    for (float *&array : arrays_) array = memory_.take<float>(count_);
    sample();
    forget();
  }

  void sample() {
    seconds_.add(slowest(group_, [this] {
      HostKernels(threads_).over_lines(count_, [this](Range range) {
        float *modified[] = {arrays_[1] + range.begin, arrays_[2] + range.begin, arrays_[3] + range.begin};
        move_modified(arrays_[0] + range.begin, modified, 3, range.count());
      });
    }));
  }
  void forget() { seconds_ = Samples(); }

  /// Of all ranks together.
  double nbytes_per_second() const { return nbytes() / seconds_.median(); }
  /// `times`, which were taken in turns with the samples, as multiples of the time that the limit takes for `moved_nbytes` then.
  Samples multiples(const Samples &times, double moved_nbytes) const {
    if (times.size() != seconds_.size()) fail("multiples of the limit", "it was not sampled as often as what is compared with it");
    Samples result;
    for (size_t i = 0; i < times.size(); ++i) result.add(times[i] / seconds_[i] * nbytes() / moved_nbytes);
    return result;
  }

 private:
  static constexpr int64_t kMost = int64_t{1} << 26;
  static constexpr int64_t kArrays = 4;

  static int64_t size_of(zero_group *group) {
    int64_t size = 0;
    must(zero_group_size(group, &size));
    return size;
  }
  static int64_t count_of(int64_t elements, int64_t size) { return std::max(kLine, std::min(elements, kMost) / size / kLine * kLine); }
  double nbytes() const { return 28.0 * static_cast<double>(count_ * size_); }

  zero_group *group_;
  const int64_t size_;
  const int64_t count_;
  int64_t threads_ = 1;
  Staggered memory_;
  float *arrays_[kArrays] = {};
  Samples seconds_;
};

}  // namespace zero::bench
