/// @file Declarations that the files of the emulated CUDA share: streams, memory, and the bytes of
/// device addresses.
#pragma once

#include <cstdint>
#include <functional>

namespace emulated {

constexpr int32_t kFailed = 719;

/// Counts a call, and returns true if it must fail.
bool fails();

/// The calling thread's device; -1: none, as in a new thread.
int64_t current_device();
/// True if setting a device for the calling thread has failed.
bool was_refused();

/// True if the kernels are loaded on the device. Launches before that end the process.
bool is_loaded(int64_t device);

/// Exists as long as a kernel that waits for other devices.
struct Spinning {
  Spinning();
  Spinning(const Spinning &) = delete;
  ~Spinning();
};

/// Enqueues work on a stream, which runs it late.
void give(void *stream, std::function<void()> work);
int64_t device_of_stream(void *stream);

/// Returns -1 for host memory.
int64_t device_of_memory(const void *address);

/// Returns the host address of the bytes of device memory. Ends the process if `nbytes` bytes from
/// there are not in one piece of device memory, like a kernel that accesses other memory.
void *bytes_of_device(const void *address, int64_t nbytes);
/// The same; addresses of host memory are returned unchanged.
void *bytes_at(const void *address, int64_t nbytes);

/// zero::kernels::cuda::Table with kernels that run on the host, in streams, on memory of emulated
/// devices.
const void *kernels();

}  // namespace emulated
