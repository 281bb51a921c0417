/// @file The run as a device knows it: verdicts from what kernels found, on this rank or on all that reach each other's memory.
#include "engine/device_kernels.h"

#include <algorithm>
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
