/// @file The run as a device knows it: verdicts from what kernels found, on this rank or on all that reach each other's memory.
#include "engine/compute/device_kernels.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace zero {

namespace cuda = kernels::cuda;

void DeviceKernels::set_run(const kernels::RunState &run) const {
  note(table_.put(device_.index(), &told()->run, &run, sizeof run, device_.stream()), "telling where the run stands");
}

/// Alone, a rank has no sums but what it was given.
cuda::FoundByRanks DeviceKernels::found_by_ranks(cuda::Found Told::*what) const {
  cuda::FoundByRanks found{{}, std::max<int64_t>(std::ssize(met_), 1)};
  found.rank[0] = &(told()->*what);
  for (size_t rank = 0; rank < met_.size(); ++rank) found.rank[rank] = &(reinterpret_cast<const Told *>(met_[rank])->*what);
  return found;
}

void DeviceKernels::judge(const kernels::VerdictRules &rules) const {
  const cuda::FoundByRanks found = found_by_ranks(met_.empty() ? &Told::found : &Told::summed);
  note(table_.judge(device_.index(), &rules, &found, &told()->run, device_.stream()), "judging a step");
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

/// What was filled goes with the launch, so that a graph counts what it updates.
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

Status DeviceKernels::read_run(kernels::RunState *out) const {
  note(device_.copy(&read()->run, &told()->run, sizeof read()->run));
  ZERO_TRY(settle());
  *out = read()->run;
  return {};
}

void DeviceKernels::ask() const {
  const cuda::FoundByRanks found = found_by_ranks(&Told::found);
  note(table_.ask(device_.index(), &found, &told()->doubtful, device_.stream()), "asking what ranks found");
}

void DeviceKernels::sum(const Reduction &reduction) const {
  const cuda::Reduce call = call_of(reduction, reduction.sources);
  note(table_.reduce(device_.index(), &call, &told()->summed.flag, device_.stream()), "adding contributions up");
}

void DeviceKernels::look_at_sum(const Reduction &reduction) const {
  const cuda::Reduce call = call_of(reduction, reduction.sources);
  note(table_.look(device_.index(), &call, &told()->doubtful, &told()->summed.flag, device_.stream()), "looking at sums");
}

void DeviceKernels::add_squares_of_sum(const void *values, DType dtype, int64_t count) const {
  note(table_.add_squares(device_.index(), values, static_cast<int64_t>(dtype), count, told()->summed.squares, device_.stream()),
       "adding squares");
}

}  // namespace zero
