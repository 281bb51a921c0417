/// @file MicroSums: fp32 sums over micro-steps of reduced gradients, for this rank's cuts. Knows no
/// ranks.
#pragma once

#include "engine/compute/step_kernels.h"
#include "engine/layout/plan.h"
#include "memory/arena.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace zero {

class MicroSums {
 public:
  explicit MicroSums(const Plan &plan) : plan_(plan) {}

  /// Makes the memory once: 4 bytes per element that this rank owns, and the largest cut again.
  Status keep(const MemorySource &source) {
    if (!sums_.empty()) return {};
    const auto nbytes_of = [](int64_t elements) { return Arena::view_nbytes(elements * static_cast<int64_t>(sizeof(float))); };
    int64_t nbytes = 0;
    int64_t largest = 0;
    for (const int64_t index : plan_.order()) {
      nbytes += nbytes_of(plan_.bucket(index).own.count());
      largest = std::max(largest, plan_.bucket(index).own.count());
    }
    std::vector<Sum> sums(plan_.buckets().size());
    ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_ACCUMULATED, nbytes + nbytes_of(largest), &memory_));
    const auto take = [&](int64_t elements) { return reinterpret_cast<float *>(memory_.take(nbytes_of(elements))); };
    for (const int64_t index : plan_.order()) sums[static_cast<size_t>(index)].values = take(plan_.bucket(index).own.count());
    arrived_ = take(largest);
    sums_ = std::move(sums);
    nbytes_.store(memory_.nbytes(), std::memory_order_relaxed);
    return {};
  }
  /// Any thread.
  int64_t nbytes() const { return nbytes_.load(std::memory_order_relaxed); }

  /// Takes the sum over ranks of a micro-step, which add_next() adds: as a whole, so that it does
  /// not matter how buckets are cut.
  float *next(int64_t bucket) { return at(bucket).holds ? arrived_ : at(bucket).values; }
  void add_next(int64_t bucket, const Kernels &kernels) {
    Sum &sum = at(bucket);
    if (std::exchange(sum.holds, true)) kernels.add(sum.values, DType::f32, arrived_, DType::f32, plan_.bucket(bucket).own.count(), 1);
  }
  const float *of(int64_t bucket) { return at(bucket).values; }
  void end_step() {
    for (Sum &sum : sums_) sum.holds = false;
  }

 private:
  struct Sum {
    float *values = nullptr;  ///< one per element of the cut
    bool holds = false;       ///< something of this step
  };
  Sum &at(int64_t bucket) { return sums_[static_cast<size_t>(bucket)]; }

  const Plan &plan_;
  Arena memory_;
  std::vector<Sum> sums_;     ///< by bucket
  float *arrived_ = nullptr;  ///< a micro-step's sum before it is added
  std::atomic<int64_t> nbytes_{0};
};

}  // namespace zero
