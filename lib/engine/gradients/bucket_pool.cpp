/// @file Taking, growing and giving back bucket buffers.
#include "engine/gradients/bucket_pool.h"

#include <zero/stats.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace zero {
namespace {

constexpr int64_t kClassRatio = 4;  ///< between the sizes of buckets that share buffers
constexpr int kClasses = 3;         ///< smaller buckets use the buffers of larger ones

/// Sizes of the first buffers, the largest first.
std::vector<int64_t> first_sizes(std::span<const int64_t> buckets, int64_t held, int64_t limit_nbytes) {
  std::vector<int64_t> sizes;
  for (const int64_t nbytes : buckets) sizes.push_back(Arena::view_nbytes(nbytes));
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  const int64_t largest = sizes.empty() ? 0 : sizes.front();
  if (limit_nbytes != 0 && largest > 0) {
    return std::vector<int64_t>(static_cast<size_t>(std::min({held, std::ssize(sizes), limit_nbytes / largest})), largest);
  }
  std::vector<int64_t> first;
  auto next = sizes.begin();
  int64_t wanted = held;
  for (int number = 0; number < kClasses && next != sizes.end(); ++number) {
    const int64_t top = *next;
    const auto end = std::find_if(next, sizes.end(), [&](int64_t size) { return size <= top / kClassRatio; });
    const int64_t count = std::min<int64_t>(wanted, end - next);
    first.insert(first.end(), static_cast<size_t>(count), top);
    if (count == held) wanted = std::min<int64_t>(held, 1);
    next = end;
  }
  return first;
}

int64_t sum_of(const std::vector<int64_t> &sizes) {
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  return sum;
}

}  // namespace

int64_t BucketPool::nbytes(std::span<const int64_t> buckets, int64_t held, int64_t limit_nbytes) {
  return sum_of(first_sizes(buckets, held, limit_nbytes));
}

Status BucketPool::open(const MemorySource &source, std::span<const int64_t> buckets, int64_t held, int64_t limit_nbytes) {
  source_ = source;
  limit_nbytes_ = limit_nbytes;
  for (const int64_t nbytes : buckets) largest_ = std::max(largest_, Arena::view_nbytes(nbytes));
  ZERO_CHECK(limit_nbytes == 0 || held == 0 || limit_nbytes >= largest_, ZERO_E_INVALID_ARGUMENT,
             "ZERO_KEY_POOL_LIMIT is %lld bytes, but the largest bucket alone has %lld", lld(limit_nbytes), lld(largest_));
  const std::vector<int64_t> sizes = first_sizes(buckets, held, limit_nbytes);
  ZERO_TRY(Arena::create_shared(source, ZERO_MEMORY_GRAD_POOL, sum_of(sizes), &first_));
  for (const int64_t size : sizes) buffers_.push_back({.data = first_.take(size), .nbytes = size});
  std::reverse(buffers_.begin(), buffers_.end());
  shared_count_ = buffers_.size();
  return {};
}

void BucketPool::release() {
  buffers_.clear();
  first_.release();
  shared_count_ = 0;
  largest_ = 0;
}

std::byte *BucketPool::take(int64_t nbytes) {
  const auto fits = [nbytes](const Buffer &buffer) { return buffer.free && buffer.nbytes >= nbytes; };
  const auto found = std::find_if(buffers_.begin(), buffers_.end(), fits);
  if (found == buffers_.end()) return nullptr;
  found->free = false;
  return found->data;
}

void BucketPool::give_back(std::byte *data) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(), [data](const Buffer &buffer) { return buffer.data == data; });
  if (found != buffers_.end()) found->free = true;
}

bool BucketPool::at_limit() const { return limit_nbytes_ != 0 && (std::ssize(buffers_) + 1) * largest_ > limit_nbytes_; }

Status BucketPool::grow(int64_t nbytes, std::byte **out) {
  ZERO_CHECK(!at_limit(), ZERO_E_POOL_LIMIT,
             "gradients came so far out of order that %lld buckets of %lld bytes would be held unreduced, but ZERO_KEY_POOL_LIMIT is %lld; "
             "raise it, or give the order with zero_optimizer_set_order",
             lld(std::ssize(buffers_) + 1), lld(largest_), lld(limit_nbytes_));
  const auto first_own = buffers_.begin() + static_cast<std::ptrdiff_t>(shared_count_);
  auto replaced = std::find_if(first_own, buffers_.end(), [](const Buffer &buffer) { return buffer.free; });
  if (replaced != buffers_.end()) replaced->own.release();
  Buffer buffer{.nbytes = limit_nbytes_ != 0 ? largest_ : Arena::view_nbytes(nbytes), .free = false};
  const Status made = Arena::create_private(source_, ZERO_MEMORY_GRAD_POOL, buffer.nbytes, &buffer.own);
  if (!made.ok()) {
    if (replaced != buffers_.end()) buffers_.erase(replaced);
    return made;
  }
  buffer.data = buffer.own.data();
  *out = buffer.data;
  if (replaced != buffers_.end()) {
    *replaced = std::move(buffer);
  } else {
    buffers_.push_back(std::move(buffer));
  }
  grow_count_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

}  // namespace zero
