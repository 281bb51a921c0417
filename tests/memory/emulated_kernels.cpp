/// @file The kernels of emulated devices: those of the library, run on the host by a stream's
/// thread after all their addresses have been translated. Knows the table's structs; never the
/// computations.
#include "kernels/cuda/table.h"
#include "kernels/muon.h"
#include "tests/kernels/host_run_kernels.h"
#include "tests/memory/emulated_cuda.h"
#include "tests/memory/emulated_device.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace emulated {
namespace {

using namespace zero::kernels::cuda;
using zero::DType;
using zero::dtype_nbytes;
using zero::kLine;
using zero::kernels::Bytes;
using zero::kernels::DecisionRules;
using zero::kernels::StepState;

std::atomic<int64_t> launches{0};

constexpr auto kF32 = static_cast<int64_t>(DType::f32);
constexpr int64_t kSquaresNbytes = kSquareWords * static_cast<int64_t>(sizeof(int64_t));

const Table &inner() { return *host_run_kernels(); }

/// Counts a launch. On a real device, a launch of a kernel that is not loaded may wait forever.
bool fails_on(int64_t device) {
  if (!is_loaded(device)) {
    std::fputs("emulated CUDA: a kernel is launched that was not loaded\n", stderr);
    std::abort();
  }
  ++launches;
  return fails();
}

int64_t nbytes_of(int64_t count, int64_t dtype) { return count * dtype_nbytes(static_cast<DType>(dtype)); }

template <class T>
T *seen(T *address, int64_t nbytes) {
  if (address == nullptr || nbytes == 0) return address;
  return static_cast<T *>(bytes_of_device(address, nbytes));
}

const void *seen(const void *address, int64_t nbytes) { return nbytes == 0 ? address : bytes_of_device(address, nbytes); }

template <class T>
std::vector<T> array_of(const T *address, int64_t count) {
  const auto nbytes = count * static_cast<int64_t>(sizeof(T));
  const T *first = count == 0 ? nullptr : static_cast<const T *>(bytes_of_device(address, nbytes));
  return std::vector<T>(first, first + count);
}

/// Translates the address. `offset`: elements between the address and the piece, in the memory of
/// other ranks.
Elements seen(Elements elements, int64_t count, int64_t offset = 0) {
  if (elements.data == nullptr || count == 0) return elements;
  const auto lines = [](int64_t entries) { return (entries + kLine - 1) / kLine; };
  elements.data = seen(elements.data, nbytes_of(offset + count, elements.dtype));
  elements.scales = seen(elements.scales, lines(offset + count) * static_cast<int64_t>(sizeof(float)));
  return elements;
}

/// A piece with host addresses, and the arrays to which it points.
struct SeenPiece {
  UpdateSegment piece;
  std::vector<const void *> sources;
  std::vector<Elements> replicas;
};

void look_up_norms(UpdateSegment &piece) {
  piece.norms = seen(piece.norms, 2 * kSquaresNbytes);
  piece.trust_ratio = seen(piece.trust_ratio, sizeof *piece.trust_ratio);
}

void look_up(SeenPiece &seen_piece) {
  UpdateSegment &piece = seen_piece.piece;
  piece.param = seen(piece.param, piece.count);
  piece.master = seen(piece.master, piece.count);
  piece.average = seen(piece.average, piece.count);
  if (piece.source_count == 0) piece.grad = seen(piece.grad, piece.count);
  for (Elements &state : piece.state) state = seen(state, piece.count);
  seen_piece.sources = array_of(piece.sources, piece.source_count);
  seen_piece.replicas = array_of(piece.replicas, piece.replica_count);
  for (const void *&source : seen_piece.sources) source = seen(source, nbytes_of(piece.peers_offset + piece.count, piece.grad.dtype));
  for (Elements &replica : seen_piece.replicas) replica = seen(replica, piece.count, piece.peers_offset);
  look_up_norms(piece);
  piece.sources = seen_piece.sources.data();
  piece.replicas = seen_piece.replicas.data();
}

/// An update with host addresses, and the arrays to which it points.
struct SeenUpdate {
  std::vector<Chunk> chunks;
  std::vector<SeenPiece> looked_up;
  std::vector<UpdateSegment> pieces;
  std::vector<Scalars> scalars;
  Update call;

