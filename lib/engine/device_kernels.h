/// @file Device kernels: what an optimizer computes where its arenas lie on a device, and what its groups' collectives do with such memory.
/// Knows the table of kernels and one device's stream; never ranks.
#pragma once

#include "core/reduction.h"
#include "engine/host_kernels.h"
#include "engine/kernels.h"
#include "kernels/cuda/table.h"
#include "memory/arena.h"

#include <mutex>
#include <vector>

namespace zero {

/// Everything runs in the device's stream, in the order of calls. Any thread; update() and what waits are for one thread at a time.
class DeviceKernels final : public Kernels {
 public:
  explicit DeviceKernels(Device &device) : device_(device), table_(*static_cast<const kernels::cuda::Table *>(device.kernels())) {}

  /// ZERO_OK when there is a kernel for the algorithm.
  Status check_algorithm(const kernels::Algorithm &algorithm) const;
  /// What kernels tell, and room for sources of reductions that lie on the host. `source` is that of arenas.
  Status allocate(const MemorySource &source, int64_t sources_nbytes);
  void release();

  bool all_within(const void *values, DType dtype, int64_t count, float limit = kLargestFinite) const override;
  void copy(void *out, const void *values, DType dtype, int64_t count) const override;
  bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit) const override;
  void clear(void *out, int64_t nbytes) const override;
  void convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count) const override;
  void scale(void *out, const void *values, DType dtype, int64_t count, float factor) const override;
  void add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const override;
  void add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const override;

  Status prepare(std::span<const UpdateJob> jobs) override;
  void update(std::span<const UpdateJob> jobs) override;

  bool passed() const override;
  void finish_squares(kernels::ExactSum &sum) const override;
  Status status() const override;

  /// Into memory of the device. One at a time.
  void reduce(const Reduction &reduction) const;
  /// Between devices and the host, any way.
  void move(void *out, const void *from, int64_t nbytes) const;
  /// False when CUDA cannot tell; status() then says why.
  bool find(const void *memory, bool *out_on_device) const;
  /// Waits for everything.
  Status settle() const;
  Device &device() const { return device_; }

 private:
  /// What kernels tell, in memory of the device.
  struct Told {
    int64_t squares[kernels::cuda::kSquareWords];
    int32_t beyond;
  };
  /// Jobs of one algorithm: one launch.
  struct Launch {
    int32_t algorithm;
    int64_t first_chunk;
    int64_t chunk_count;
  };

  void note(Status status) const;
  void note(int32_t error, const char *what) const { note(device_.check(error, what)); }
  Told *told() const { return reinterpret_cast<Told *>(told_.data()); }
  int32_t *beyond() const { return &told()->beyond; }
  void list_chunks(std::span<const UpdateJob> jobs, std::vector<kernels::cuda::Chunk> &chunks);
  void write_jobs(std::span<const UpdateJob> jobs);
  kernels::cuda::Piece piece_of(const UpdateJob &job, int64_t index) const;

  Device &device_;
  const kernels::cuda::Table &table_;
  MemorySource source_{};
  Arena told_;
  mutable Arena sources_;  ///< on the device, for sources that lie on the host
  mutable Told read_{};

  // Of update(): tables in memory of the device, and what is sent there, laid out alike.
  Arena chunks_;
  Arena jobs_;
  std::vector<kernels::cuda::Piece> pieces_;
  std::vector<kernels::cuda::Scalars> scalars_;
  std::vector<const void *> source_addresses_;
  std::vector<kernels::cuda::Elements> replicas_;
  std::vector<Launch> launches_;

  mutable std::mutex failure_mutex_;
  mutable Status failure_;
};

}  // namespace zero
