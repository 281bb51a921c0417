/// @file MemoryDomain: the memory in which an optimizer keeps parameters, gradients and states, and
/// everything that works there: arenas, kernels, sums of groups, the order of streams. Beside it
/// the device of the caller's memory, and the account of all memory. Knows no tensors and no ranks.
#pragma once

#include "core/reduction.h"
#include "engine/compute/step_kernels.h"
#include "memory/accounting.h"
#include "memory/arena.h"
#include "memory/device.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace zero {

class DeviceKernels;

struct MemoryDomain {
  MemoryDomain(int64_t host_threads, std::unique_ptr<Device> given_device) : threads(host_threads), device(std::move(given_device)) {}
  MemoryDomain(const MemoryDomain &) = delete;
  virtual ~MemoryDomain() = default;

  /// @name The optimizer's memory
  /// @{
  /// The source of its arenas; `host`: the source of arenas on the host.
  virtual MemorySource source(const MemorySource &host) const = 0;
  /// The kernels that work on it.
  virtual Kernels &kernels() const = 0;
  /// The reducer of groups that move it; nullptr: that of the group that they are split from, which
  /// is `whole`.
  virtual std::shared_ptr<const Reducer> reducer(const Reducer &whole) const = 0;
  /// Makes what kernels need; `source` is that of arenas. Sources of a reduction that come from
  /// elsewhere have `sources_nbytes` at most.
  virtual Status open(const MemorySource &, int64_t /*sources_nbytes*/) { return {}; }
  virtual void close() {}
  /// Kernels that decide steps without the host, and keep the state of the run for that; nullptr:
  /// the host decides.
  virtual DeviceKernels *device_kernels() const { return nullptr; }
  bool on_device() const { return device_kernels() != nullptr; }
  /// @}

  /// @name The order of work. On the host it has ended when a call returns.
  /// @{
  /// Work that is given from now on comes after that of `stream`, and the reverse.
  virtual Status wait_for(void * /*stream*/) const { return {}; }
  virtual Status signal(void * /*stream*/) const { return {}; }
  /// For the end of all work.
  virtual Status wait() const { return {}; }
  /// @}

  /// The reducer of groups that move memory of the host only; nullptr as in reducer().
  std::shared_ptr<const Reducer> host_reducer(const Reducer &whole) const;

  /// @name The caller's memory
  /// @{
  /// Streams are those of the device. Any thread.
  Status check_stream(void *stream) const;
  /// Finds whether memory of the caller is on the device.
  Status find(const void *memory, const char *argument, bool *out_on_device) const;
  Status check_on_host(const void *memory, const char *argument) const;
  Status check_not_captured(const char *call, void *stream) const;
  /// Into memory of the caller, on the device or not, from what is kept.
  Status copy_out(void *dst, const std::byte *data, int64_t nbytes, bool dst_on_device, void *stream) const;
  /// @}

  const int64_t threads;  ///< host threads
  /// Device that may hold the caller's gradients and parameters; nullptr: host only.
  const std::unique_ptr<Device> device;
  Accounting accounting;
};

/// Makes the domain of an optimizer.
using MakeDomain = std::function<std::unique_ptr<MemoryDomain>(int64_t threads, std::unique_ptr<Device> device)>;

}  // namespace zero