  explicit SeenUpdate(const Update &given) : chunks(array_of(given.chunks, given.chunk_count)) {
    int64_t piece_count = 0;
    for (const Chunk &chunk : chunks) piece_count = std::max(piece_count, chunk.piece + 1);
    for (const UpdateSegment &piece : array_of(given.pieces, piece_count)) looked_up.push_back({piece, {}, {}});
    int64_t scalar_count = 0;
    for (SeenPiece &piece : looked_up) {
      if (piece.piece.count > 0) look_up(piece);
      pieces.push_back(piece.piece);
      scalar_count = std::max(scalar_count, piece.piece.scalars + 1);
    }
    scalars = array_of(given.scalars, scalar_count);
    call = {pieces.data(), chunks.data(), given.chunk_count, scalars.data()};
  }
  SeenUpdate(const SeenUpdate &) = delete;
};

int32_t algorithm(const char *name) { return inner().algorithm(name); }

int32_t prepare(int64_t device, const StepState *run, const Recipe *recipes, int64_t count, Scalars *out, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    const auto nbytes = [count](size_t each) { return count * static_cast<int64_t>(each); };
    inner().prepare(0, seen(run, sizeof *run), seen(recipes, nbytes(sizeof *recipes)), count, seen(out, nbytes(sizeof *out)), nullptr);
  });
  return 0;
}

int32_t prepare_each(int64_t device, const StepState *run, const Recipe *recipes, const UpdateSegment *pieces, int64_t count, Scalars *out,
                     void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    std::vector<UpdateSegment> here = array_of(pieces, count);
    int64_t recipe_count = 0;
    for (UpdateSegment &piece : here) {
      piece.updates = static_cast<const int64_t *>(seen(piece.updates, sizeof *piece.updates));
      recipe_count = std::max(recipe_count, piece.recipe + 1);
    }
    const auto nbytes = [](int64_t entries, size_t each) { return entries * static_cast<int64_t>(each); };
    inner().prepare_each(0, seen(run, sizeof *run), seen(recipes, nbytes(recipe_count, sizeof *recipes)), here.data(), count,
                         seen(out, nbytes(count, sizeof *out)), nullptr);
  });
  return 0;
}

int32_t update(int64_t device, int32_t number, const Update *call, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [number, call = *call] {
    const SeenUpdate here(call);
    inner().update(0, number, &here.call, nullptr);
  });
  return 0;
}

/// Translates the addresses of the slots that the average needs.
void look_up_average(UpdateSegment &piece) {
  piece.param = seen(piece.param, piece.average_count);
  piece.master = seen(piece.master, piece.average_count);
  piece.average = seen(piece.average, piece.average_count);
}

int32_t move_averages(int64_t device, const Update *call, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [call = *call] {
    SeenUpdate here(call);
    for (UpdateSegment &piece : here.pieces) {
      if (piece.average_count > 0) look_up_average(piece);
    }
    inner().move_averages(0, &here.call, nullptr);
  });
  return 0;
}

int32_t lamb_norms(int64_t device, const Update *call, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [call = *call] {
    const SeenUpdate here(call);
    inner().lamb_norms(0, &here.call, nullptr);
  });
  return 0;
}

int32_t lamb_trust_ratios(int64_t device, const UpdateSegment *pieces, int64_t count, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    std::vector<UpdateSegment> here = array_of(pieces, count);
    for (UpdateSegment &piece : here) look_up_norms(piece);
    inner().lamb_trust_ratios(0, here.data(), count, nullptr);
  });
  return 0;
}

/// fp32 elements, all of which a matrix product or update may access.
float *seen_floats(float *address, int64_t count) { return seen(address, nbytes_of(count, static_cast<int64_t>(DType::f32))); }

