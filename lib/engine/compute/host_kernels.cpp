/// @file Distributes the work of kernels over threads.
#include "engine/compute/host_kernels.h"

#include "core/hash.h"
#include "kernels/convert.h"
#include "kernels/lamb.h"
#include "kernels/muon.h"
#include "kernels/touched_rows.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <type_traits>

namespace zero {
namespace {

/// Below this many elements per thread, waking a thread costs more than it saves.
constexpr int64_t kLeastElements = 32 * 1024;
constexpr int64_t kMostThreads = 256;
/// Large work is cut into more pieces than threads, so that a core which other programs disturb
/// does fewer pieces.
constexpr int64_t kPiecesPerThread = 4;

int64_t threads_for(int64_t elements, int64_t threads) {
  return std::clamp<int64_t>(std::min(elements / kLeastElements, threads), 1, kMostThreads);
}

int64_t pieces_for(int64_t elements, int64_t threads) {
  const int64_t used = threads_for(elements, threads);
  return used == 1 ? 1 : std::clamp(elements / (kPiecesPerThread * kLeastElements), used, kPiecesPerThread * used);
}

/// Pointers to that many sources fit on the stack and need no allocation.
constexpr int64_t kSourcesOnStack = 64;

/// Elements that are converted to fp32 at a time. They stay in the first-level cache.
constexpr int64_t kBlock = 1024;

/// Calls function(begin, count) for blocks of the range.
template <class Function>
void over_blocks(Range range, Function &&function) {
  for (int64_t at = range.begin; at < range.end; at += kBlock) function(at, std::min(kBlock, range.end - at));
}

template <class Pointer>
Pointer at_element(Pointer base, int64_t index, DType dtype) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte, std::byte>;
  return static_cast<Byte *>(base) + index * dtype_nbytes(dtype);
}

/// Returns elements as fp32: in place, or widened into `block`.
const float *as_f32(const void *values, DType dtype, int64_t begin, int64_t count, float *block) {
  const void *from = at_element(values, begin, dtype);
  if (dtype == DType::f32) return static_cast<const float *>(from);
  kernels::widen(kernels::active(), block, from, dtype, count);
  return block;
}

bool reduce_part(const Reduction &whole, Range range) {
  const int64_t offset = range.begin * dtype_nbytes(whole.dtype);
  const DType out_dtype = whole.out_dtype == DType{} ? whole.dtype : whole.out_dtype;
  std::array<const void *, kSourcesOnStack> sources;
  for (int64_t i = 0; i < whole.source_count; ++i) {
    sources[static_cast<size_t>(i)] = static_cast<const std::byte *>(whole.sources[i]) + offset;
  }
  Reduction part = whole;
  part.out = at_element(whole.out, range.begin, out_dtype);
  part.sources = sources.data();
  part.count = range.count();
  return kernels::active().reduce(part);
}

/// Copies a part of a whole of `total_nbytes`. A large whole bypasses the caches.
void copy_bytes(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) {
  if (total_nbytes > kernels::kStreamedNbytes) {
    kernels::active().stream(out, values, nbytes);
    kernels::active().flush();
  } else if (nbytes > 0) {
    std::memcpy(out, values, static_cast<size_t>(nbytes));
  }
}

/// True if the job updates a whole matrix, which update_matrices() does.
bool updates_matrix(const UpdateJob &job) { return job.algorithm->matrix && !job.skips; }

/// Elements of a job that are distributed over threads, in whole lines.
int64_t cut_elements(const UpdateJob &job) {
  const bool idle = job.skips && job.piece.average.data == nullptr;
  return idle || updates_matrix(job) ? 0 : round_up(job.piece.count, kLine);
}

/// The only pass over a part of a job, or its last pass.
void update_part(const UpdateJob &job, Range part) {
  const kernels::UpdateSegment piece = kernels::slice(job.piece, part.begin, part.count());
  if (job.skips) return kernels::move_average(kernels::active(), piece, job.scalars);
  if (job.touched.marks != nullptr)
    return kernels::update_rows(kernels::active(), *job.algorithm, piece, job.scalars, job.touched.from(part.begin));
  if (!job.algorithm->layerwise) return kernels::update(kernels::active(), *job.algorithm, piece, job.scalars);
  kernels::UpdateScalars scalars = job.scalars;
  const kernels::ExactSum param = kernels::ExactSum::import_limbs(job.norms);
  const kernels::ExactSum direction = kernels::ExactSum::import_limbs(job.norms + kernels::ExactSum::kExported);
  scalars.hyper.trust_ratio = kernels::lamb_trust_ratio(param, direction);
  kernels::update(kernels::active(), *job.algorithm, piece, scalars);
}

}  // namespace

