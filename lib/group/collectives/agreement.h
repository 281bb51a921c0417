/// @file Agreement: words that every rank sends to every other rank in one round. Knows the rounds
/// of collectives; never the meaning of words.
#pragma once

#include "group/group.h"

#include <cstdint>
#include <span>

namespace zero {

/// all[r * mine.size() + i] = word i of rank r. A collective of the kind in `fingerprint`. Both
/// spans must outlive the task; `all` has mine.size() words for each rank, at most 64.
Task all_gather_words(Group &group, Fingerprint fingerprint, std::span<const int64_t> mine, std::span<int64_t> all);

/// Rounds of seal. Their numbers differ, so that different rounds are not matched with each other.
enum class SealRound : uint64_t { agreement = 1, memory = 2, devices = 3, replicas = 4, model = 5 };

/// all[r] = the word of rank r. A collective; `all` must outlive the task.
Task all_gather_word(Group &group, SealRound round, int64_t mine, std::span<int64_t> all);

/// Returns ZERO_OK if every rank passes ZERO_OK. Otherwise returns this rank's own error or, if it
/// has none, ZERO_E_PEER_FAILED with the first rank that failed. A collective; the group stays
/// usable.
Task agree_on(Group &group, Status mine, const char *what);

}  // namespace zero
