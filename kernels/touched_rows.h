/// @file TouchedRows: the update of some rows of a tensor. Elements of all other rows keep their
/// bits in every slot. Knows no ranks.
#pragma once

#include "kernels/update.h"

#include <cstdint>

namespace zero::kernels {

/// The rows that an update touches, for a piece of a tensor.
struct TouchedRows {
  /// By row of the tensor: not 0 if it is touched; nullptr: all are.
  const uint8_t *marks = nullptr;
  int64_t width = 1;  ///< elements of each row
  int64_t begin = 0;  ///< the tensor's element with which the piece begins

  /// The same rows, for the part of the piece from `element` on.
  TouchedRows from(int64_t element) const { return {marks, width, begin + element}; }
};

/// Does to the touched rows what update() does to the whole piece, with the same bits. Lines of
/// which a part is touched are updated in a copy: per slot, at most kLine elements move twice.
/// The piece begins on a line and has no memory of other ranks. The algorithm is elementwise, and
/// no slot has scales, which elements of several rows would share.
void update_rows(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars,
                 const TouchedRows &rows);

}  // namespace zero::kernels
