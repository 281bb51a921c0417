/// @file Device: one CUDA device as a rank uses it from the host. It has memory that stays on the
/// device and a stream for work. It also copies memory through two pinned buffers, so that one part
/// travels while the host works on another. Knows bytes and streams, not tensors.
#pragma once

#include "core/mapping.h"
#include "core/side_stream.h"
#include "core/status.h"
#include "memory/cuda_module.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace zero {

/// Returns the devices that CUDA offers this process, in one line, or the reason why there are
/// none. Loads the module.
std::string describe_devices();

/// Calls on one object run one after another, from any thread.
class Device {
 public:
  /// Finds device `index` through the module at `module` (empty: searched). Errors: ZERO_E_MODULE;
  /// ZERO_E_DEVICE if the driver is missing or there is no such device.
  static Status open(const std::string &module, int64_t index, std::unique_ptr<Device> *out);
  Device(const Device &) = delete;
  ~Device() { release(); }

  int64_t index() const { return index_; }
  /// CUDA's name of the device.
  const std::string &name() const { return name_; }

  /// Allocates the stream, event and buffers of copies, unless they exist. Errors: ZERO_E_DEVICE.
  Status allocate();
  void release();
  static constexpr int64_t staging_nbytes() { return kBuffers * kBufferNbytes; }

  /// Sets *out_here to true if the caller's memory is on this device, false if it is on the host.
  /// Errors: ZERO_E_INVALID_ARGUMENT for memory of another device.
  Status find(const void *memory, const char *argument, bool *out_here) const;
  /// Returns ZERO_E_INVALID_ARGUMENT if the stream is of another device. NULL is the default
  /// stream.
  Status check_stream(void *stream) const;

  /// @name Work in the stream of this object, in the order of the calls
  /// @{
  void *stream() const { return stream_; }
  /// zero::kernels::cuda::Table. Call load_kernels() before work waits for other ranks. Errors:
  /// ZERO_E_DEVICE.
  const void *kernels() const { return cuda_.kernels; }
  Status load_kernels() const;
  /// Copies `nbytes` bytes between devices and the host, in any direction. Host memory stays
  /// borrowed until wait().
  Status copy(void *out, const void *from, int64_t nbytes) const;
  Status clear(void *data, int64_t nbytes) const;
  Status wait() const;
  /// wait_for() orders later work of this object after the work already given to `stream`; signal()
  /// does the reverse.
  Status wait_for(void *stream) const;
  Status signal(void *stream) const;
  /// Sets *out to true if work given to `stream` becomes part of a CUDA graph instead of running.
  /// The work of this object then does so too.
  Status captures(void *stream, bool *out) const;
  /// Returns ZERO_OK, or ZERO_E_DEVICE_FAILED with CUDA's reason.
  Status check(int32_t error, const char *what) const;
  /// @}

  /// @name Memory that stays on the device
  /// @{
  /// Zeroed. Lives until its last holder releases it, also beyond this object. Errors:
  /// ZERO_E_OUT_OF_MEMORY.
  Status alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const;
  /// Pinned host memory, which copies access without delaying other threads' work on the device.
  /// Lives as long as that of alloc(). Errors: ZERO_E_OUT_OF_MEMORY.
  Status alloc_pinned(int64_t nbytes, std::shared_ptr<Mapping> *out) const;
  /// Sets *out_on_device to true if the address is memory of any device.
  Status find_any(const void *memory, bool *out_on_device) const;
  /// Opens a stream beside that of this object, which it may outlive. Allocates.
  Status open_lane(std::shared_ptr<SideStream> *out);
  /// Allows this object's work to access memory of device `peer` from now on. ZERO_E_DEVICE if the
  /// devices cannot access each other.
  Status reach(int64_t peer) const;
  /// @}

  // Steps allocate nothing: callables are passed by std::cref.

  /// Called with host memory that holds the next `nbytes` bytes, from byte `begin` on.
  using Use = std::function<void(const std::byte *data, int64_t begin, int64_t nbytes)>;
  /// Calls `use` for device memory part by part, after the work already given to `stream`. After
  /// return nothing reads `from`.
  Status fetch(const void *from, int64_t nbytes, void *stream, const Use &use);

  /// Called to write the bytes from `begin` on to host memory.
  using Fill = std::function<void(std::byte *data, int64_t begin, int64_t nbytes)>;
  /// Copies the bytes that `fill` writes to the device, after the work already given to `stream`.
  /// Later work of the stream runs after the copy.
  Status store(void *to, int64_t nbytes, void *stream, const Fill &fill);

 private:
  static constexpr int64_t kBuffers = 2;
  static constexpr int64_t kBufferNbytes = 2 << 20;

  struct Buffer {
    std::byte *data = nullptr;
    void *moved = nullptr;  ///< event: the copy from or to it has ended
  };

  Device(const zero_cuda_table &cuda, int64_t index, std::string name) : cuda_(cuda), index_(index), name_(std::move(name)) {}

  Status begin_after(void *stream) const;
  Status end_before(void *stream) const;
  Status move(const Buffer &buffer, void *out, const void *from, int64_t nbytes);
  Status fetch_parts(const std::byte *from, int64_t nbytes, const Use &use);
  Status store_parts(std::byte *to, int64_t nbytes, const Fill &fill);

  const zero_cuda_table &cuda_;
  const int64_t index_;
  const std::string name_;
  mutable std::mutex mutex_;
  void *stream_ = nullptr;
  void *turn_ = nullptr;  ///< event: the end of one stream's work, for which the other waits
  std::array<Buffer, kBuffers> buffers_;
};

}  // namespace zero