int32_t muon(int64_t device, const Matrix *call, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [call = *call]() mutable {
    const SeenUpdate here(call.update);
    call.update = here.call;
    call.scalars = static_cast<const Scalars *>(seen(call.scalars, sizeof *call.scalars));
    call.workspace = seen_floats(call.workspace, zero::kernels::muon_workspace(call.rows, call.columns));
    call.sum = seen(call.sum, sizeof *call.sum);
    inner().muon(0, &call, nullptr);
  });
  return 0;
}

int32_t decide(int64_t device, const DecisionRules *rules, const Found *found, StepState *run, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [run, rules = *rules, found] { inner().decide(0, &rules, seen(found, sizeof *found), seen(run, sizeof *run), nullptr); });
  return 0;
}

int32_t end_step(int64_t device, StepState *run, int64_t counts, int64_t *words, int64_t word_count, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    const auto nbytes = word_count * static_cast<int64_t>(sizeof *words);
    inner().end_step(0, seen(run, sizeof *run), counts, seen(words, nbytes), word_count, nullptr);
  });
  return 0;
}

int32_t put(int64_t device, void *out, const void *from, int64_t nbytes, void *stream) {
  if (fails_on(device)) return kFailed;
  const auto *first = static_cast<const std::byte *>(from);
  give(stream, [=, bytes = std::vector(first, first + nbytes)] { inner().put(0, seen(out, nbytes), bytes.data(), nbytes, nullptr); });
  return 0;
}

int32_t count_updates(int64_t device, const StepState *run, int64_t *counts, const uint64_t *updated, int64_t count, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=, words = std::vector(updated, updated + (count + 63) / 64)] {
    const auto nbytes = count * static_cast<int64_t>(sizeof *counts);
    inner().count_updates(0, seen(run, sizeof *run), seen(counts, nbytes), words.data(), count, nullptr);
  });
  return 0;
}

/// A reduction with its own arrays. The addresses of its sources are translated when it runs.
struct SeenReduce {
  explicit SeenReduce(const Reduce &given) : call(given), sources(given.sources, given.sources + given.source_count) {
    if (given.weights != nullptr) weights.assign(given.weights, given.weights + given.source_count);
  }

  const Reduce *look_up() {
    for (const void *&source : sources) source = seen(source, nbytes_of(call.count, call.dtype));
    call.sources = sources.data();
    if (call.weights != nullptr) call.weights = weights.data();
    return &call;
  }

  Reduce call;
  std::vector<const void *> sources;
  std::vector<float> weights;
};

int32_t reduce(int64_t device, const Reduce *call, int32_t *flag, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [here = SeenReduce(*call), flag]() mutable {
    here.call.out = seen(here.call.out, nbytes_of(here.call.count, here.call.out_dtype));
    inner().reduce(0, here.look_up(), seen(flag, sizeof *flag), nullptr);
  });
  return 0;
}

int32_t all_within(int64_t device, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream,
       [=] { inner().all_within(0, seen(values, nbytes_of(count, dtype)), dtype, count, limit, seen(flag, sizeof *flag), nullptr); });
  return 0;
}

int32_t copy_within(int64_t device, void *out, const void *values, int64_t dtype, int64_t count, float limit, int32_t *flag, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    const int64_t nbytes = nbytes_of(count, dtype);
    inner().copy_within(0, seen(out, nbytes), seen(values, nbytes), dtype, count, limit, seen(flag, sizeof *flag), nullptr);
  });
  return 0;
}

int32_t convert(int64_t device, void *out, int64_t out_dtype, const void *values, int64_t dtype, int64_t count, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    inner().convert(0, seen(out, nbytes_of(count, out_dtype)), out_dtype, seen(values, nbytes_of(count, dtype)), dtype, count, nullptr);
  });
  return 0;
}

int32_t scale(int64_t device, float *out, const float *values, int64_t count, float factor, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] { inner().scale(0, seen_floats(out, count), seen_floats(const_cast<float *>(values), count), count, factor, nullptr); });
  return 0;
}

