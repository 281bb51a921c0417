/// @file Copying parameters before a write, and clearing the remainders of those that changed.
#include "engine/storage/remainders.h"

#include "engine/storage/host_copy.h"

#include <cstring>

namespace zero {
namespace {

constexpr int64_t kElementNbytes = 2;  // bytes of a parameter, and of a remainder

}  // namespace

Status Remainders::keep(const MemorySource &source, std::byte *params, std::byte *remainders, int64_t count) {
  source_ = source;
  params_ = params;
  remainders_ = remainders;
  count_ = count;
  if (count == 0) return {};
  MemorySource host = source;
  host.device = nullptr;
  ZERO_TRY(Arena::create_private(host, ZERO_MEMORY_WORKSPACE, kElementNbytes * count, &before_));
  HostCopy now;
  ZERO_TRY(now.open(source, params, kElementNbytes * count));
  std::memcpy(before_.data(), now.data(), static_cast<size_t>(kElementNbytes * count));
  return {};
}

Status Remainders::clear_changed() {
  if (count_ == 0) return {};
  HostCopy params;
  HostCopy remainders;
  ZERO_TRY(params.open(source_, params_, kElementNbytes * count_));
  ZERO_TRY(remainders.open(source_, remainders_, kElementNbytes * count_));
  for (int64_t at = 0; at < kElementNbytes * count_; at += kElementNbytes) {
    if (std::memcmp(params.data() + at, before_.data() + at, kElementNbytes) != 0) std::memset(remainders.data() + at, 0, kElementNbytes);
  }
  return remainders.write_back();
}

}  // namespace zero
