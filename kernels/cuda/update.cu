/// @file Algorithms that update on devices, one row each, and their scalars.
#include "kernels/cuda/device_update.h"

#include "kernels/cuda/device_lamb.h"
#include "kernels/cuda/entries.h"
#include "kernels/reference/muon-inl.h"
#include "kernels/reference/updates-inl.h"

#include <cstring>
#include <iterator>
#include <type_traits>

namespace zero::kernels::cuda {
namespace {

template <class Algorithm>
int32_t launch_update(int64_t device, const Update &call, void *stream) {
  return launch(device, stream, call.chunk_count, Updating<Algorithm>{call});
}

using UpdateFunction = int32_t (*)(int64_t device, const Update &call, void *stream);

/// Returns nullptr for a matrix algorithm.
template <class Algorithm>
constexpr UpdateFunction update_function() {
  if constexpr (requires { typename Algorithm::Kernel; }) {
    return launch_update<typename Algorithm::Kernel>;
  } else {
    return nullptr;
  }
}

struct Row {
  const char *name;
  UpdateFunction update;
};

/// The number of an algorithm is that of its row.
template <class... Algorithms>
struct List {
  static constexpr Row kRows[sizeof...(Algorithms)] = {{Algorithms::kName, update_function<Algorithms>()}...};

  ZERO_DEVICE static void write_constants(int64_t algorithm, const HyperParameters &hyper, Constants &out) {
    int64_t number = 0;
    (write_if<Algorithms>(number++ == algorithm, hyper, out), ...);
  }

 private:
  template <class Algorithm>
  ZERO_DEVICE static void write_if(bool asked, const HyperParameters &hyper, Constants &out) {
    using Made = typename Algorithm::Constants;
    static_assert(sizeof(Made) <= sizeof out.bytes && std::is_trivially_copyable_v<Made>);
    if (!asked) return;
    const Made made = Algorithm::constants(hyper);
    memcpy(out.bytes, &made, sizeof made);
  }
};

#define ZERO_LISTED(kernel, Algorithm) reference::Algorithm,
using Algorithms = List<ZERO_UPDATE_KERNELS(ZERO_LISTED) reference::AdamW, reference::Lamb, reference::Muon>;
#undef ZERO_LISTED

/// `update` is the number of the update, from 1.
ZERO_DEVICE void write_scalars(const StepState &known, const Recipe &recipe, int64_t update, Scalars &scalars) {
  HyperParameters hyper = recipe.hyper;
  hyper.step = update;
  Algorithms::write_constants(recipe.algorithm, hyper, scalars.constants);
  scalars.seed = recipe.seed;
  scalars.step = static_cast<uint64_t>(known.applied_count + 1);
  scalars.grad_factor = static_cast<float>(known.grad_factor);
  scalars.clip_value = recipe.clip_value;
  scalars.average_weight = static_cast<float>(1 - hyper.average_decay);
  scalars.stochastic = recipe.stochastic;
  scalars.skips = known.skips;
}

/// One thread per recipe.
struct Preparing : ThreadsAlone {
  const StepState *known;
  const Recipe *recipes;
  int64_t count;
  Scalars *out;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    const int64_t index = place.block * kThreads + place.thread;
    if (index < count) write_scalars(*known, recipes[index], known->applied_count + 1, out[index]);
  }
};

/// One thread per piece.
struct PreparingEach : ThreadsAlone {
  const StepState *known;
  const Recipe *recipes;
  const UpdateSegment *pieces;
  int64_t count;
  Scalars *out;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    const int64_t index = place.block * kThreads + place.thread;
    if (index < count) write_scalars(*known, recipes[pieces[index].recipe], *pieces[index].updates + 1, out[index]);
  }
};

}  // namespace

int32_t algorithm(const char *name) {
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(Algorithms::kRows)); ++i) {
    if (std::strcmp(Algorithms::kRows[i].name, name) == 0) return i;
  }
  return -1;
}

int32_t prepare(int64_t device, const StepState *run, const Recipe *recipes, int64_t count, Scalars *out, void *stream) {
  return launch(device, stream, (count + kThreads - 1) / kThreads, Preparing{{}, run, recipes, count, out});
}

int32_t prepare_each(int64_t device, const StepState *run, const Recipe *recipes, const UpdateSegment *pieces, int64_t count, Scalars *out,
                     void *stream) {
  return launch(device, stream, (count + kThreads - 1) / kThreads, PreparingEach{{}, run, recipes, pieces, count, out});
}

int32_t update(int64_t device, int32_t algorithm, const Update *call, void *stream) {
  return Algorithms::kRows[algorithm].update(device, *call, stream);
}

}  // namespace zero::kernels::cuda
