/// @file HostDomain: memory of the host, with kernels on its threads.
#pragma once

#include "engine/compute/host_kernels.h"
#include "engine/compute/memory_domain.h"

#include <cstdint>
#include <memory>
#include <utility>

namespace zero {

class HostDomain final : public MemoryDomain {
 public:
  HostDomain(int64_t host_threads, std::unique_ptr<Device> given_device)
      : MemoryDomain(host_threads, std::move(given_device)), kernels_(host_threads) {}

  MemorySource source(const MemorySource &host) const override { return host; }
  Kernels &kernels() const override { return kernels_; }
  std::shared_ptr<const Reducer> reducer(const Reducer &whole) const override { return host_reducer(whole); }

 private:
  mutable HostKernels kernels_;
};

}  // namespace zero
