/// @file GivenRows: the rows of tables that some rank gave in a step. A rank knows those of its
/// cuts, in stage 0 and in a world of one all. Knows neither ranks nor values.
#pragma once

#include "engine/layout/plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace zero {

/// By row of a bucket: 0 where it holds nothing and counts as zero. The last is for all elements
/// behind the rows.
using RowMarks = std::span<const uint8_t>;

/// Each of the two sets of marks is used by one thread at a time.
class GivenRows {
 public:
  /// `leaves_rows`: note_update() will be called.
  void open(const Plan &plan, bool leaves_rows) {
    given_.resize(plan.buckets().size());
    for (size_t index = 0; index < given_.size(); ++index) {
      const int64_t rows = plan.buckets()[index].rows.count;
      if (rows > 0) given_[index].resize(static_cast<size_t>(rows) + 1);
    }
    if (leaves_rows) updated_ = given_;
  }
  void close() {
    given_.clear();
    updated_.clear();
  }

  /// Rows of the step under way; empty if the bucket is not reduced by rows. Their place stays.
  std::span<uint8_t> of(int64_t bucket) { return given_[static_cast<size_t>(bucket)]; }
  RowMarks of(int64_t bucket) const { return given_[static_cast<size_t>(bucket)]; }
  void end_step() {
    for (std::vector<uint8_t> &rows : given_) std::fill(rows.begin(), rows.end(), uint8_t{0});
  }

  /// The step under way has updated its rows and no others. `any`: the caller may have changed
  /// more.
  void note_update(bool any) {
    any_ = any;
    if (!any) updated_ = given_;
  }
  /// Rows that the newest update changed, until the next one; empty: any.
  RowMarks updated(int64_t bucket) const { return any_ ? RowMarks() : RowMarks(updated_[static_cast<size_t>(bucket)]); }

 private:
  using Marks = std::vector<std::vector<uint8_t>>;  ///< by bucket
  Marks given_;
  Marks updated_;
  bool any_ = true;
};

}  // namespace zero
