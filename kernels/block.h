/// @file A window of some elements of a piece in fp32: slots that are stored as f32 are used in place, the others in buffers that stay in
/// the first-level cache. update.h states the roundings. Knows no algorithm.
#pragma once

#include "kernels/update.h"

namespace zero::kernels {

/// Whether kernels that are given the gradient in this dtype can round the parameter, which has an fp32 master: one of the same 16 bits, or
/// bf16 where that is f32.
bool is_rounded_by_kernels(const UpdateSegment &piece, DType grad_dtype);

/// Whether kernels can take the parameter in two halves, of which they hand on the upper one.
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
  /// What the next window will load into buffers.
  const Ahead *ahead() const { return &ahead_; }

  /// @name The elements of the window in fp32. Slots that are not kept are nullptr.
  /// @{
  float *param();
  const float *grad();  ///< what the algorithm sees
  float *state(int index);
  /// @}

  /// @name For kernels that take slots as they are stored.
  /// @{
  void give_gradient(Slots &slots);
  /// After give_gradient: where it can, the kernel rounds the parameter while it has it in registers, and store_param does not.
  void let_round(Slots &slots);
  /// @}

  /// @name Rounds what param() and state() returned into the slots.
  /// @{
  void store_param(const float *values);
  void store_state(int index, const float *values);
  /// @}

  /// Where the parameter stays as it is.
  void move_average() { add_to_average(param()); }

 private:
  float *load(const Elements &elements, float *buffer) const;
  const void *stored_gradient();
  void store(const Elements &elements, const float *values, const uint32_t *random) const;
  void put(const Elements &window, const float *values, const uint32_t *random) const;
  void copy_out(const Elements &to, const Elements &window) const;
  /// Stochastically where the scalars say so.
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
  alignas(64) uint16_t sums_[kMost];     ///< of 16-bit gradients
  alignas(64) uint16_t rounded_[kMost];  ///< what is written of the parameter
  float scales_[kMost / kLine];
};

}  // namespace zero::kernels