int32_t add(int64_t device, void *sum, int64_t sum_dtype, const void *values, int64_t dtype, int64_t count, float factor, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    inner().add(0, seen(sum, nbytes_of(count, sum_dtype)), sum_dtype, seen(values, nbytes_of(count, dtype)), dtype, count, factor, nullptr);
  });
  return 0;
}

int32_t multiply(int64_t device, const Product *call, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [call = *call]() mutable {
    call.out = seen_floats(call.out, call.rows * call.columns);
    call.a = seen_floats(const_cast<float *>(call.a), call.rows * call.inner);
    call.b = seen_floats(const_cast<float *>(call.b), call.inner * call.columns);
    call.addend = seen_floats(const_cast<float *>(call.addend), call.rows * call.columns);
    call.skips = seen(const_cast<int64_t *>(call.skips), sizeof *call.skips);
    inner().multiply(0, &call, nullptr);
  });
  return 0;
}

int32_t add_squares(int64_t device, const void *values, int64_t dtype, int64_t count, int64_t *words, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] { inner().add_squares(0, seen(values, nbytes_of(count, dtype)), dtype, count, seen(words, kSquaresNbytes), nullptr); });
  return 0;
}

int32_t follow(int64_t device, float *masters, const void *values, int64_t dtype, int64_t count, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream,
       [=] { inner().follow(0, seen(masters, nbytes_of(count, kF32)), seen(values, nbytes_of(count, dtype)), dtype, count, nullptr); });
  return 0;
}

int32_t encode(int64_t device, const Elements *codes, const void *values, int64_t dtype, int64_t count, const StepState *run,
               void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=, codes = *codes] {
    const Elements out = seen(codes, count);
    inner().encode(0, &out, seen(values, nbytes_of(count, dtype)), dtype, count, run == nullptr ? run : seen(run, sizeof *run), nullptr);
  });
  return 0;
}

int32_t decode(int64_t device, void *out, int64_t dtype, const Elements *codes, int64_t count, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=, codes = *codes] {
    const Elements from = seen(codes, count);
    inner().decode(0, seen(out, nbytes_of(count, dtype)), dtype, &from, count, nullptr);
  });
  return 0;
}

int32_t agree(int64_t device, float *masters, const Elements *codes, int64_t count, int32_t masters_lead, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=, codes = *codes] {
    const Elements given = seen(codes, count);
    inner().agree(0, seen(masters, nbytes_of(count, kF32)), &given, count, masters_lead, nullptr);
  });
  return 0;
}

int32_t hash(int64_t device, const Bytes *ranges, int64_t count, uint64_t *out, void *stream) {
  if (fails_on(device)) return kFailed;
  give(stream, [=] {
    std::vector<Bytes> seen_ranges = array_of(ranges, count);
    for (Bytes &range : seen_ranges) range.data = seen(range.data, range.nbytes);
    inner().hash(0, seen_ranges.data(), count, seen(out, count * static_cast<int64_t>(sizeof *out)), nullptr);
  });
  return 0;
}

}  // namespace

const void *kernels() {
  static const Table table = {.struct_size = sizeof(Table),
                              .algorithm = algorithm,
                              .prepare = prepare,
                              .prepare_each = prepare_each,
                              .update = update,
                              .move_averages = move_averages,
                              .lamb_norms = lamb_norms,
                              .lamb_trust_ratios = lamb_trust_ratios,
                              .muon = muon,
                              .decide = decide,
                              .end_step = end_step,
                              .put = put,
                              .count_updates = count_updates,
                              .reduce = reduce,
                              .all_within = all_within,
                              .copy_within = copy_within,
                              .convert = convert,
                              .scale = scale,
                              .add = add,
                              .multiply = multiply,
                              .add_squares = add_squares,
                              .follow = follow,
                              .encode = encode,
                              .decode = decode,
                              .agree = agree,
                              .hash = hash};
  return &table;
}

}  // namespace emulated

int64_t emulated_launches() { return emulated::launches; }
