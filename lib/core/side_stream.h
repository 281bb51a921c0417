/// @file SideStream: a stream of a device for moving its memory between ranks, beside the stream of
/// the work that writes and reads the memory. Groups receive one from their Reducer, so that they
/// know no devices.
#pragma once

#include "core/mapping.h"
#include "core/status.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace zero {

/// One thread at a time, except for find(). If another thread marks too, ended() refers to the
/// newest mark.
class SideStream {
 public:
  virtual ~SideStream() = default;

  /// Sets *out_here to true if the memory is on the device, false if it is on the host. Errors:
  /// ZERO_E_INVALID_ARGUMENT for memory of another device.
  virtual Status find(const void *memory, bool *out_here) const = 0;
  /// Allocates zeroed memory of the device.
  virtual Status alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const = 0;
  /// Calls `use` with the device as the thread's current one, for libraries that use the current
  /// device.
  virtual Status within(const std::function<void()> &use) const = 0;

  /// The CUDA stream.
  virtual void *stream() const = 0;
  /// Later work of the stream runs after the work that its leader has been given so far.
  virtual Status wait_for_leader() = 0;
  /// Marks the work given to the stream so far; ended() returns whether it has ended.
  virtual Status mark() = 0;
  virtual Status ended(bool *out) const = 0;

  /// Declares that the stream may never end. Memory of the device is then not freed, because that
  /// would wait, until reclaim() revokes this.
  virtual void abandon() const = 0;
  virtual void reclaim() const = 0;
};

}  // namespace zero
