/// @file Taking, growing and giving back bucket buffers.
#include "engine/bucket_pool.h"

#include <zero/stats.h>

#include <algorithm>
#include <utility>

namespace zero {
namespace {

int64_t count_within(int64_t nbytes, int64_t count, int64_t limit_nbytes) {
  return limit_nbytes == 0 || nbytes == 0 ? count : std::min(count, limit_nbytes / nbytes);
}

}  // namespace

int64_t BucketPool::nbytes(int64_t nbytes, int64_t count, int64_t limit_nbytes) {
  const int64_t each = Arena::view_nbytes(nbytes);
  return each * count_within(each, count, limit_nbytes);
}

Status BucketPool::open(const MemorySource &source, int64_t nbytes, int64_t count, int64_t limit_nbytes) {
  source_ = source;
  nbytes_ = Arena::view_nbytes(nbytes);
  limit_nbytes_ = limit_nbytes;
  ZERO_CHECK(limit_nbytes == 0 || count == 0 || limit_nbytes >= nbytes_, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_POOL_LIMIT is %lld bytes, but the largest bucket alone has %lld", lld(limit_nbytes), lld(nbytes_));
  count = count_within(nbytes_, count, limit_nbytes);
  ZERO_TRY(Arena::create_shared(source, ZERO_MEMORY_GRAD_POOL, nbytes_ * count, &first_));
  free_.reserve(static_cast<size_t>(count));
  for (; buffers_ < count; ++buffers_) free_.push_back(first_.take(nbytes_));
  return {};
}

void BucketPool::release() {
  free_.clear();
  more_.clear();
  first_.release();
  buffers_ = 0;
}

std::byte *BucketPool::take() {
  if (free_.empty()) return nullptr;
  std::byte *buffer = free_.back();
  free_.pop_back();
  return buffer;
}

/// The shared ones are taken again first.
void BucketPool::give_back(std::byte *buffer) {
  const bool shared = buffer >= first_.data() && buffer < first_.data() + first_.nbytes();
  free_.insert(shared ? free_.end() : free_.begin(), buffer);
}

bool BucketPool::at_limit() const { return limit_nbytes_ != 0 && (buffers_ + 1) * nbytes_ > limit_nbytes_; }

Status BucketPool::grow(std::byte **out) {
  ZERO_CHECK(!at_limit(), ZERO_E_POOL_LIMIT,
             "gradients came so far out of order that %lld buckets of %lld bytes would be held unreduced, but ZERO_KEY_POOL_LIMIT is %lld; "
             "raise it, or give the order with zero_optimizer_set_order",
             lld(buffers_ + 1), lld(nbytes_), lld(limit_nbytes_));
  Arena arena;
  ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_GRAD_POOL, nbytes_, &arena));
  free_.reserve(static_cast<size_t>(buffers_) + 1);
  more_.push_back(std::move(arena));
  ++buffers_;
  grow_count_.fetch_add(1, std::memory_order_relaxed);
  *out = more_.back().data();
  return {};
}

}  // namespace zero
