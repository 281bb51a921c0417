/// @file Coding differences, adding them, and what they need.
#include "engine/parameters/difference_gather.h"

#include "core/default_floats.h"
#include "core/number_text.h"
#include "group/collectives.h"
#include "kernels/convert.h"

#include <algorithm>
#include <span>

namespace zero {
namespace {

/// Elements that are worked on at once. A cut is coded piece by piece; lines, and with them all
/// bits, are the same as without pieces.
constexpr int64_t kPiece = 64 * kLine;
constexpr auto kPieceNbytes = kPiece * static_cast<int64_t>(sizeof(float));

std::span<const uint8_t> lines_of(const std::vector<uint8_t> &full, Range range) {
  const int64_t begin = range.begin / kLine;
  return std::span(full).subspan(static_cast<size_t>(begin), static_cast<size_t>(round_up(range.end, kLine) / kLine - begin));
}

int64_t nbytes_of(const kernels::Coder *code, std::span<const uint8_t> full) {
  return kernels::coded_nbytes(*code, std::ssize(full), std::count_if(full.begin(), full.end(), [](uint8_t line) { return line != 0; }));
}

template <class Use>
void over_pieces(Range cut, Use &&use) {
  for (int64_t begin = cut.begin; begin < cut.end; begin += kPiece) use(Range{begin, std::min(begin + kPiece, cut.end)});
}

/// Calls use(begin, end) for the elements of each line that travels in full, counted within the
/// piece.
template <class Use>
void over_full_lines(std::span<const uint8_t> full, int64_t count, Use &&use) {
  for (size_t line = 0; line < full.size(); ++line) {
    const auto begin = static_cast<int64_t>(line) * kLine;
    if (full[line] != 0) use(begin, std::min(begin + kLine, count));
  }
}

}  // namespace

Status DifferenceGather::check_formats() const {
  const char *code = choice_name(ZERO_KEY_GATHER_CODE, code_->number);
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Format &format = layout_.format_of(id);
    if (!format.trains) continue;
    const Precision &precision = params_[id].options.precision;
    ZERO_CHECK(!format.coded(), ZERO_E_UNSUPPORTED,
               "%s: ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_PARAM_DTYPE f8_e4m3, but 8-bit parameters are gathered as their own codes, to "
               "which no difference can be added; set one of the two",
               params_[id].text().c_str(), code);
    const SlotFormat *master = find_format(format.states, ZERO_SLOT_MASTER);
    ZERO_CHECK(master != nullptr && master->dtype == DType::f32, ZERO_E_UNSUPPORTED,
               "%s: ZERO_KEY_GATHER_CODE is %s and ZERO_KEY_MASTER %s, but parameters that follow by differences need ZERO_MASTER_F32",
               params_[id].text().c_str(), code, choice_name(ZERO_KEY_MASTER, static_cast<int64_t>(precision.master)));
  }
  return {};
}

int64_t DifferenceGather::coded_nbytes(const std::vector<uint8_t> &full, Range cut) const {
  int64_t nbytes = 0;
  over_pieces(cut, [&](Range piece) { nbytes += nbytes_of(code_, lines_of(full, piece)); });
  return nbytes;
}

/// Scales, codes and full lines of pieces, and of cuts, have the bytes of those of the whole
/// bucket.
int64_t DifferenceGather::largest_nbytes() const {
  int64_t largest = 0;
  for (const int64_t index : plan().order()) {
    const std::vector<uint8_t> full = plan().shared_lines(index);
    largest = std::max(largest, nbytes_of(code_, full));
  }
  return largest;
}

int64_t DifferenceGather::workspace_nbytes() const { return Arena::view_nbytes(largest_nbytes()) + 2 * Arena::view_nbytes(kPieceNbytes); }

Status DifferenceGather::open(const MemorySource &source) {
  for (int64_t index = 0; index < plan().bucket_count(); ++index) full_lines_.push_back(plan().shared_lines(index));
  ZERO_TRY(Arena::create_private(source, ZERO_MEMORY_WORKSPACE, workspace_nbytes(), &memory_));
  coded_ = memory_.take(Arena::view_nbytes(largest_nbytes()));
  differences_ = reinterpret_cast<float *>(memory_.take(Arena::view_nbytes(kPieceNbytes)));
  piece_ = reinterpret_cast<float *>(memory_.take(Arena::view_nbytes(kPieceNbytes)));
  return {};
}

