/// @file DeviceDomain: memory of a device, with kernels in its stream.
#pragma once

#include "engine/compute/device_kernels.h"
#include "engine/compute/device_reducer.h"
#include "engine/compute/memory_domain.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace zero {

class DeviceDomain final : public MemoryDomain {
 public:
  /// `given_device` is not nullptr.
  DeviceDomain(int64_t host_threads, std::unique_ptr<Device> given_device)
      : MemoryDomain(host_threads, std::move(given_device)), kernels_(*device) {}

  MemorySource source(const MemorySource &host) const override {
    MemorySource source = host;
    source.device = device.get();
    return source;
  }
  Kernels &kernels() const override { return kernels_; }
  std::shared_ptr<const Reducer> reducer(const Reducer & /*whole*/) const override {
    return std::make_shared<DeviceReducer>(kernels_, threads);
  }
  Status open(const MemorySource &source, int64_t sources_nbytes) override { return kernels_.allocate(source, sources_nbytes); }
  void close() override { kernels_.release(); }
  DeviceKernels *device_kernels() const override { return &kernels_; }

  Status wait_for(void *stream) const override { return device->wait_for(stream); }
  Status signal(void *stream) const override { return device->signal(stream); }
  Status wait() const override { return device->wait(); }

 private:
  mutable DeviceKernels kernels_;
};

}  // namespace zero
