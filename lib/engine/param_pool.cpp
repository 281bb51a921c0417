/// @file Choosing buffers for gathered tensors.
#include "engine/param_pool.h"

#include <zero/stats.h>

namespace zero {

Status ParamPool::take(int64_t nbytes, std::byte **out) {
  Buffer *fits = nullptr;
  Buffer *largest = nullptr;
  for (Buffer &buffer : buffers_) {
    if (!buffer.free) continue;
    if (buffer.arena.nbytes() >= nbytes && (fits == nullptr || buffer.arena.nbytes() < fits->arena.nbytes())) fits = &buffer;
    if (largest == nullptr || buffer.arena.nbytes() > largest->arena.nbytes()) largest = &buffer;
  }
  if (fits == nullptr) {
    if (largest == nullptr) largest = &buffers_.emplace_back(Buffer{{}, true});
    largest->arena.release();
    ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_PARAM_POOL, nbytes, &largest->arena));
    fits = largest;
  }
  fits->free = false;
  *out = fits->arena.data();
  return {};
}

void ParamPool::give_back(const std::byte *data) {
  for (Buffer &buffer : buffers_) {
    if (buffer.arena.data() == data) buffer.free = true;
  }
}

}  // namespace zero
