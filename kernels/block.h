/// @file Block: a window over some elements of a piece, in fp32. Slots stored as f32 are used in
/// place. Other slots pass through buffers that stay in the L1 cache. update.h states the
/// roundings. Knows no algorithm.
#pragma once

#include "kernels/update.h"

namespace zero::kernels {

/// True if kernels that are given the gradient in this dtype can round the parameter as well. The
/// parameter must have an fp32 master and the gradient's 16-bit dtype, or bf16 if gradients are
/// f32.
bool is_rounded_by_kernels(const UpdateSegment &piece, DType grad_dtype);

/// True if kernels can take the parameter as two 16-bit halves. They copy only the upper half to
/// replicas, so no replica may take the master.
bool is_split_by_kernels(const UpdateSegment &piece);

class Block {
 public:
  static constexpr int64_t kMost = 1024;  ///< elements; whole lines

  Block(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars);
  Block(const Block &) = delete;
  ~Block() {
    if (scalars_.streams) table_.flush();
  }

  /// Moves the window to the elements from `begin` on and returns how many it holds.
  int64_t move(int64_t begin);
  /// The memory that the next window will load into buffers.
  const Ahead *ahead() const { return &ahead_; }

  /// @name The elements of the window in fp32. Slots that are not kept are nullptr.
  /// @{
  float *param();
  const float *grad();  ///< scaled and clipped
  float *state(int index);
  /// @}

  /// @name For kernels that read slots in their stored format.
  /// @{
  void give_gradient(Slots &slots);
  /// Call after give_gradient. If possible, lets the kernel round the parameter while it is in
  /// registers; store_param then does not round it.
  void let_round(Slots &slots);
  /// @}

  /// @name Round the results of param() and state() into the slots.
  /// @{
  void store_param(const float *values);
  void store_state(int index, const float *values);
  /// @}

  /// Moves the average when the parameter is not updated.
  void move_average() { add_to_average(param()); }

 private:
  float *load(const Elements &elements, float *buffer) const;
  const void *stored_gradient();
  void store(const Elements &elements, const float *values, const uint32_t *random) const;
  void put(const Elements &window, const float *values, const uint32_t *random) const;
  void copy_out(const Elements &to, const Elements &window) const;
  /// Rounds stochastically if the scalars say so and the slot is not f32.
  void store_rounded(const Elements &elements, const float *values, uint32_t slot);
  void add_to_average(const float *values);

  void ask_ahead(const Elements &elements, int64_t offset);

  const Table &table_;
  const UpdateSegment &piece_;
  const UpdateScalars &scalars_;
  Ahead ahead_;
  int64_t begin_ = 0;
  int64_t count_ = 0;
  bool rounded_by_kernel_ = false;
  alignas(64) float param_[kMost];
  alignas(64) float grad_[kMost];
  alignas(64) float state_[kMaxStates][kMost];
  alignas(64) uint32_t random_[kMost];
  alignas(64) uint16_t sums_[kMost];     ///< sum of 16-bit gradients
  alignas(64) uint16_t rounded_[kMost];  ///< the parameter in its dtype, before it is copied out
  float scales_[kMost / kLine];
};

}  // namespace zero::kernels
