/// @file The two exchanges of coded lines. The form is that of ZeRO++ (Wang et al., 2023, section
/// 3.3), with one coding per block.
#include "engine/compute/coded_mean.h"

#include "core/default_floats.h"
#include "group/collectives.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace zero {
namespace {

int64_t lines_of(int64_t count) { return round_up(count, kLine) / kLine; }

/// Most lines of `count` values that one rank sums.
int64_t most_lines(int64_t count, int64_t ranks) { return (lines_of(count) + ranks - 1) / ranks; }

int64_t lines_at_once(int64_t count, int64_t ranks) { return most_lines(std::min(count, CodedMean::kMostElements), ranks); }

int64_t full_in(std::span<const uint8_t> full) {
  return std::count_if(full.begin(), full.end(), [](uint8_t line) { return line != 0; });
}

}  // namespace

/// Every line may travel in full, and parts end on lines.
int64_t CodedMean::nbytes(const kernels::Coder &coder, int64_t count, int64_t ranks) {
  const int64_t part = lines_at_once(count, ranks);
  const int64_t lines = std::min(lines_of(count), part * ranks);
  const int64_t whole = Arena::view_nbytes(kernels::coded_nbytes(coder, lines, lines));
  const int64_t received = Arena::view_nbytes(ranks * kernels::coded_nbytes(coder, part, part));
  return 2 * whole + received + Arena::view_nbytes(ranks * part * kLine * static_cast<int64_t>(sizeof(float)));
}

Status CodedMean::open(const kernels::Coder &coder, int64_t count, int64_t ranks, const MemorySource &source) {
  coder_ = &coder;
  if (count == 0) return {};
  const int64_t part = lines_at_once(count, ranks);
  const int64_t lines = std::min(lines_of(count), part * ranks);
  const int64_t whole = Arena::view_nbytes(kernels::coded_nbytes(coder, lines, lines));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, nbytes(coder, count, ranks), &memory_));
  sent_ = memory_.take(whole);
  results_ = memory_.take(whole);
  received_ = memory_.take(Arena::view_nbytes(ranks * kernels::coded_nbytes(coder, part, part)));
  decoded_ = reinterpret_cast<float *>(memory_.take(Arena::view_nbytes(ranks * part * kLine * static_cast<int64_t>(sizeof(float)))));
  return {};
}

Range CodedMean::results_of(int64_t count, int64_t rank, int64_t ranks) {
  const Range lines = even_share(lines_of(count), rank, ranks);
  return {std::min(lines.begin * kLine, count), std::min(lines.end * kLine, count)};
}

int64_t CodedMean::most_results(int64_t count, int64_t ranks) { return most_lines(count, ranks) * kLine; }

Task CodedMean::run(Group &group, float *values, int64_t count, std::span<const uint8_t> full, double divisor, bool *finite,
                    CodingLoss loss) {
  const int64_t ranks = group.size();
  for (Range lines = {0, lines_at_once(count, ranks)}; lines.begin < most_lines(count, ranks);
       lines = {lines.end, lines.end + lines.count()}) {
    cut(count, full, ranks, lines);
    ZERO_CO_AWAIT(run_piece(group, values, divisor, finite, loss));
    if (loss.sent == nullptr) continue;
    const int64_t made = parts_[static_cast<size_t>(group.rank())].count;
    loss.result += made;
    loss.result_next += made;
  }
  co_return Status();
}

/// A part for each rank: these lines of its results, which are at most one line fewer than those of
/// another rank.
void CodedMean::cut(int64_t count, std::span<const uint8_t> full, int64_t ranks, Range lines) {
  parts_.assign(static_cast<size_t>(ranks), {});
  int64_t end = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Part &part = parts_[static_cast<size_t>(rank)];
    const Range results = even_share(std::ssize(full), rank, ranks);
    part.lines = intersect(results, {results.begin + lines.begin, results.begin + lines.end});
    part.full = full.subspan(static_cast<size_t>(part.lines.begin), static_cast<size_t>(part.lines.count()));
    part.first = part.lines.begin * kLine;
    part.count = std::max<int64_t>(std::min(part.lines.end * kLine, count) - part.first, 0);
    part.begin = end;
    part.nbytes = kernels::coded_nbytes(*coder_, part.lines.count(), full_in(part.full));
    end += part.nbytes;
  }
}

