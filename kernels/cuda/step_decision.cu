/// @file Step decisions on a device. A step is decided from the results of earlier kernels, so that
/// the host need not wait for them. Also writes values from the host, and counts steps and the
/// updates of tensors. One block each, except for the updates of tensors.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"
#include "kernels/reference/exact_sum-inl.h"
#include "kernels/reference/step_decision-inl.h"

#include <cstring>

namespace zero::kernels::cuda {
namespace {

/// All threads read the words of the sum; thread 0 decides.
struct Deciding {
  struct Registers {};
  struct Shared {
    int64_t word[kSquareWords];
  };
  static constexpr int kPhases = 2;

  DecisionRules rules;
  const Found *found;
  StepState *known;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    if constexpr (phase == 0) {
      if (place.thread >= kSquareWords) return;
      shared.word[place.thread] = found->squares[place.thread];
    } else if (place.thread == 0) {
      reference::decide(rules, found->flag != 0, rules.has_norm != 0 ? reference::total_of(shared.word) : 0, *known);
    }
  }
};

static_assert(kSquareWords <= kThreads);

struct Ending : ThreadsAlone {
  StepState *known;
  int64_t counts;
  int64_t *words;
  int64_t word_count;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    if (place.thread == 0 && counts != 0 && known->skips == 0) ++known->applied_count;
    for (int64_t word = place.thread; word < word_count; word += kThreads) words[word] = 0;
  }
};

struct Putting : ThreadsAlone {
  int64_t *out;
  int64_t count;
  int64_t word[kMostPut / sizeof(int64_t)];

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    if (place.thread < count) out[place.thread] = word[place.thread];
  }
};

static_assert(kMostPut / sizeof(int64_t) <= kThreads);

struct Counting : ThreadsAlone {
  const StepState *known;
  int64_t *counts;
  int64_t count;
  uint64_t updated[kMostCounted / 64];

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    const int64_t index = place.block * kThreads + place.thread;
    if (index >= count || known->skips != 0) return;
    counts[index] += static_cast<int64_t>((updated[index / 64] >> (index % 64)) & 1);
  }
};

}  // namespace

int32_t decide(int64_t device, const DecisionRules *rules, const Found *found, StepState *run, void *stream) {
  return launch(device, stream, 1, Deciding{*rules, found, run});
}

int32_t end_step(int64_t device, StepState *run, int64_t counts, int64_t *words, int64_t word_count, void *stream) {
  return launch(device, stream, 1, Ending{{}, run, counts, words, word_count});
}

int32_t put(int64_t device, void *out, const void *from, int64_t nbytes, void *stream) {
  if (nbytes == 0) return 0;
  Putting putting{{}, static_cast<int64_t *>(out), nbytes / static_cast<int64_t>(sizeof(int64_t)), {}};
  std::memcpy(putting.word, from, static_cast<size_t>(nbytes));
  return launch(device, stream, 1, putting);
}

int32_t count_updates(int64_t device, const StepState *run, int64_t *counts, const uint64_t *updated, int64_t count, void *stream) {
  if (count == 0) return 0;
  Counting counting{{}, run, counts, count, {}};
  std::memcpy(counting.updated, updated, static_cast<size_t>((count + 63) / 64) * sizeof *updated);
  return launch(device, stream, (count + kThreads - 1) / kThreads, counting);
}

}  // namespace zero::kernels::cuda
