/// @file Bytes that must move in one fp32 AdamW step of N ranks in one memory, per parameter and over all ranks together. Knows no times.
///
/// 4-byte elements; r = read, w = written. Every gradient is read once, every state is updated once, every copy of a parameter written
/// once.
///
///   N = 1    r g, p, m, v                     w p, m, v                     28          nothing is summed
///   stage 0  r N g, p, m, v                   w N p, N m, N v               12 + 16 N   one update, written into N replicas
///   stage 1  r N g, p, m, v                   w N p, m, v                   20 + 8 N
///   stage 2  r N g, then sum, p, m, v         w sum, then N p, m, v         28 + 8 N    a gradient is summed when it is ready, then freed
///   stage 3  r N g, then sum, p, m, v         w sum, then p, m, v           32 + 4 N
///   stage 3, parameters acquired: r N p       w N p                         8 N
///
/// Stages 1 and 2 with one copy of the parameters write it once: 4 (N - 1) less.
///
/// The same for `step` alone: without work of the caller between grad_ready and step, the gradients are summed in step.
#pragma once

#include <cstdint>

namespace zero::bench {

enum class Phase { step, gradients_and_step, acquire };

constexpr const char *phase_name(Phase phase) {
  return phase == Phase::step ? "step" : phase == Phase::acquire ? "acquire" : "gradients+step";
}

constexpr int64_t ideal_nbytes(int64_t stage, int64_t ranks, Phase phase, bool one_copy) {
  if (phase == Phase::acquire) return 8 * ranks;
  if (ranks == 1) return 28;
  switch (stage) {
    case 0:
      return 12 + 16 * ranks;
    case 1:
      return 20 + 8 * ranks - (one_copy ? 4 * (ranks - 1) : 0);
    case 2:
      return 28 + 8 * ranks - (one_copy ? 4 * (ranks - 1) : 0);
    default:
      return 32 + 4 * ranks;
  }
}

static_assert(ideal_nbytes(1, 2, Phase::step, false) == 36);
static_assert(ideal_nbytes(1, 2, Phase::step, true) == 32);

}  // namespace zero::bench
