/// @file Chooses buffers for gathered tensors.
#include "engine/parameters/param_pool.h"

#include <zero/stats.h>

#include <algorithm>

namespace zero {

size_t PoolSizes::choose(int64_t nbytes) const {
  size_t chosen = count();
  for (size_t index = 0; index < count(); ++index) {
    if (!buffers_[index].free) continue;
    const int64_t size = buffers_[index].nbytes;
    const int64_t best = chosen < count() ? buffers_[chosen].nbytes : -1;
    const bool better = size >= nbytes ? best < nbytes || size < best : best < nbytes && size > best;
    if (better) chosen = index;
  }
  return chosen;
}

size_t PoolSizes::take(int64_t nbytes) {
  const size_t index = choose(nbytes);
  if (index == count()) buffers_.push_back({nbytes, false});
  Buffer &taken = buffers_[index];
  taken = {std::max(taken.nbytes, nbytes), false};
  return index;
}

int64_t PoolSizes::nbytes() const {
  int64_t sum = 0;
  for (const Buffer &buffer : buffers_) sum += buffer.nbytes;
  return sum;
}

int64_t PoolSizes::used_nbytes() const {
  int64_t sum = 0;
  for (const Buffer &buffer : buffers_) sum += buffer.free ? 0 : buffer.nbytes;
  return sum;
}

int64_t PoolSizes::nbytes_after(int64_t nbytes) const {
  const size_t chosen = choose(nbytes);
  if (chosen == count()) return this->nbytes() + nbytes;
  return this->nbytes() + std::max(nbytes - buffers_[chosen].nbytes, int64_t{0});
}

size_t PoolSizes::largest_free() const {
  size_t largest = count();
  for (size_t index = 0; index < count(); ++index) {
    const int64_t most = largest < count() ? buffers_[largest].nbytes : 0;
    if (buffers_[index].free && buffers_[index].nbytes > most) largest = index;
  }
  return largest;
}

void ParamPool::release() {
  arenas_.clear();
  sizes_ = {};
}

Status ParamPool::take(int64_t nbytes, std::byte **out) {
  const size_t index = sizes_.take(Arena::private_nbytes(nbytes));
  if (arenas_.size() < sizes_.count()) arenas_.emplace_back();
  Arena &arena = arenas_[index];
  if (arena.nbytes() < sizes_.nbytes(index)) {
    arena.release();
    if (Status made = Arena::create_private(source_, ZERO_MEMORY_PARAM_POOL, nbytes, &arena); !made.ok()) {
      sizes_.empty(index);
      return made;
    }
  }
  *out = arena.data();
  return {};
}

void ParamPool::give_back(const std::byte *data) {
  for (size_t index = 0; index < arenas_.size(); ++index) {
    if (arenas_[index].data() == data) sizes_.give_back(index);
  }
}

int64_t ParamPool::nbytes_of(const std::byte *data) const {
  for (const Arena &arena : arenas_) {
    if (arena.data() == data) return arena.nbytes();
  }
  return 0;
}

void ParamPool::trim(int64_t most_nbytes) {
  for (size_t index = sizes_.largest_free(); index < sizes_.count() && sizes_.nbytes() > most_nbytes; index = sizes_.largest_free()) {
    arenas_[index].release();
    sizes_.empty(index);
  }
}

}  // namespace zero
