/// @file The process's pool of host threads for kernels. Knows nothing of the work of the pieces.
#pragma once

#include <cstdint>
#include <type_traits>

namespace zero {

using PieceFunction = void (*)(void *context, int64_t piece);

/// Runs function(context, piece) for piece = 0 .. pieces - 1. Piece 0 runs on the calling thread,
/// the others there and on at most threads - 1 free threads of the pool. Returns when all have run.
/// Callable from any thread; pieces must not call it.
void run_pieces(int64_t pieces, int64_t threads, PieceFunction function, void *context);

/// run_pieces for a callable.
template <class Callable>
void parallel_pieces(int64_t pieces, int64_t threads, Callable &&callable) {
  using Plain = std::remove_reference_t<Callable>;
  run_pieces(
      pieces, threads, [](void *context, int64_t piece) { (*static_cast<Plain *>(context))(piece); }, &callable);
}

/// Uses as many threads as pieces.
template <class Callable>
void parallel_pieces(int64_t pieces, Callable &&callable) {
  parallel_pieces(pieces, pieces, callable);
}

/// Logical cores the calling thread may use.
int64_t usable_cores();
/// A key that is equal for threads that may use the same cores.
uint64_t usable_cores_key();

}  // namespace zero
