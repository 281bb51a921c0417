/// @file The algorithms that update on devices: one row each.
#include "kernels/cuda/update.h"

#include "kernels/cuda/entries.h"
#include "kernels/reference/adagrad-inl.h"
#include "kernels/reference/adam-inl.h"
#include "kernels/reference/lion-inl.h"
#include "kernels/reference/sgd-inl.h"

#include <cstring>
#include <iterator>
#include <type_traits>

namespace zero::kernels::cuda {
namespace {

template <class Algorithm, typename Algorithm::Constants (*make)(const HyperParameters &)>
void write_constants(const HyperParameters &hyper, Constants *out) {
  const typename Algorithm::Constants constants = make(hyper);
  static_assert(sizeof constants <= sizeof out->bytes && std::is_trivially_copyable_v<typename Algorithm::Constants>);
  std::memcpy(out->bytes, &constants, sizeof constants);
}

template <class Algorithm>
int32_t launch_update(int64_t device, const Update &call, void *stream) {
  return launch(device, stream, call.chunk_count, Updating<Algorithm>{call});
}

struct Row {
  const char *name;
  void (*constants)(const HyperParameters &hyper, Constants *out);
  int32_t (*update)(int64_t device, const Update &call, void *stream);
};

template <class Algorithm, typename Algorithm::Constants (*make)(const HyperParameters &)>
constexpr Row row(const char *name) {
  return {name, write_constants<Algorithm, make>, launch_update<Algorithm>};
}

constexpr Row kRows[] = {
    row<reference::Sgd, sgd_constants>("sgd"),      row<reference::Adam, adam_constants>("adam"),
    row<reference::Adam, adamw_constants>("adamw"), row<reference::Adagrad, adagrad_constants>("adagrad"),
    row<reference::Lion, lion_constants>("lion"),
};

}  // namespace

int32_t algorithm(const char *name) {
  for (int32_t i = 0; i < static_cast<int32_t>(std::size(kRows)); ++i) {
    if (std::strcmp(kRows[i].name, name) == 0) return i;
  }
  return -1;
}

void constants(int32_t algorithm, const HyperParameters *hyper, Constants *out) { kRows[algorithm].constants(*hyper, out); }

int32_t update(int64_t device, int32_t algorithm, const Update *call, void *stream) {
  return kRows[algorithm].update(device, *call, stream);
}

}  // namespace zero::kernels::cuda
