/// @file Fragments: the parts of the tensors that train which replicas bring together in turn. Pure
/// arithmetic on the plan; knows no memory and no collectives.
#pragma once

#include "core/partition.h"
#include "core/status.h"
#include "engine/layout/plan.h"

#include <cstdint>
#include <vector>

namespace zero {

/// A range that is worked on at once.
struct FragmentPart {
  int64_t bucket;
  Range range;  ///< within the bucket; at most kMostPartElements
};
inline constexpr int64_t kMostPartElements = int64_t{1} << 20;

struct Fragment {
  /// Those that this rank updates. A part begins on a line, or inside one that ends it and is never
  /// coded, because a tensor of less than a line begins there.
  std::vector<FragmentPart> parts;
  std::vector<int64_t> params;  ///< ids of its tensors, without tied ones
  int64_t element_count = 0;    ///< elements of its tensors
};

/// The elements of a bucket that a rank updates: all of them, or its cut.
inline Range updated_range(const PlannedBucket &bucket, bool all) { return all ? Range{0, bucket.flat.count()} : bucket.own; }

/// All buckets that train, gaps included. `all`: this rank updates everything, not only its cuts.
Fragment whole_fragment(const Plan &plan, bool all);

/// Cuts the tensors that train, in order of registration, into `count` runs. Run j = 0, 1, ... ends
/// at the boundary of tensors nearest to (j + 1)/count of all elements, the later of two, but each
/// run has a tensor. The cut depends on nothing else, so results do not depend on buckets and
/// shards.
/// ZERO_E_INVALID_ARGUMENT if there are fewer tensors.
Status cut_into_fragments(const Plan &plan, bool all, int64_t count, std::vector<Fragment> *out);

}  // namespace zero
