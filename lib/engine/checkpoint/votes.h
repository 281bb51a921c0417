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

/// ZERO_OK where all ranks come with ZERO_OK; otherwise, on all ranks, code and text of the lowest rank that does not. A collective.
Task vote(Group &group, Status mine);

/// Ranks that do not give the same text as rank 0 are ZERO_E_MISMATCH on all ranks; `what` names it. A collective.
Task compare_given(Group &group, const char *what, const std::string &mine);

/// The root's bytes, on all ranks. A collective.
Task broadcast_bytes(Group &group, std::vector<std::byte> *bytes, int64_t root);

Task broadcast_text(Group &group, std::string *text, int64_t root);

/// Rank 0 gets the words of all ranks, as many as each has; the others get nothing. A collective.
Task gather_lists(Group &group, const std::vector<uint64_t> &mine, std::vector<std::vector<uint64_t>> *out);

}  // namespace zero
