/// @file Moving averages, for pieces that are not updated, one block of threads per chunk:
/// move_average() of kernels/update.h on a device. With an fp32 parameter 12 bytes per element must
/// move.
#include "kernels/cuda/entries.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/slots.h"

namespace zero::kernels::cuda {
namespace {

static_assert(kChunk == kThreads * kQuad);

struct MovingAverages : ThreadsAlone {
  Update call;

  template <int>
  ZERO_DEVICE void run(const Place &place, Registers &, Shared &) const {
    const Chunk &chunk = call.chunks[place.block];
    const UpdateSegment &piece = call.pieces[chunk.piece];
    const Scalars &scalars = call.scalars[piece.scalars];
    const int64_t index = chunk.begin + place.thread * kQuad;
    const int64_t left = scalars.skips != 0 ? 0 : piece.average_count - index;
    if (left <= 0) return;
    const Span span = {index, left >= kQuad ? kQuad : static_cast<int>(left)};
    add_to_average(piece, scalars, span, load_param(piece, span));
  }
};

}  // namespace

int32_t move_averages(int64_t device, const Update *call, void *stream) {
  return launch(device, stream, call->chunk_count, MovingAverages{{}, *call});
}

}  // namespace zero::kernels::cuda