void DifferenceGather::close() {
  memory_.release();
  full_lines_.clear();
}

int64_t DifferenceGather::sent_nbytes(int64_t ranks) const {
  int64_t nbytes = 0;
  for (const int64_t index : plan().order()) nbytes += coded_nbytes(plan().shared_lines(index), plan().bucket(index).own);
  return (ranks - 1) * nbytes;
}

std::string DifferenceGather::text(int64_t ranks) const {
  std::string text = std::string("parameters follow their masters by differences in ") + code_->text + "; this rank sends " +
                     std::to_string(sent_nbytes(ranks)) + " bytes per gather";
  const int64_t period = settings_.replicas.flush_period;
  if (period > 0) text += ", and parameters in full once in " + count_text(period, "step");
  if (settings_.replicas.code_after > 0)
    text += ", and parameters in full in the first " + count_text(settings_.replicas.code_after, "step");
  return text;
}

const float *DifferenceGather::masters(int64_t bucket, int64_t element) const {
  const SlotMemory &slots = tensors_.memory();
  return reinterpret_cast<const float *>(slots.place(*slots.find(ZERO_SLOT_MASTER), bucket).at(element));
}

/// M - W of elements of tensors. An update may leave anything in gaps between them, which must not
/// reach the scale of a line.
void DifferenceGather::subtract(int64_t bucket, Range piece) const {
  const float *from = masters(bucket, piece.begin);
  const kernels::Table &table = kernels::active();
  kernels::widen(table, piece_, param(bucket).at(piece.begin), param(bucket).dtype, piece.count());
  table.scale(piece_, piece_, piece.count(), -1);
  table.add(differences_, from, piece_, piece.count());
  for (const Range &gap : plan().bucket(bucket).gaps) {
    const Range part = intersect(piece, gap);
    if (!part.empty()) std::fill_n(differences_ + part.begin - piece.begin, part.count(), 0.0F);
  }
}

/// Lines that travel in full hold M itself.
void DifferenceGather::encode(int64_t bucket, Range cut, std::byte *out) const {
  const DefaultFloats floats;
  const std::vector<uint8_t> &all = full_lines_[static_cast<size_t>(bucket)];
  over_pieces(cut, [&](Range piece) {
    const std::span<const uint8_t> full = lines_of(all, piece);
    const float *from = masters(bucket, piece.begin);
    subtract(bucket, piece);
    over_full_lines(full, piece.count(), [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, differences_ + begin); });
    kernels::encode_lines(kernels::active(), *code_, differences_, piece.count(), full, out);
    out += nbytes_of(code_, full);
  });
}

void DifferenceGather::add(int64_t bucket, Range cut, const std::byte *coded) const {
  const DefaultFloats floats;
  const std::vector<uint8_t> &all = full_lines_[static_cast<size_t>(bucket)];
  const SlotPlace &place = param(bucket);
  over_pieces(cut, [&](Range piece) {
    const std::span<const uint8_t> full = lines_of(all, piece);
    kernels::decode_lines(kernels::active(), *code_, coded, piece.count(), full, differences_);
    coded += nbytes_of(code_, full);
    kernels::widen(kernels::active(), piece_, place.at(piece.begin), place.dtype, piece.count());
    kernels::active().add(piece_, piece_, differences_, piece.count());
    over_full_lines(full, piece.count(),
                    [&](int64_t begin, int64_t end) { std::copy(differences_ + begin, differences_ + end, piece_ + begin); });
    kernels::narrow(kernels::active(), place.at(piece.begin), place.dtype, piece_, piece.count());
  });
}

Task DifferenceGather::bucket(Group &group, int64_t index) {
  const Cuts cuts = plan().bucket_cuts(index);
  const std::vector<uint8_t> &full = full_lines_[static_cast<size_t>(index)];
  Cuts coded;
  int64_t end = 0;
  for (const Range &cut : cuts) {
    coded.push_back({end, end + coded_nbytes(full, cut)});
    end = coded.back().end;
  }
  const auto self = static_cast<size_t>(group.rank());
  std::byte *own = coded_ + coded[self].begin;
  encode(index, cuts[self], own);
  ZERO_CO_AWAIT(all_gather(group, own, coded_, coded, DType::u8));
  for (size_t rank = 0; rank < cuts.size(); ++rank) add(index, cuts[rank], coded_ + coded[rank].begin);
  co_return Status();
}

}  // namespace zero