int64_t host_threads(const Config &config, const Place &place) {
  if (const int64_t threads = config.i64(ZERO_KEY_THREADS); threads > 0) return threads;
  if (const char *text = std::getenv("ZERO_THREADS")) {
    if (const long threads = std::strtol(text, nullptr, 10); threads > 0) return std::min<int64_t>(threads, 4096);
  }
  return std::max<int64_t>(1, usable_cores() / std::max<int64_t>(1, place.core_sharers));
}

int64_t HostKernels::piece_count(int64_t count) const { return pieces_for(count, threads_); }

Range HostKernels::piece_of(int64_t count, int64_t index, int64_t pieces) {
  const int64_t lines = (count + kLine - 1) / kLine;
  return {std::min(scale_floor(lines, index, pieces) * kLine, count), std::min(scale_floor(lines, index + 1, pieces) * kLine, count)};
}

bool HostReducer::reduce(const Reduction &reduction) const {
  if (reduction.count == 0) return true;
  // More sources are more work per element. Beyond what fits the stack one thread does it all.
  const int64_t threads = reduction.source_count > kSourcesOnStack ? 1 : threads_;
  const int64_t pieces = pieces_for(reduction.count * reduction.source_count, threads);
  const DefaultFloats floats;
  if (pieces == 1) return kernels::active().reduce(reduction);
  std::atomic<bool> finite{true};
  parallel_pieces(pieces, threads, [&](int64_t index) {
    const Range range = HostKernels::piece_of(reduction.count, index, pieces);
    if (!range.empty() && !reduce_part(reduction, range)) finite.store(false, std::memory_order_relaxed);
  });
  return finite.load(std::memory_order_relaxed);
}

void HostReducer::copy(void *out, const void *values, int64_t nbytes, int64_t total_nbytes) const {
  copy_bytes(out, values, nbytes, total_nbytes);
}

bool HostKernels::all_within(const void *values, DType dtype, int64_t count, float limit) const {
  std::atomic<bool> within{true};
  over_lines(count, [&](Range range) {
    if (!kernels::active().all_within(at_element(values, range.begin, dtype), dtype, range.count(), limit)) {
      within.store(false, std::memory_order_relaxed);
    }
  });
  return within.load(std::memory_order_relaxed);
}

void HostKernels::copy(void *out, const void *values, DType dtype, int64_t count, int64_t total_nbytes) const {
  over_lines(count, [&](Range range) {
    copy_bytes(at_element(out, range.begin, dtype), at_element(values, range.begin, dtype), range.count() * dtype_nbytes(dtype),
               total_nbytes);
  });
}

bool HostKernels::copy_within(void *out, const void *values, DType dtype, int64_t count, float limit, int64_t total_nbytes) const {
  std::atomic<bool> within{true};
  const bool streams = total_nbytes > kernels::kStreamedNbytes;
  over_lines(count, [&](Range range) {
    if (!kernels::active().copy_within(at_element(out, range.begin, dtype), at_element(values, range.begin, dtype), dtype, range.count(),
                                       limit, streams)) {
      within.store(false, std::memory_order_relaxed);
    }
  });
  return within.load(std::memory_order_relaxed);
}

void HostKernels::clear(void *out, int64_t nbytes) const {
  constexpr int64_t kWord = 4;
  over_lines((nbytes + kWord - 1) / kWord, [&](Range words) {
    const int64_t begin = words.begin * kWord;
    std::memset(static_cast<std::byte *>(out) + begin, 0, static_cast<size_t>(std::min(words.end * kWord, nbytes) - begin));
  });
}

void HostKernels::convert(void *out, DType out_dtype, const void *values, DType dtype, int64_t count, int64_t total_nbytes) const {
  if (out_dtype == dtype) return copy(out, values, dtype, count, total_nbytes);
  const kernels::Table &table = kernels::active();
  const bool streams = total_nbytes > kernels::kStreamedNbytes;
  over_lines(count, [&](Range range) {
    alignas(64) float block[kBlock];
    alignas(64) float converted[kBlock];
    over_blocks(range, [&](int64_t begin, int64_t part) {
      void *to = at_element(out, begin, out_dtype);
      void *made = streams ? converted : to;
      if (out_dtype == DType::f32) {
        table.widen(static_cast<float *>(made), at_element(values, begin, dtype), dtype, part);
      } else {
        table.narrow(made, out_dtype, as_f32(values, dtype, begin, part, block), part);
      }
      if (streams) table.stream(to, made, part * dtype_nbytes(out_dtype));
    });
    if (streams) table.flush();
  });
}

