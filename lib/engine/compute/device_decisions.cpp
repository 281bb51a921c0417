/// @file The state of the run on a device: decisions from the results of kernels.
#include "engine/compute/device_kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace zero {

namespace cuda = kernels::cuda;

void DeviceKernels::set_run(const kernels::StepState &run) const {
  note(table_.put(device_.index(), &told()->run, &run, sizeof run, device_.stream()), "telling where the run stands");
}

void DeviceKernels::decide(const kernels::DecisionRules &rules) const {
  note(table_.decide(device_.index(), &rules, &told()->found, &told()->run, device_.stream()), "deciding a step");
}

void DeviceKernels::end_step(bool counts) const {
  constexpr auto kWords = static_cast<int64_t>(offsetof(Told, run) / sizeof(int64_t));
  auto *words = reinterpret_cast<int64_t *>(told());
  note(table_.end_step(device_.index(), &told()->run, counts ? 1 : 0, words, kWords, device_.stream()), "ending a step");
}

void DeviceKernels::set_counts(int64_t *counts, int64_t count, int64_t value) const {
  constexpr int64_t kMost = cuda::kMostPut / static_cast<int64_t>(sizeof(int64_t));
  std::array<int64_t, kMost> values;
  values.fill(value);
  for (int64_t begin = 0; begin < count; begin += kMost) {
    const auto nbytes = static_cast<int64_t>(std::min(kMost, count - begin) * sizeof(int64_t));
    note(table_.put(device_.index(), counts + begin, values.data(), nbytes, device_.stream()), "telling how often tensors were updated");
  }
}

/// Passes the filled tensors as a launch argument, so that a graph counts the tensors that it
/// updates.
void DeviceKernels::count_updates(int64_t *counts, std::span<const int64_t> filled) const {
  constexpr size_t kBits = 64;
  for (size_t begin = 0; begin < filled.size(); begin += cuda::kMostCounted) {
    const std::span<const int64_t> part = filled.subspan(begin, std::min<size_t>(cuda::kMostCounted, filled.size() - begin));
    std::array<uint64_t, cuda::kMostCounted / kBits> updated{};
    for (size_t i = 0; i < part.size(); ++i) updated[i / kBits] |= uint64_t{part[i] > 0 ? 1U : 0U} << (i % kBits);
    note(table_.count_updates(device_.index(), &told()->run, counts + begin, updated.data(), std::ssize(part), device_.stream()),
         "counting updates");
  }
}

Status DeviceKernels::read_run(kernels::StepState *out) const {
  note(device_.copy(&read()->run, &told()->run, sizeof read()->run));
  ZERO_TRY(settle());
  *out = read()->run;
  return {};
}

}  // namespace zero
