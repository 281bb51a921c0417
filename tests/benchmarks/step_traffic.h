/// @file Bytes that must move in one AdamW step of N ranks in one memory, per parameter and over all ranks together. Knows no times.
///
/// r = read, w = written. Every gradient is read once, every state is updated once, every copy of a parameter written once. In fp32 all
/// have 4 bytes; mixed: parameters p and gradients g have 2, and there is an fp32 master M.
///
///                                                              fp32        mixed
///   N = 1    r g, p, m, v                w p, m, v               28          28          nothing is summed
///   stage 0  r N g, p, m, v              w N p, N m, N v         12 + 16 N   12 + 16 N   one update, written into N replicas
///   stage 1  r N g, p, m, v              w N p, m, v             20 + 8 N    24 + 4 N
///   stage 2  r N g, then sum, p, m, v    w sum, then N p, m, v   28 + 8 N    28 + 4 N    sums are made early, gradients freed
///   stage 3  r N g, then sum, p, m, v    w sum, then p, m, v     32 + 4 N    30 + 2 N
///   stage 3, parameters acquired: r N p  w N p                   8 N         4 N
///
/// Mixed: what is read as p is M, which is written as often as m; p is only written. Stages 1 and 2 with one copy of the parameters write
/// it once: N - 1 times p less.
///
/// The same for `step` alone: without work of the caller between grad_ready and step, the gradients are summed in step.
#pragma once

#include <cstdint>

namespace zero::bench {

enum class Phase { step, gradients_and_step, acquire };

constexpr const char *phase_name(Phase phase) {
  return phase == Phase::step ? "step" : phase == Phase::acquire ? "acquire" : "gradients+step";
}

constexpr int64_t ideal_nbytes(int64_t stage, int64_t ranks, Phase phase, bool one_copy, bool mixed) {
  const int64_t element = mixed ? 2 : 4;
  const int64_t states = mixed ? 24 : 20;  // and p as it is read
  if (phase == Phase::acquire) return 2 * element * ranks;
  if (ranks == 1) return 28;
  const int64_t saved = one_copy ? element * (ranks - 1) : 0;
  switch (stage) {
    case 0:
      return 12 + 16 * ranks;
    case 1:
      return states + 2 * element * ranks - saved;
    case 2:
      return states + 2 * element + 2 * element * ranks - saved;
    default:
      return states + 3 * element + element * ranks;
  }
}

static_assert(ideal_nbytes(1, 2, Phase::step, false, false) == 36 && ideal_nbytes(1, 2, Phase::step, true, false) == 32);
static_assert(ideal_nbytes(3, 2, Phase::step, false, false) == 40 && ideal_nbytes(3, 2, Phase::step, false, true) == 34);

}  // namespace zero::bench