void HostKernels::follow(float *masters, const void *values, DType dtype, int64_t count) const {
  const auto element = static_cast<size_t>(dtype_nbytes(dtype));
  over_lines(count, [&](Range range) {
    float block[kBlock];
    std::byte rounded[kBlock * sizeof(float)];
    over_blocks(range, [&](int64_t begin, int64_t part) {
      const float *wanted = as_f32(values, dtype, begin, part, block);
      const auto *given = static_cast<const std::byte *>(at_element(values, begin, dtype));
      kernels::narrow(kernels::active(), rounded, dtype, masters + begin, part);
      for (int64_t i = 0; i < part; ++i) {
        const auto at = static_cast<size_t>(i) * element;
        if (std::memcmp(rounded + at, given + at, element) != 0) masters[begin + i] = wanted[i];
      }
    });
  });
}

void HostKernels::encode(const kernels::Elements &codes, const void *values, DType dtype, int64_t count, bool) const {
  over_lines(count, [&](Range range) {
    float block[kBlock];
    over_blocks(range, [&](int64_t begin, int64_t part) {
      const float *from = as_f32(values, dtype, begin, part, block);
      kernels::active().encode(static_cast<uint8_t *>(codes.data) + begin, codes.scales + begin / kLine, codes.dtype, from, part, nullptr);
    });
  });
}

void HostKernels::decode(void *out, DType dtype, const kernels::Elements &codes, int64_t count) const {
  const auto *given = static_cast<const uint8_t *>(codes.data);
  over_lines(count, [&](Range range) {
    float block[kBlock];
    over_blocks(range, [&](int64_t begin, int64_t part) {
      void *to = at_element(out, begin, dtype);
      float *values = dtype == DType::f32 ? static_cast<float *>(to) : block;
      kernels::active().decode(values, given + begin, codes.scales + begin / kLine, codes.dtype, part);
      if (dtype != DType::f32) kernels::narrow(kernels::active(), to, dtype, values, part);
    });
  });
}

void HostKernels::agree(float *masters, const kernels::Elements &codes, int64_t count, Lead lead) const {
  const kernels::Table &table = kernels::active();
  auto *given = static_cast<uint8_t *>(codes.data);
  over_lines(count, [&](Range range) {
    for (int64_t begin = range.begin; begin < range.end; begin += kLine) {
      const int64_t part = std::min(kLine, range.end - begin);
      uint8_t made[kLine];
      float values[kLine];
      float scale = 0;
      float *line_scale = codes.scales + begin / kLine;
      table.encode(made, &scale, codes.dtype, masters + begin, part, nullptr);
      if (std::memcmp(made, given + begin, static_cast<size_t>(part)) == 0 && std::memcmp(&scale, line_scale, sizeof scale) == 0) continue;
      table.decode(values, given + begin, line_scale, codes.dtype, part);
      const auto nbytes = static_cast<size_t>(part) * sizeof(float);
      if (std::memcmp(values, masters + begin, nbytes) == 0) continue;
      if (lead == Lead::masters) {
        std::memcpy(given + begin, made, static_cast<size_t>(part));
        *line_scale = scale;
      } else {
        std::memcpy(masters + begin, values, nbytes);
      }
    }
  });
}

Status HostKernels::hash(std::span<const kernels::Bytes> ranges, uint64_t *out) const {
  // With fewer ranges per thread, waking a thread costs more than it saves.
  constexpr int64_t kLeastRanges = 8;
  const int64_t pieces = std::clamp<int64_t>(std::ssize(ranges) / kLeastRanges, 1, threads_);
  parallel_pieces(pieces, [&](int64_t piece) {
    const Range mine = even_share(std::ssize(ranges), piece, pieces);
    for (auto i = static_cast<size_t>(mine.begin); i < static_cast<size_t>(mine.end); ++i)
      out[i] = hash_of(ranges[i].data, static_cast<size_t>(ranges[i].nbytes));
  });
  return {};
}

void HostKernels::scale(float *out, const float *values, int64_t count, float factor) const {
  over_lines(count, [&](Range range) { kernels::active().scale(out + range.begin, values + range.begin, range.count(), factor); });
}

