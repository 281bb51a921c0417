/// @file Device: one CUDA device as a rank reaches it from the host: memory that stays there, a stream for work on it, and memory that is
/// read and written through two pinned buffers, so that one part travels while the host works on another. Knows bytes and streams; never
/// tensors.
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

/// The devices that CUDA offers this process, in one line; or why there are none. Loads the module.
std::string describe_devices();

/// Calls of one object come one after another, whichever thread they are made on.
class Device {
 public:
  /// Finds device `index` through the module at `module` (empty: wherever it is found). Errors: ZERO_E_MODULE; ZERO_E_DEVICE when the
  /// driver is missing or there is no such device.
  static Status open(const std::string &module, int64_t index, std::unique_ptr<Device> *out);
  Device(const Device &) = delete;
  ~Device() { release(); }

  int64_t index() const { return index_; }
  /// As CUDA calls it.
  const std::string &name() const { return name_; }

  /// Makes what copies need, unless it is there. Errors: ZERO_E_DEVICE.
  Status allocate();
  void release();
  static constexpr int64_t staging_nbytes() { return kBuffers * kBufferNbytes; }

  /// Whether memory of the caller lies on this device rather than the host. Errors: ZERO_E_INVALID_ARGUMENT for memory of another device.
  Status find(const void *memory, const char *argument, bool *out_here) const;
  /// ZERO_E_INVALID_ARGUMENT when the stream is of another device. NULL is the default stream.
  Status check_stream(void *stream) const;

  /// @name Work in the stream of this object, in the order in which it is given
  /// @{
  void *stream() const { return stream_; }
  /// zero::kernels::cuda::Table. Their code has to be loaded before work waits for other ranks. Errors: ZERO_E_DEVICE.
  const void *kernels() const { return cuda_.kernels; }
  Status load_kernels() const;
  /// `nbytes` bytes between devices and the host, any way. Memory of the host stays borrowed until wait().
  Status copy(void *out, const void *from, int64_t nbytes) const;
  Status clear(void *data, int64_t nbytes) const;
  Status wait() const;
  /// What this object does from now on comes after what `stream` was given, and the reverse.
  Status wait_for(void *stream) const;
  Status signal(void *stream) const;
  /// Whether what `stream` is given becomes part of a CUDA graph instead of being done. So does the work of this object then.
  Status captures(void *stream, bool *out) const;
  /// ZERO_OK, or ZERO_E_DEVICE_FAILED with CUDA's reason.
  Status check(int32_t error, const char *what) const;
  /// @}

  /// @name Memory that stays on the device
  /// @{
  /// Zeroed. Lives until the last holder lets go of it, also beyond this object. Errors: ZERO_E_OUT_OF_MEMORY.
  Status alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const;
  /// The host's, which copies reach without holding up what other threads give the device. Lives as long as that of alloc().
  /// Errors: ZERO_E_OUT_OF_MEMORY.
  Status alloc_pinned(int64_t nbytes, std::shared_ptr<Mapping> *out) const;
  /// Whether an address is memory of any device.
  Status find_any(const void *memory, bool *out_on_device) const;
  /// A stream beside that of this object, which it may outlive; allocates.
  Status open_lane(std::shared_ptr<SideStream> *out);
  /// Memory of `peer` may be used in this object's work from now on. ZERO_E_DEVICE where the devices do not reach each other.
  Status reach(int64_t peer) const;
  /// @}

  // Steps allocate nothing: what is called is passed by std::cref.

  /// Called with host memory that holds the next `nbytes` bytes, from byte `begin` on.
  using Use = std::function<void(const std::byte *data, int64_t begin, int64_t nbytes)>;
  /// Calls `use` for memory of the device part by part, after what `stream` was given before. On return nothing reads `from` any more.
  Status fetch(const void *from, int64_t nbytes, void *stream, const Use &use);

  /// Called to write the bytes from `begin` on into host memory.
  using Fill = std::function<void(std::byte *data, int64_t begin, int64_t nbytes)>;
  /// Writes what `fill` makes to the device, after what `stream` was given before; what it is given from now on comes after that.
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
  void *turn_ = nullptr;  ///< event that hands over from the caller's stream to ours and back
  std::array<Buffer, kBuffers> buffers_;
};

}  // namespace zero
