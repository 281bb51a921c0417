/// @file libzero_cuda.so without CUDA: devices whose memory is the host's, at addresses that only
/// the emulation can read, and whose streams work late, on threads of their own.
#pragma once

#include <cstdint>

extern "C" {

/// Devices from now on; 0: none, as without a driver.
void emulated_devices(int64_t count);
/// The call number `number` of the module's functions from now on fails, and all after it; -1:
/// none.
void emulated_fail_from(int64_t number);
/// Bytes that each piece of a device's memory may have from now on; -1: any number.
void emulated_largest(int64_t nbytes);
/// 1: devices do not reach each other's memory from now on.
void emulated_apart(int64_t on);
/// 1: memory of a device takes a while and is given only when no kernel anywhere waits for other
/// devices, from now on.
void emulated_alloc_waits(int64_t on);
/// Kernels that wait for other devices now.
int64_t emulated_spinning();
/// Kernels that were launched so far, or would have been had that not failed.
int64_t emulated_launches();
/// Microseconds that the module's copies and kernels come late from now on.
void emulated_late(int64_t microseconds);
/// Streams, events and pieces of memory that were made and not given back.
int64_t emulated_objects();
}
