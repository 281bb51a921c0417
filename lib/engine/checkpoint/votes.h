/// @file Votes: what ranks must agree on between the steps of a save or a load. Errors that one rank has become everybody's, word by word,
/// and the group stays usable. Knows words and texts; never files.
#pragma once

#include "group/group.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// all[r * mine.size() + i] = word i of rank r; at most 64 words a rank. A collective. The spans must outlive the task.
Task gather_words(Group &group, std::span<const int64_t> mine, std::vector<int64_t> *all);

/// *out, the same on all ranks: ZERO_OK if all ranks bring ZERO_OK, otherwise code and text of the lowest rank that does not. A collective,
/// whose own error is this rank's alone.
Task vote(Group &group, Status mine, Status *out);

/// *out, the same on all ranks: ZERO_E_MISMATCH with `what` and the first lines that differ, if a rank gives another text than rank 0.
/// A collective, whose own error is this rank's alone.
Task compare_given(Group &group, const char *what, const std::string &mine, Status *out);

/// The root's bytes, on all ranks. A collective.
Task broadcast_bytes(Group &group, std::vector<std::byte> *bytes, int64_t root);

Task broadcast_text(Group &group, std::string *text, int64_t root);

/// Rank 0 gets the words of all ranks, as many as each has; the others get nothing. A collective.
Task gather_lists(Group &group, const std::vector<uint64_t> &mine, std::vector<std::vector<uint64_t>> *out);

}  // namespace zero
