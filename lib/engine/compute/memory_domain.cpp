/// @file Checks of the streams and the memory that a caller gives, and copies into its memory.
#include "engine/compute/memory_domain.h"

#include "engine/compute/host_kernels.h"

#include <cstring>
#include <functional>

namespace zero {

/// If a group reaches a device, memory that stays on the host needs no communicators of its own.
std::shared_ptr<const Reducer> MemoryDomain::host_reducer(const Reducer &whole) const {
  return whole.on_device() ? std::make_shared<HostReducer>(threads) : nullptr;
}

Status MemoryDomain::check_stream(void *stream) const {
  ZERO_CHECK(stream == nullptr || device != nullptr, ZERO_E_UNSUPPORTED,
             "stream is %p, but must be NULL: this optimizer works for host memory (ZERO_KEY_DEVICE names a device)", stream);
  return device != nullptr ? device->check_stream(stream) : Status();
}

Status MemoryDomain::find(const void *memory, const char *argument, bool *out_on_device) const {
  *out_on_device = false;
  return memory != nullptr && device != nullptr ? device->find(memory, argument, out_on_device) : Status();
}

Status MemoryDomain::check_on_host(const void *memory, const char *argument) const {
  bool found = false;
  ZERO_TRY(find(memory, argument, &found));
  ZERO_CHECK(!found, ZERO_E_UNSUPPORTED, "%s is memory of device %lld, but must be memory of the host here", argument,
             lld(device->index()));
  return {};
}

Status MemoryDomain::check_not_captured(const char *call, void *stream) const {
  bool captured = false;
  if (device != nullptr) ZERO_TRY(device->captures(stream, &captured));
  ZERO_CHECK(!captured, ZERO_E_STATE, "%s cannot become part of a CUDA graph", call);
  return {};
}

Status MemoryDomain::copy_out(void *dst, const std::byte *data, int64_t nbytes, bool dst_on_device, void *stream) const {
  if (dst_on_device == on_device()) {
    kernels().copy(dst, data, DType::u8, nbytes);
    return {};
  }
  if (on_device()) {
    const auto use = [dst](const std::byte *part, int64_t begin, int64_t part_nbytes) {
      std::memcpy(static_cast<std::byte *>(dst) + begin, part, static_cast<size_t>(part_nbytes));
    };
    return device->fetch(data, nbytes, stream, std::cref(use));
  }
  const auto fill = [&](std::byte *part, int64_t begin, int64_t part_nbytes) {
    kernels().copy(part, data + begin, DType::u8, part_nbytes);
  };
  return device->store(dst, nbytes, stream, std::cref(fill));
}

}  // namespace zero
