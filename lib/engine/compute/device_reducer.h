/// @file Device reducers: sums and copies of groups whose memory may be on a device or on the host.
/// Knows kernels; never ranks.
#pragma once

#include "core/reduction.h"
#include "engine/compute/device_kernels.h"
#include "engine/compute/host_kernels.h"
#include "memory/accounting.h"
#include "memory/device.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace zero {

/// Uses the kernels of an optimizer. One thread at a time.
class DeviceReducer final : public Reducer {
 public:
  DeviceReducer(const DeviceKernels &kernels, int64_t threads) : kernels_(kernels), host_(threads) {}
  bool reduce(const Reduction &reduction) const override;
  void copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const override;
  Status settle() const override { return kernels_.settle(); }

  bool on_device() const override { return true; }
  int64_t most_sources() const override { return kernels::cuda::kMostSources; }
  Status check_memory(const void *memory, const char *argument) const override;
  Status wait_for(void *stream) const override;
  Status open_lane(std::shared_ptr<SideStream> *out) const override { return kernels_.device().open_lane(out); }

 private:
  bool reduce_on_host(const Reduction &reduction) const;

  const DeviceKernels &kernels_;
  const HostReducer host_;
};

/// Uses a device of its own, which is opened with the first lane. Until then all memory is on the
/// host.
class GroupReducer final : public Reducer {
 public:
  GroupReducer(std::string cuda_module, int64_t device, int64_t threads);
  GroupReducer(const GroupReducer &) = delete;
  ~GroupReducer() override;

  bool reduce(const Reduction &reduction) const override;
  void copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const override {
    now().copy(out, values, nbytes, total_nbytes);
  }
  Status settle() const override { return now().settle(); }

  bool on_device() const override { return true; }
  int64_t most_sources() const override { return kernels::cuda::kMostSources; }
  Status check_memory(const void *memory, const char *argument) const override { return now().check_memory(memory, argument); }
  Status wait_for(void *stream) const override { return now().wait_for(stream); }
  /// Errors: those of Device::open and Device::allocate; ZERO_E_OUT_OF_MEMORY.
  Status open_lane(std::shared_ptr<SideStream> *out) const override;

 private:
  struct Opened;

  Status open() const;
  const Reducer &now() const;

  const std::string cuda_module_;
  const int64_t device_;
  const int64_t threads_;
  const HostReducer host_;
  mutable std::mutex mutex_;  ///< protects opening and reductions
  mutable std::unique_ptr<Opened> owned_;
  mutable std::atomic<const Opened *> opened_{nullptr};
};

}  // namespace zero
