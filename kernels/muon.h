/// @file Muon: the formula in the order in which torch.optim.Muon computes it, but in fp32 where
/// torch rounds to bf16. Knows no ranks: the tensor is whole.
///
/// @verbatim
///   constants in double, rounded to fp32 once; lerp as Table::interpolate
///   m = lerp(m, g, 1 - momentum)
///   d = lerp(g, m, momentum) with Nesterov, d = m without
///   X = d, transposed when it has more rows than columns
///   X = X * (1 / max(|X|, epsilon))               |X| is the Frobenius norm
///   newton_schulz_steps times:
///     G = X X^T
///     P = fma(b, G, (G G) * c)
///     X = fma(a, X, P X)                          a, b, c = 3.4445, -4.7750, 2.0315
///   o = X, transposed back
///   p = fma(-lr * sqrt(max(1, rows / columns)), o, p * (1 - lr * weight_decay))
/// @endverbatim
///
/// Products are chains of fma over ascending k (Table::multiply), also on devices, because cuBLAS
/// gives other bits. So G and G G are their own transposes bit by bit: factors commute, and G[j][k]
/// is G[k][j]. Only one half of each is computed. |X| is the root of an exact sum of squares of
/// lines. 1 / max(...) is computed in double and limited to the largest fp32. Defaults: lr 1e-3,
/// momentum 0.95, Nesterov, epsilon 1e-7, weight_decay 0.1, 5 steps. With s the smaller and l the
/// larger side, each step takes 3 s^2 l + s^3 operations.
///
/// Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024; rate as in its
/// "original" adjustment.
#pragma once

#include "kernels/update.h"

namespace zero::kernels {

/// The distance of two matrices in the workspace of muon(), in elements: each begins on a multiple
/// of 64 bytes.
constexpr int64_t muon_part(int64_t count) { return round_up(count, 16); }
/// Returns the elements of fp32 workspace that muon() needs.
int64_t muon_workspace(int64_t rows, int64_t columns);

/// One update of a tensor of rows x columns (row-major, count = rows * columns), which `piece`
/// holds whole.
void muon(const Table &table, const UpdateSegment &piece, int64_t rows, int64_t columns, const UpdateScalars &scalars, float *workspace);

}  // namespace zero::kernels
