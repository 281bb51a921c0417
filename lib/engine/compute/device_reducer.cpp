/// @file Sums and copies between a device and the host, in any direction.
#include "engine/compute/device_reducer.h"

#include <algorithm>
#include <vector>

namespace zero {

/// If CUDA cannot find the memory, the function does nothing and settle() returns the reason.
bool DeviceReducer::reduce(const Reduction &reduction) const {
  bool there = false;
  if (!kernels_.find(reduction.out, &there)) return true;
  if (!there) return reduce_on_host(reduction);
  kernels_.reduce(reduction);
  return true;
}

/// Copies sources on the device to the host first.
bool DeviceReducer::reduce_on_host(const Reduction &reduction) const {
  const auto nbytes = static_cast<size_t>(reduction.count * dtype_nbytes(reduction.dtype));
  std::vector<const void *> sources(reduction.sources, reduction.sources + reduction.source_count);
  std::vector<std::vector<std::byte>> brought;
  for (const void *&source : sources) {
    bool there = false;
    if (!kernels_.find(source, &there)) return true;
    if (!there) continue;
    std::vector<std::byte> &room = brought.emplace_back(nbytes);
    kernels_.move(room.data(), source, static_cast<int64_t>(nbytes));
    source = room.data();
  }
  if (!brought.empty() && !kernels_.settle().ok()) return true;
  Reduction on_host = reduction;
  on_host.sources = sources.data();
  return host_.reduce(on_host);
}

void DeviceReducer::copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const {
  bool to_device = false;
  bool from_device = false;
  if (nbytes == 0 || !kernels_.find(out, &to_device) || !kernels_.find(values, &from_device)) return;
  if (to_device || from_device) {
    kernels_.move(out, values, nbytes);
  } else {
    host_.copy(out, values, nbytes, total_nbytes);
  }
}

Status DeviceReducer::check_memory(const void *memory, const char *argument) const {
  bool here = false;
  return memory != nullptr ? kernels_.device().find(memory, argument, &here) : Status();
}

/// Calls of several ranks cannot be part of a CUDA graph. The check comes before wait_for(),
/// because waiting for a captured stream would add this device's work to the graph.
Status DeviceReducer::wait_for(void *stream) const {
  const Device &device = kernels_.device();
  bool captured = false;
  ZERO_TRY(device.check_stream(stream));
  ZERO_TRY(device.captures(stream, &captured));
  ZERO_CHECK(!captured, ZERO_E_STATE, "stream is captured, but calls in which ranks meet cannot become part of a CUDA graph");
  return device.wait_for(stream);
}

/// The device of a group, with its kernels and reducer.
struct GroupReducer::Opened {
  explicit Opened(std::unique_ptr<Device> opened, int64_t threads)
      : device(std::move(opened)), kernels(*device), reducer(kernels, threads) {}

  const AllocatorHook hook{};
  Accounting accounting;
  const std::unique_ptr<Device> device;
  DeviceKernels kernels;
  const DeviceReducer reducer;
};

GroupReducer::GroupReducer(std::string cuda_module, int64_t device, int64_t threads)
    : cuda_module_(std::move(cuda_module)), device_(device), threads_(threads), host_(threads) {}

GroupReducer::~GroupReducer() = default;

Status GroupReducer::open() const {
  const std::lock_guard lock(mutex_);
  if (opened_.load(std::memory_order_relaxed) != nullptr) return {};
  std::unique_ptr<Device> device;
  ZERO_TRY(Device::open(cuda_module_, device_, &device));
  auto opened = std::make_unique<Opened>(std::move(device), threads_);
  ZERO_TRY(opened->kernels.allocate({&opened->hook, &opened->accounting, false, opened->device.get()}, 0));
  owned_ = std::move(opened);
  opened_.store(owned_.get(), std::memory_order_release);
  return {};
}

const Reducer &GroupReducer::now() const {
  const Opened *opened = opened_.load(std::memory_order_acquire);
  return opened != nullptr ? static_cast<const Reducer &>(opened->reducer) : host_;
}

Status GroupReducer::open_lane(std::shared_ptr<SideStream> *out) const {
  ZERO_TRY(open());
  return owned_->device->open_lane(out);
}

/// Groups that were split from one another share a reducer, and its memory for sources on the host.
bool GroupReducer::reduce(const Reduction &reduction) const {
  if (opened_.load(std::memory_order_acquire) == nullptr) return host_.reduce(reduction);
  const std::lock_guard lock(mutex_);
  return owned_->reducer.reduce(reduction);
}

}  // namespace zero
