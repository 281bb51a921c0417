/// @file Choosing buffers for gathered tensors.
#include "engine/param_pool.h"

#include <zero/stats.h>

namespace zero {

ParamPool::Choice ParamPool::choose(int64_t nbytes) const {
  Choice choice;
  const auto size_of = [this](int64_t index) { return buffers_[static_cast<size_t>(index)].arena.nbytes(); };
  for (int64_t index = 0; index < static_cast<int64_t>(buffers_.size()); ++index) {
    if (!buffers_[static_cast<size_t>(index)].free) continue;
    if (size_of(index) >= nbytes && (choice.fits < 0 || size_of(index) < size_of(choice.fits))) choice.fits = index;
    if (choice.largest < 0 || size_of(index) > size_of(choice.largest)) choice.largest = index;
  }
  return choice;
}

Status ParamPool::take(int64_t nbytes, std::byte **out) {
  Choice choice = choose(nbytes);
  if (choice.fits < 0) {
    if (choice.largest < 0) {
      choice.largest = static_cast<int64_t>(buffers_.size());
      buffers_.push_back({{}, true});
    }
    Buffer &made = buffers_[static_cast<size_t>(choice.largest)];
    made.arena.release();
    ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_PARAM_POOL, nbytes, &made.arena));
    choice.fits = choice.largest;
  }
  Buffer &taken = buffers_[static_cast<size_t>(choice.fits)];
  taken.free = false;
  *out = taken.arena.data();
  return {};
}

int64_t ParamPool::nbytes_after(int64_t nbytes) const {
  int64_t sum = 0;
  for (const Buffer &buffer : buffers_) sum += buffer.arena.nbytes();
  const Choice choice = choose(nbytes);
  if (choice.fits >= 0) return sum;
  if (choice.largest >= 0) sum -= buffers_[static_cast<size_t>(choice.largest)].arena.nbytes();
  return sum + Arena::private_nbytes(nbytes);
}

int64_t ParamPool::buffer_nbytes(const std::byte *data) const {
  for (const Buffer &buffer : buffers_) {
    if (buffer.arena.data() == data) return buffer.arena.nbytes();
  }
  return 0;
}

void ParamPool::give_back(const std::byte *data) {
  for (Buffer &buffer : buffers_) {
    if (buffer.arena.data() == data) buffer.free = true;
  }
}

}  // namespace zero
