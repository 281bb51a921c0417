/// @file Device kernels: what an optimizer computes where its arenas lie on a device, and what its groups' collectives do with such memory.
/// Knows the table of kernels and one device's stream; never ranks.
#pragma once

#include "core/reduction.h"
#include "engine/compute/host_kernels.h"
#include "engine/compute/step_kernels.h"
#include "kernels/cuda/table.h"
#include "memory/arena.h"

#include <mutex>
#include <vector>

namespace zero {

/// Everything runs in the device's stream, in the order of calls. Any thread; update() and what waits are for one thread at a time.
class DeviceKernels final : public Kernels {
 public:
  explicit DeviceKernels(Device &device) : device_(device), table_(*static_cast<const kernels::cuda::Table *>(device.kernels())) {}

  /// The code of kernels, what they tell, and room for sources of reductions that lie on the host. `source` is that of arenas.
  Status allocate(const MemorySource &source, int64_t sources_nbytes);
  void release();

  bool all_within(const void *values, DType dtype, int64_t count, float limit = kLargestFinite) const override;
  void copy(void *out, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const override;
  bool copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t total_nbytes) const override;
  void clear(void *out, int64_t nbytes) const override;
  void convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t total_nbytes = 0) const override;
  void scale(float *out, const float *values, int64_t count, float factor) const override;
  void add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const override;
  void add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const override;
  void follow(float *masters, const void *values, DType dtype, int64_t count) const override;
  void encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool may_skip = false) const override;
  void decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const override;
  void agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const override;
  Status prepare_hashes(int64_t count) const override;
  Status hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const override;

  Status prepare(std::span<const UpdateJob> jobs) override;
  /// One after the other.
  int64_t workspace_count(int64_t matrices) const override { return matrices > 0 ? 1 : 0; }
  void add_norms(std::span<const UpdateJob> jobs) override;
  /// In a step that becomes part of a CUDA graph hyper-parameters stay as they are on the device, and jobs must be those of the step
  /// before.
  void update(std::span<const UpdateJob> jobs) override;
  void set_counts(int64_t *counts, int64_t count, int64_t value) const override;
  void count_updates(int64_t *counts, std::span<const int64_t> filled) const override;
  /// True once an update has been made.
  bool warm() const { return warm_; }
  /// Hyper-parameters of jobs go to the device, where updates of graphs find them.
  void refresh(std::span<const UpdateJob> jobs);

  /// @name The run, of which the device has a copy
  /// @{
  void set_run(const kernels::StepState &run) const;
  /// The decision of the step that checks and sums of squares were about.
  void decide(const kernels::DecisionRules &rules) const;
  /// After its update, which `counts` unless it was skipped. What was found is not the next step's.
  void end_step(bool counts) const;
  /// Where kernels find it.
  double *loss_scale() const { return &told()->run.loss_scale.value; }
  /// Waits.
  Status read_run(kernels::StepState *out) const;
  /// @}

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
    kernels::cuda::Found found;  ///< by checks and sums of squares
    kernels::StepState run;
  };
  /// Where the pieces of jobs lie.
  struct Jobs {
    std::vector<kernels::cuda::UpdateSegment> pieces;
    std::vector<const void *> sources;
    std::vector<kernels::cuda::Elements> replicas;
  };
  /// Jobs of one algorithm; for matrices one job.
  struct Launch {
    const kernels::Algorithm *algorithm;
    size_t first_job;
    int64_t first_chunk;
    int64_t chunk_count;
  };

  void note(Status status) const;
  void note(int32_t error, const char *what) const { note(device_.check(error, what)); }
  Told *told() const { return reinterpret_cast<Told *>(told_.data()); }
  Told *read() const { return reinterpret_cast<Told *>(read_->data()); }
  int32_t *beyond() const { return &told()->found.flag; }
  void list_chunks(std::span<const UpdateJob> jobs, std::vector<kernels::cuda::Chunk> &chunks);
  void write_jobs(std::span<const UpdateJob> jobs, Jobs &out) const;
  bool same_jobs() const;
  bool leave_jobs_to_graphs(std::span<const UpdateJob> jobs);
  bool send_jobs();
  bool captured() const;
  /// False: nothing can be launched for these jobs.
  bool tell_jobs(std::span<const UpdateJob> jobs);
  static kernels::cuda::Reduce call_of(const Reduction &reduction, const void *const *sources);
  kernels::cuda::Scalars *scalars() const;
  void prepare_scalars() const;
  kernels::cuda::Update call_of(const Launch &launch) const;
  void update_matrix(const UpdateJob &job, int64_t scalars_index, const kernels::cuda::Update &update) const;
  void move_averages() const;

  Device &device_;
  const kernels::cuda::Table &table_;
  MemorySource source_{};
  Arena told_;
  mutable Arena sources_;          ///< on the device, for sources that lie on the host
  mutable Arena hashes_;           ///< which ranges, and their hashes
  std::shared_ptr<Mapping> read_;  ///< a Told in pinned memory of the host: what was read last

  // Of update(): tables in memory of the device, and what was sent there, laid out alike.
  Arena chunks_;
  Arena jobs_;
  std::vector<Arena> graphs_jobs_;  ///< that jobs_ was before, for the graphs captured then
  Arena recipes_;                   ///< by parameter set; behind them the scalars of a step
  Arena ratios_;                    ///< trust ratios, by job
  Arena sum_;                       ///< of the matrix that is updated
  Jobs sent_;
  Jobs next_;
  std::vector<kernels::cuda::Recipe> sent_recipes_;
  std::vector<kernels::cuda::Recipe> next_recipes_;
  std::vector<Launch> launches_;
  bool counts_apart_ = false;  ///< each job has scalars of its own; otherwise each parameter set
  bool warm_ = false;
  bool graphs_read_jobs_ = false;
  bool jobs_told_ = false;  ///< by add_norms, for the update that follows

  mutable std::mutex failure_mutex_;
  mutable Status failure_;
};

}  // namespace zero
