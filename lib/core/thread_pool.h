/// @file The process's pool of host threads for kernels. Knows nothing of what the pieces do.
#pragma once

#include <cstdint>
#include <type_traits>

namespace zero {

using PieceFunction = void (*)(void *context, int64_t piece);

/// Runs function(context, piece) for piece = 0 .. pieces - 1, piece 0 on the calling thread, the others on pool threads as far as they are
/// free (otherwise on the calling thread too). Returns when all have run. Callable from any thread; pieces must not call it.
void run_pieces(int64_t pieces, PieceFunction function, void *context);

/// run_pieces for a callable.
template <class Callable>
void parallel_pieces(int64_t pieces, Callable &&callable) {
  using Plain = std::remove_reference_t<Callable>;
  run_pieces(
      pieces, [](void *context, int64_t piece) { (*static_cast<Plain *>(context))(piece); }, &callable);
}

/// Logical cores this process may use.
int64_t usable_cores();

}  // namespace zero
