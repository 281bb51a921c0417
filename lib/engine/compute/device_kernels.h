/// @file DeviceKernels: the kernels of an optimizer whose arenas are in device memory, and the
/// reductions of its groups there. Knows the table of kernels and one device's stream; never ranks.
#pragma once

#include "core/reduction.h"
#include "engine/compute/host_kernels.h"
#include "engine/compute/step_kernels.h"
#include "kernels/cuda/table.h"
#include "memory/arena.h"

#include <mutex>
#include <vector>

namespace zero {

/// All work runs in the device's stream, in the order of calls. Any thread may call; update() and
/// functions that wait must be called by one thread at a time.
class DeviceKernels final : public Kernels {
 public:
  explicit DeviceKernels(Device &device) : device_(device), table_(*static_cast<const kernels::cuda::Table *>(device.kernels())) {}

  /// Loads the kernels, and allocates memory for their results and for reduction sources on the
  /// host. `source` is that of arenas.
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
  /// One workspace: matrices are updated one after another.
  int64_t workspace_count(int64_t matrices) const override { return matrices > 0 ? 1 : 0; }
  void add_norms(std::span<const UpdateJob> jobs) override;
  /// In a step that is captured into a CUDA graph, hyper-parameters on the device stay unchanged,
  /// and the jobs must be those of the step before.
  void update(std::span<const UpdateJob> jobs) override;
  void set_counts(int64_t *counts, int64_t count, int64_t value) const override;
  void count_updates(int64_t *counts, std::span<const int64_t> filled) const override;
  /// True once an update has been made.
  bool warm() const { return warm_; }
  /// Sends the hyper-parameters of jobs to the device, where updates in graphs read them.
  void refresh(std::span<const UpdateJob> jobs);

  /// @name The state of the run, of which the device has a copy
  /// @{
  void set_run(const kernels::StepState &run) const;
  /// Decides the step from the results of checks and sums of squares.
  void decide(const kernels::DecisionRules &rules) const;
  /// Called after the update of a step. Adds 1 to the count of applied steps if `counts`, unless
  /// the step was skipped, and clears the results of checks.
  void end_step(bool counts) const;
  /// The address at which kernels read the loss scale.
  double *loss_scale() const { return &told()->run.loss_scale.value; }
  /// Waits for the device.
  Status read_run(kernels::StepState *out) const;
  /// @}

  bool passed() const override;
  void finish_squares(kernels::ExactSum &sum) const override;
  Status status() const override;

  /// Reduces into device memory. One thread at a time.
  void reduce(const Reduction &reduction) const;
  /// Copies between devices and the host, in any direction.
  void move(void *out, const void *from, int64_t nbytes) const;
  /// Returns false if CUDA cannot find the memory; status() then has the reason.
  bool find(const void *memory, bool *out_on_device) const;
  /// Waits for all work.
  Status settle() const;
  Device &device() const { return device_; }

 private:
  /// Results of kernels, in device memory.
  struct Told {
    kernels::cuda::Found found;  ///< results of checks and sums of squares
    kernels::StepState run;
  };
  /// Host copies of the tables of jobs: the pieces, and the arrays to which they point.
  struct Jobs {
    std::vector<kernels::cuda::UpdateSegment> pieces;
    std::vector<const void *> sources;
    std::vector<kernels::cuda::Elements> replicas;
  };
  /// The jobs of one algorithm, or one matrix job.
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
  /// Sends the jobs if they have changed. Returns false if no kernel can be launched for them.
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
  mutable Arena sources_;          ///< on the device, for copies of sources on the host
  mutable Arena hashes_;           ///< ranges to hash, and their hashes
  std::shared_ptr<Mapping> read_;  ///< pinned host memory for the latest results that were read

  // For update(): tables in device memory, and host copies of their contents in the same layout.
  Arena chunks_;
  Arena jobs_;
  std::vector<Arena> graphs_jobs_;  ///< earlier values of jobs_, still used by captured graphs
  Arena recipes_;                   ///< by parameter set, followed by the scalars of a step
  Arena ratios_;                    ///< trust ratios, by job
  Arena sum_;                       ///< sum for the matrix that is being updated
  Jobs sent_;
  Jobs next_;
  std::vector<kernels::cuda::Recipe> sent_recipes_;
  std::vector<kernels::cuda::Recipe> next_recipes_;
  std::vector<Launch> launches_;
  bool counts_apart_ = false;  ///< each job has its own scalars; otherwise each parameter set has
  bool warm_ = false;
  bool graphs_read_jobs_ = false;
  bool jobs_told_ = false;  ///< add_norms has already sent them for the next update

  mutable std::mutex failure_mutex_;
  mutable Status failure_;
};

}  // namespace zero
