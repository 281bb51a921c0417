/// @file SideStream: what whoever moves a device's memory between ranks needs of that device: a stream of its own beside that of the work
/// which writes and reads the memory. Groups are given one by their Reducer, so that they need not know devices.
#pragma once

#include "core/mapping.h"
#include "core/status.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace zero {

/// One thread at a time, but for find(). Where another thread marks too, ended() tells of the newest mark.
class SideStream {
 public:
  virtual ~SideStream() = default;

  /// Whether memory lies on the device rather than the host. Errors: ZERO_E_INVALID_ARGUMENT for memory of another device.
  virtual Status find(const void *memory, bool *out_here) const = 0;
  /// Zeroed memory of the device.
  virtual Status alloc(int64_t nbytes, std::shared_ptr<Mapping> *out) const = 0;
  /// Calls `use` with the device as the thread's current one, for libraries that work on that.
  virtual Status within(const std::function<void()> &use) const = 0;

  /// CUDA's.
  virtual void *stream() const = 0;
  /// What the stream is given from now on comes after the work given before.
  virtual Status wait_for_leader() = 0;
  /// Takes note of what the stream was given so far; ended() tells whether that has ended.
  virtual Status mark() = 0;
  virtual Status ended(bool *out) const = 0;

  /// Says that the stream may never end: nothing of the device is given back, because that would wait, before reclaim() takes this back.
  virtual void abandon() const = 0;
  virtual void reclaim() const = 0;
};

}  // namespace zero
