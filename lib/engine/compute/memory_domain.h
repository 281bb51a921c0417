/// @file MemoryDomain: where an optimizer keeps what it has and what computes there: kernels of the host or of a device, the device that
/// memory of the caller may lie on, and the account of all memory. Knows no tensors and no ranks.
#pragma once

#include "engine/compute/device_kernels.h"
#include "engine/compute/host_kernels.h"
#include "memory/accounting.h"
#include "memory/device.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace zero {

struct MemoryDomain {
  /// Without `given_kernels` everything is kept on the host.
  MemoryDomain(int64_t threads, std::unique_ptr<Device> given_device, std::unique_ptr<DeviceKernels> given_kernels)
      : host_kernels(threads),
        device(std::move(given_device)),
        device_kernels(std::move(given_kernels)),
        kernels(device_kernels != nullptr ? static_cast<Kernels &>(*device_kernels) : host_kernels) {}

  bool on_device() const { return device_kernels != nullptr; }

  /// Streams are those of the device. Any thread.
  Status check_stream(void *stream) const;
  /// Where memory of the caller lies.
  Status find(const void *memory, const char *argument, bool *out_on_device) const;
  Status check_on_host(const void *memory, const char *argument) const;
  Status check_not_captured(const char *call, void *stream) const;
  /// Into memory of the caller, on the device or not, from what is kept.
  Status copy_out(void *dst, const std::byte *data, int64_t nbytes, bool dst_on_device, void *stream) const;

  HostKernels host_kernels;
  const std::unique_ptr<Device> device;                 ///< where the caller's gradients and parameters may lie; nullptr: on the host only
  const std::unique_ptr<DeviceKernels> device_kernels;  ///< nullptr: parameters, gradients and states are kept on the host
  Kernels &kernels;                                     ///< of what is kept
  Accounting accounting;
};

}  // namespace zero
