/// @file Votes: agreement of the ranks between the phases of a save or a load. An error of one rank
/// is returned on all ranks with the same text, and the group stays usable. Knows words and texts;
/// never files.
#pragma once

#include "group/group.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace zero {

/// all[r * mine.size() + i] = word i of rank r; at most 64 words per rank. A collective. The spans
/// must outlive the task.
Task gather_words(Group &group, std::span<const int64_t> mine, std::vector<int64_t> *all);

/// *out, the same on all ranks: ZERO_OK if all ranks pass ZERO_OK, otherwise the code and text of
/// the lowest rank that does not. A collective. An error of the collective itself is returned on
/// this rank alone.
Task vote(Group &group, Status mine, Status *out);

/// *out, the same on all ranks: ZERO_E_MISMATCH with `what` and the first lines that differ, if the
/// text of a rank differs from that of rank 0. A collective. An error of the collective itself is
/// returned on this rank alone.
Task compare_given(Group &group, const char *what, const std::string &mine, Status *out);

/// Sends the root's bytes to all ranks. A collective.
Task broadcast_bytes(Group &group, std::vector<std::byte> *bytes, int64_t root);

Task broadcast_text(Group &group, std::string *text, int64_t root);

/// Collects the words of all ranks on rank 0; each rank may have another number of words. `out` is
/// empty on other ranks. A collective.
Task gather_lists(Group &group, const std::vector<uint64_t> &mine, std::vector<std::vector<uint64_t>> *out);

}  // namespace zero
