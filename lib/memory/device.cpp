/// @file Device: copies between a device and the host, part by part.
#include "memory/device.h"

#include "core/owned_fd.h"
#include "memory/cuda_side_stream.h"

#include <algorithm>
#include <utility>

namespace zero {
namespace {

std::string text_of(const zero_cuda_table &cuda, int32_t error) {
  char text[256] = "";
  cuda.error_text(error, text, sizeof text);
  return text;
}

std::string name_of(const zero_cuda_table &cuda, int64_t device) {
  char name[256] = "";
  const int32_t error = cuda.device_name(device, name, sizeof name);
  return error == 0 ? name : text_of(cuda, error);
}

}  // namespace

std::string describe_devices() {
  const zero_cuda_table *cuda = nullptr;
  const Status loaded = load_cuda_module({}, &cuda);
  if (!loaded.ok()) return std::string("not loaded: ") + loaded.text();
  int64_t count = 0;
  const int32_t error = cuda->device_count(&count);
  std::string text = cuda->build;
  if (error != 0) return text + "; no device: " + text_of(*cuda, error);
  for (int64_t device = 0; device < count; ++device) text += "; device " + std::to_string(device) + ": " + name_of(*cuda, device);
  return text;
}

Status Device::open(const std::string &module, int64_t index, std::unique_ptr<Device> *out) {
  const StandardFdsHeld held;  // the driver opens files in its first call
  const zero_cuda_table *cuda = nullptr;
  ZERO_TRY(load_cuda_module(module, &cuda));
  int64_t count = 0;
  const int32_t error = cuda->device_count(&count);
  ZERO_CHECK(error == 0, ZERO_E_DEVICE, "ZERO_KEY_DEVICE is %lld, but CUDA offers no device: %s", lld(index),
             text_of(*cuda, error).c_str());
  ZERO_CHECK(index < count, ZERO_E_DEVICE, "ZERO_KEY_DEVICE is %lld, but must be in 0 .. %lld, the devices that CUDA shows this process",
             lld(index), lld(count - 1));
  out->reset(new Device(*cuda, index, name_of(*cuda, index)));
  return {};
}

Status Device::check(int32_t error, const char *what) const {
  ZERO_CHECK(error == 0, ZERO_E_DEVICE_FAILED, "%s of device %lld failed: %s", what, lld(index_), text_of(cuda_, error).c_str());
  return {};
}

Status Device::allocate() {
  if (stream_ != nullptr) return {};
  int32_t error = cuda_.stream_create(index_, &stream_);
  if (error == 0) error = cuda_.event_create(index_, &turn_);
  for (Buffer &buffer : buffers_) {
    void *data = nullptr;
    if (error == 0) error = cuda_.event_create(index_, &buffer.moved);
    if (error == 0) error = cuda_.pinned_alloc(index_, kBufferNbytes, &data);
    if (error == 0) buffer.data = static_cast<std::byte *>(data);
  }
  if (error == 0) return {};
  release();
  return Status::error(ZERO_E_DEVICE, "device %lld has no stream, or the host no %lld bytes of pinned memory: %s", lld(index_),
                       lld(staging_nbytes()), text_of(cuda_, error).c_str());
}

/// Waits for current work first. The memory of a device that has failed cannot be freed.
void Device::release() {
  if (stream_ == nullptr && turn_ == nullptr) return;
  const auto free = [&cuda = cuda_, index = index_, stream = std::exchange(stream_, nullptr), turn = std::exchange(turn_, nullptr),
                     buffers = std::exchange(buffers_, {})] {
    if (stream != nullptr) (void)cuda.stream_wait(index, stream);
    for (const Buffer &buffer : buffers) {
      if (buffer.data != nullptr) (void)cuda.pinned_free(index, buffer.data);
      if (buffer.moved != nullptr) (void)cuda.event_destroy(index, buffer.moved);
    }
    if (turn != nullptr) (void)cuda.event_destroy(index, turn);
    if (stream != nullptr) (void)cuda.stream_destroy(index, stream);
  };
  give_back(index_, free);
}

Status Device::find(const void *memory, const char *argument, bool *out_here) const {
  int64_t device = -1;
  ZERO_TRY(check(cuda_.memory_device(index_, memory, &device), "looking up memory"));
  ZERO_CHECK(device < 0 || device == index_, ZERO_E_INVALID_ARGUMENT,
             "%s is memory of device %lld, but must be of the host or of device %lld (ZERO_KEY_DEVICE)", argument, lld(device),
             lld(index_));
  *out_here = device >= 0;
  return {};
}

Status Device::check_stream(void *stream) const {
  if (stream == nullptr) return {};
  int64_t device = -1;
  const int32_t error = cuda_.stream_device(index_, stream, &device);
  ZERO_CHECK(error == 0, ZERO_E_INVALID_ARGUMENT, "stream is %p, which is no stream of CUDA: %s", stream, text_of(cuda_, error).c_str());
  ZERO_CHECK(device == index_, ZERO_E_INVALID_ARGUMENT, "stream is one of device %lld, but must be of device %lld (ZERO_KEY_DEVICE)",
             lld(device), lld(index_));
  return {};
}

Status Device::begin_after(void *stream) const {
  ZERO_TRY(check(cuda_.event_record(index_, turn_, stream), "recording an event"));
  return check(cuda_.stream_follow(index_, stream_, turn_), "waiting for an event");
}

Status Device::end_before(void *stream) const {
  ZERO_TRY(check(cuda_.event_record(index_, turn_, stream_), "recording an event"));
  return check(cuda_.stream_follow(index_, stream, turn_), "waiting for an event");
}

Status Device::wait_for(void *stream) const {
  const std::lock_guard lock(mutex_);
  return begin_after(stream);
}

/// A captured stream cannot wait for work from before the capture, so the work of this object
/// becomes part of the graph first.
Status Device::signal(void *stream) const {
  bool captured = false;
  ZERO_TRY(captures(stream, &captured));
  const std::lock_guard lock(mutex_);
  if (captured) ZERO_TRY(begin_after(stream));
  return end_before(stream);
}

Status Device::captures(void *stream, bool *out) const {
  int32_t captured = 0;
  if (stream != nullptr) ZERO_TRY(check(cuda_.stream_captures(index_, stream, &captured), "a stream"));
  *out = captured != 0;
  return {};
}

Status Device::copy(void *out, const void *from, int64_t nbytes) const {
  return nbytes > 0 ? check(cuda_.copy(index_, out, from, nbytes, stream_), "a copy") : Status();
}

Status Device::clear(void *data, int64_t nbytes) const {
  return nbytes > 0 ? check(cuda_.clear(index_, data, nbytes, stream_), "clearing memory") : Status();
}

Status Device::wait() const { return stream_ != nullptr ? check(cuda_.stream_wait(index_, stream_), "work") : Status(); }

Status Device::alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const { return allocate_on_device(cuda_, index_, nbytes, out); }

Status Device::alloc_pinned(int64_t nbytes, std::shared_ptr<Mapping> *out) const {
  void *data = nullptr;
  const int32_t error = cuda_.pinned_alloc(index_, nbytes, &data);
  ZERO_CHECK(error == 0, ZERO_E_OUT_OF_MEMORY, "the host has no %lld bytes of pinned memory: %s", lld(nbytes),
             text_of(cuda_, error).c_str());
  const auto release = [&cuda = cuda_, index = index_, data] {
    give_back(index, [&cuda, index, data] { (void)cuda.pinned_free(index, data); });
  };
  return Mapping::adopt(static_cast<std::byte *>(data), nbytes, release, out);
}

Status Device::open_lane(std::shared_ptr<SideStream> *out) {
  ZERO_TRY(allocate());
  auto lane = std::make_shared<CudaSideStream>(cuda_, index_, stream_);
  ZERO_TRY(lane->open());
  *out = std::move(lane);
  return {};
}

Status Device::find_any(const void *memory, bool *out_on_device) const {
  int64_t device = -1;
  ZERO_TRY(check(cuda_.memory_device(index_, memory, &device), "looking up memory"));
  *out_on_device = device >= 0;
  return {};
}

Status Device::load_kernels() const {
  const int32_t error = cuda_.load(index_);
  ZERO_CHECK(error == 0, ZERO_E_DEVICE, "device %lld (%s) does not take the library's kernels: %s", lld(index_), name_.c_str(),
             text_of(cuda_, error).c_str());
  return {};
}

Status Device::reach(int64_t peer) const {
  const int32_t error = cuda_.reach(index_, peer);
  ZERO_CHECK(error == 0, ZERO_E_DEVICE, "device %lld does not reach the memory of device %lld: %s", lld(index_), lld(peer),
             text_of(cuda_, error).c_str());
  return {};
}

Status Device::move(const Buffer &buffer, void *out, const void *from, int64_t nbytes) {
  ZERO_TRY(check(cuda_.copy(index_, out, from, nbytes, stream_), "a copy"));
  return check(cuda_.event_record(index_, buffer.moved, stream_), "recording an event");
}

/// In all cases nothing reads the caller's memory after return.
Status Device::fetch(const void *from, int64_t nbytes, void *stream, const Use &use) {
  struct End {
    const Device &device;
    ~End() { (void)device.wait(); }
  };
  const std::lock_guard lock(mutex_);
  const End end{*this};
  ZERO_TRY(begin_after(stream));
  return fetch_parts(static_cast<const std::byte *>(from), nbytes, use);
}

/// While one part is used, the next one is copied. Copies of earlier calls come first in this
/// object's stream, so their buffers are free.
Status Device::fetch_parts(const std::byte *from, int64_t nbytes, const Use &use) {
  const auto begin_part = [&](int64_t begin) -> Status {
    if (begin >= nbytes) return {};
    const Buffer &buffer = buffers_[static_cast<size_t>(begin / kBufferNbytes % kBuffers)];
    return move(buffer, buffer.data, from + begin, std::min(kBufferNbytes, nbytes - begin));
  };
  ZERO_TRY(begin_part(0));
  for (int64_t begin = 0; begin < nbytes; begin += kBufferNbytes) {
    ZERO_TRY(begin_part(begin + kBufferNbytes));
    const Buffer &buffer = buffers_[static_cast<size_t>(begin / kBufferNbytes % kBuffers)];
    ZERO_TRY(check(cuda_.event_wait(index_, buffer.moved), "a copy"));
    use(buffer.data, begin, std::min(kBufferNbytes, nbytes - begin));
  }
  return {};
}

Status Device::store(void *to, int64_t nbytes, void *stream, const Fill &fill) {
  const std::lock_guard lock(mutex_);
  ZERO_TRY(begin_after(stream));
  Status status = store_parts(static_cast<std::byte *>(to), nbytes, fill);
  if (status.ok()) status = end_before(stream);
  if (!status.ok()) (void)cuda_.stream_wait(index_, stream_);
  return status;
}

Status Device::store_parts(std::byte *to, int64_t nbytes, const Fill &fill) {
  for (int64_t begin = 0; begin < nbytes; begin += kBufferNbytes) {
    const Buffer &buffer = buffers_[static_cast<size_t>(begin / kBufferNbytes % kBuffers)];
    ZERO_TRY(check(cuda_.event_wait(index_, buffer.moved), "a copy"));
    const int64_t part = std::min(kBufferNbytes, nbytes - begin);
    fill(buffer.data, begin, part);
    ZERO_TRY(move(buffer, to + begin, buffer.data, part));
  }
  return {};
}

}  // namespace zero