void CodedMean::encode(const Part &part, const float *values, std::byte *to) const {
  const DefaultFloats floats;
  kernels::encode_lines(kernels::active(), *coder_, values + part.first, part.count, part.full, to + part.begin);
}

void CodedMean::add_lost(const Part &part, const CodingLoss &loss, float *values) const {
  const DefaultFloats floats;
  for (int64_t i = part.first; i < part.first + part.count; ++i) values[i] += loss.sent[i];
}

/// Non-finite losses are dropped, so that one such gradient does not spoil later ones.
void CodedMean::keep_lost(const Part &part, const float *values, const std::byte *coded, float unit, float *out) const {
  const DefaultFloats floats;
  kernels::decode_lines(kernels::active(), *coder_, coded, part.count, part.full, decoded_);
  for (int64_t i = 0; i < part.count; ++i) {
    const float lost = (values[i] - decoded_[i]) * unit;
    out[i] = std::isfinite(lost) ? lost : 0;
  }
}

/// After keep_lost(), which has decoded the part. Lines in full go on as with momentum elsewhere.
void CodedMean::stop_sent(const Part &part, float *velocity) const {
  for (int64_t i = 0; i < part.count; ++i) {
    if (part.full[static_cast<size_t>(i / kLine)] == 0 && decoded_[i] != 0) velocity[i] = 0;
  }
}

/// False where a result is not finite.
bool CodedMean::sum(const Part &mine, const Reducer &reducer, float *values, double divisor) const {
  const DefaultFloats floats;
  std::vector<const void *> sources(parts_.size());
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const auto at = static_cast<int64_t>(rank);
    float *to = decoded_ + at * mine.lines.count() * kLine;
    kernels::decode_lines(kernels::active(), *coder_, received_ + at * mine.nbytes, mine.count, mine.full, to);
    sources[rank] = to;
  }
  return reducer.reduce({values + mine.first, sources.data(), std::ssize(sources), mine.count, DType::f32, ReduceOp::sum, divisor});
}

/// Losses are kept as those of the sum, because divisors may differ from one call to the next.
void CodedMean::encode_result(const Part &mine, float *values, double divisor, const CodingLoss &loss) {
  if (loss.sent == nullptr) return encode(mine, values, results_);
  const DefaultFloats floats;
  float *results = values + mine.first;
  const auto unit = static_cast<float>(divisor);
  for (int64_t i = 0; i < mine.count; ++i) results[i] += loss.result[i] / unit;
  encode(mine, values, results_);
  keep_lost(mine, results, results_ + mine.begin, unit, loss.result_next);
}

Task CodedMean::run_piece(Group &group, float *values, double divisor, bool *finite, const CodingLoss &loss) {
  const Part mine = parts_[static_cast<size_t>(group.rank())];
  std::vector<Offer> offers(parts_.size());
  std::vector<Receive> receives(parts_.size());
  Cuts cuts;
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const Part &part = parts_[rank];
    if (loss.sent != nullptr) add_lost(part, loss, values);
    encode(part, values, sent_);
    if (loss.sent != nullptr) keep_lost(part, values + part.first, sent_ + part.begin, 1, loss.sent_next + part.first);
    if (loss.velocity != nullptr) stop_sent(part, loss.velocity + part.first);
    offers[rank] = {sent_ + part.begin, part.nbytes};
    receives[rank] = {received_ + static_cast<int64_t>(rank) * mine.nbytes, mine.nbytes};
    cuts.push_back({part.begin, part.begin + part.nbytes});
  }
  ZERO_CO_AWAIT(exchange(group, offers, receives));
  const int64_t sent_nbytes = cuts.back().end - mine.nbytes;
  group.count_direct(OperationKind::reduce_scatter, sent_nbytes, sent_nbytes);
  if (mine.count > 0) {
    if (!sum(mine, *group.reducer(), values, divisor)) *finite = false;
    encode_result(mine, values, divisor, loss);
  }
  ZERO_CO_AWAIT(all_gather(group, results_ + mine.begin, results_, cuts, DType::u8));
  const DefaultFloats floats;
  for (const Part &part : parts_) {
    kernels::decode_lines(kernels::active(), *coder_, results_ + part.begin, part.count, part.full, values + part.first);
  }
  co_return Status();
}

}  // namespace zero
