/// @file What the files of the emulation of CUDA share: streams, memory, and the bytes behind a device's addresses.
#pragma once

#include <cstdint>
#include <functional>

namespace emulated {

constexpr int32_t kFailed = 719;

/// Counts a call, and tells whether it fails.
bool fails();

/// The calling thread's; -1: none, as threads begin.
int64_t current_device();
/// Whether the calling thread was to get one, and that failed.
bool was_refused();

/// Whether the code of kernels was brought to a device. Launches before that end the process.
bool is_loaded(int64_t device);

/// Lives as long as a kernel that waits for other devices.
struct Spinning {
  Spinning();
  Spinning(const Spinning &) = delete;
  ~Spinning();
};

/// Gives a stream work, which it does late.
void give(void *stream, std::function<void()> work);
int64_t device_of_stream(void *stream);

/// -1: memory of the host.
int64_t device_of_memory(const void *address);

/// Where the bytes of a device's memory really lie. Ends the process where `nbytes` bytes from there on are not all of one piece of a
/// device's memory, as a kernel that touches other memory would.
void *bytes_of_device(const void *address, int64_t nbytes);
/// The same, and the host's memory is where it is.
void *bytes_at(const void *address, int64_t nbytes);

/// zero::kernels::cuda::Table: kernels that run on the host, in streams, on memory of emulated devices.
const void *kernels();

}  // namespace emulated