void HostKernels::add(void *sum, DType sum_dtype, const void *values, DType dtype, int64_t count, float factor) const {
  const kernels::Table &table = kernels::active();
  over_lines(count, [&](Range range) {
    float block[kBlock];
    float sums[kBlock];
    over_blocks(range, [&](int64_t begin, int64_t part) {
      const float *addend = as_f32(values, dtype, begin, part, block);
      void *to = at_element(sum, begin, sum_dtype);
      if (factor != 1) {
        table.scale(block, addend, part, factor);
        addend = block;
      }
      float *result = sum_dtype == DType::f32 ? static_cast<float *>(to) : sums;
      table.add(result, as_f32(sum, sum_dtype, begin, part, sums), addend, part);
      if (sum_dtype != DType::f32) kernels::narrow(table, to, sum_dtype, sums, part);
    });
  });
}

void HostKernels::add_squares(const void *values, DType dtype, int64_t count, kernels::ExactSum &sum) const {
  constexpr int64_t kMostSums = 16;
  const int64_t pieces = std::min(piece_count(count), kMostSums);
  const DefaultFloats floats;
  std::array<kernels::ExactSum, kMostSums> sums{};
  parallel_pieces(pieces, threads_, [&](int64_t index) {
    const Range piece = piece_of(count, index, pieces);
    kernels::active().add_squares(at_element(values, piece.begin, dtype), dtype, piece.count(), sums[static_cast<size_t>(index)]);
  });
  for (int64_t index = 0; index < pieces; ++index) sum.merge(sums[static_cast<size_t>(index)]);
}

void HostKernels::add_norms(std::span<const UpdateJob> jobs) {
  for (const UpdateJob &job : jobs) {
    if (!job.algorithm->layerwise || job.skips) continue;
    kernels::ExactSum param;
    kernels::ExactSum direction;
    std::mutex mutex;
    over_lines(job.piece.count, [&](Range range) {
      const kernels::UpdateSegment part = kernels::slice(job.piece, range.begin, range.count());
      kernels::ExactSum part_param;
      kernels::ExactSum part_direction;
      kernels::lamb_moments(kernels::active(), part, job.scalars);
      kernels::lamb_add_norms(kernels::active(), part, job.scalars, part_param, part_direction);
      const std::lock_guard lock(mutex);
      param.merge(part_param);
      direction.merge(part_direction);
    });
    param.export_limbs(job.norms);
    direction.export_limbs(job.norms + kernels::ExactSum::kExported);
  }
}

void HostKernels::update(std::span<const UpdateJob> jobs) {
  int64_t total = 0;
  for (const UpdateJob &job : jobs) total += cut_elements(job);
  over_lines(total, [&](Range mine) {
    int64_t begin = 0;
    for (const UpdateJob &job : jobs) {
      const int64_t elements = cut_elements(job);
      const Range part = intersect(mine, {begin, begin + std::min(elements, job.piece.count)});
      if (!part.empty()) update_part(job, {part.begin - begin, part.end - begin});
      begin += elements;
    }
  });
  update_matrices(jobs);
}

/// Each thread takes the next free matrix.
void HostKernels::update_matrices(std::span<const UpdateJob> jobs) const {
  const int64_t matrices = std::count_if(jobs.begin(), jobs.end(), updates_matrix);
  if (matrices == 0) return;
  const int64_t threads = workspace_count(matrices);
  const DefaultFloats floats;
  std::atomic<int64_t> taken{0};
  parallel_pieces(threads, [&](int64_t thread) {
    int64_t mine = taken.fetch_add(1, std::memory_order_relaxed);
    int64_t number = 0;
    for (const UpdateJob &job : jobs) {
      if (!updates_matrix(job) || number++ != mine) continue;
      float *workspace = job.workspace + thread * job.workspace_apart;
      kernels::muon(kernels::active(), job.piece, job.rows, job.columns, job.scalars, workspace);
      mine = taken.fetch_add(1, std::memory_order_relaxed);
    }
  });
}

void HostKernels::set_counts(int64_t *counts, int64_t count, int64_t value) const { std::fill_n(counts, count, value); }

void HostKernels::count_updates(int64_t *counts, std::span<const int64_t> filled) const {
  for (size_t i = 0; i < filled.size(); ++i) counts[i] += filled[i] > 0 ? 1 : 0;
}

}  // namespace zero
