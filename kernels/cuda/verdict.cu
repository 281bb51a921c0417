/// @file Verdicts on a device: of a step, from what the kernels before it found, so that nobody waits for them; and what the host tells the
/// run. One block each.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"
#include "kernels/reference/exact_sum-inl.h"
#include "kernels/reference/verdict-inl.h"

#include <cstring>

namespace zero::kernels::cuda {
namespace {

/// Thread 0 judges what the others have fetched.
struct Judging {
  struct Registers {};
  struct Shared {
    int64_t word[kSquareWords];
  };
  static constexpr int kPhases = 2;

  VerdictRules rules;
  RunState *known;
  int32_t *flag;
  int64_t *words;

  template <int phase>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &shared) const {
    if constexpr (phase == 0) {
      if (place.thread >= kSquareWords) return;
      shared.word[place.thread] = words[place.thread];
      words[place.thread] = 0;
    } else if (place.thread == 0) {
      reference::judge(rules, *flag != 0, reference::total_of(shared.word), *known);
      *flag = 0;
    }
  }
};

static_assert(kSquareWords <= kThreads);

struct Counting : ThreadsAlone {
  RunState *known;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    if (place.thread == 0 && known->skips == 0) ++known->applied_count;
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

}  // namespace

int32_t judge(int64_t device, const VerdictRules *rules, RunState *run, int32_t *flag, int64_t *words, void *stream) {
  return launch(device, stream, 1, Judging{*rules, run, flag, words});
}

int32_t count_step(int64_t device, RunState *run, void *stream) { return launch(device, stream, 1, Counting{{}, run}); }

int32_t put(int64_t device, void *out, const void *from, int64_t nbytes, void *stream) {
  if (nbytes == 0) return 0;
  Putting putting{{}, static_cast<int64_t *>(out), nbytes / static_cast<int64_t>(sizeof(int64_t)), {}};
  std::memcpy(putting.word, from, static_cast<size_t>(nbytes));
  return launch(device, stream, 1, putting);
}

}  // namespace zero::kernels::cuda
