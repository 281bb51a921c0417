/// @file TouchedRows: whole lines in place, the others in a copy. Knows storage, not arithmetic.
#include "kernels/touched_rows.h"

#include "core/partition.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace zero::kernels {
namespace {

constexpr size_t kSlots = 4 + kMaxStates;

std::array<Elements *, kSlots> slots_of(UpdateSegment &piece) {
  std::array<Elements *, kSlots> slots = {&piece.param, &piece.master, &piece.grad, &piece.average};
  for (size_t state = 0; state < kMaxStates; ++state) slots[4 + state] = &piece.state[state];
  return slots;
}

/// The first touched element of the piece from `at` on; its count if there is none.
int64_t next_touched(const TouchedRows &rows, int64_t at, int64_t count) {
  if (at >= count) return count;
  const uint8_t *end = rows.marks + (rows.begin + count - 1) / rows.width + 1;
  const uint8_t *found = std::find_if(rows.marks + (rows.begin + at) / rows.width, end, [](uint8_t mark) { return mark != 0; });
  return found == end ? count : std::max(at, (found - rows.marks) * rows.width - rows.begin);
}

/// Calls use(part) for the touched parts of a range of the piece.
template <class Use>
void over_touched(const TouchedRows &rows, Range range, Use &&use) {
  for (int64_t row = (rows.begin + range.begin) / rows.width; row * rows.width < rows.begin + range.end; ++row) {
    const int64_t begin = row * rows.width - rows.begin;
    if (rows.marks[row] != 0) use(intersect(range, {begin, begin + rows.width}));
  }
}

void update_line(const Table &table, const Algorithm &algorithm, UpdateSegment line, UpdateScalars scalars, const TouchedRows &rows) {
  alignas(64) std::byte memory[kSlots][kLine * sizeof(float)];
  UpdateSegment copy = line;
  const auto kept = slots_of(line);
  const auto copied = slots_of(copy);
  for (size_t slot = 0; slot < kSlots; ++slot) {
    if (kept[slot]->data == nullptr) continue;
    std::memcpy(memory[slot], kept[slot]->data, static_cast<size_t>(line.count * dtype_nbytes(kept[slot]->dtype)));
    copied[slot]->data = memory[slot];
  }
  scalars.streams = false;
  update(table, algorithm, copy, scalars);
  over_touched(rows, {0, line.count}, [&](Range part) {
    for (size_t slot = 0; slot < kSlots; ++slot) {
      if (kept[slot]->data == nullptr) continue;
      const int64_t element = dtype_nbytes(kept[slot]->dtype);
      std::memcpy(static_cast<std::byte *>(kept[slot]->data) + part.begin * element, memory[slot] + part.begin * element,
                  static_cast<size_t>(part.count() * element));
    }
  });
}

}  // namespace

void update_rows(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars,
                 const TouchedRows &rows) {
  Range whole{};  // lines that are touched as a whole and wait for their update
  const auto update_whole = [&] {
    if (!whole.empty()) update(table, algorithm, slice(piece, whole.begin, whole.count()), scalars);
  };
  int64_t at = next_touched(rows, 0, piece.count);
  while (at < piece.count) {
    const int64_t begin = at / kLine * kLine;
    const Range line{begin, std::min(begin + kLine, piece.count)};
    int64_t touched = 0;
    over_touched(rows, line, [&](Range part) { touched += part.count(); });
    if (touched < line.count()) {
      update_line(table, algorithm, slice(piece, begin, line.count()), scalars, rows.from(begin));
    } else if (whole.end == begin) {
      whole.end = line.end;
    } else {
      update_whole();
      whole = line;
    }
    at = next_touched(rows, line.end, piece.count);
  }
  update_whole();
}

}  // namespace zero::kernels
