/// @file Agreement: small words that every rank tells every other in one round. Knows collectives' rounds; never what the words mean.
#pragma once

#include "group/group.h"

#include <cstdint>
#include <span>

namespace zero {

/// all[r * mine.size() + i] = word i of rank r. A collective of the kind that `fingerprint` names. Both spans must outlive the task; `all`
/// has mine.size() words for each rank, at most 64.
Task all_gather_words(Group &group, Fingerprint fingerprint, std::span<const int64_t> mine, std::span<int64_t> all);

/// Rounds of seal, which must not meet one another.
enum class SealRound : uint64_t { agreement = 1, memory = 2, devices = 3, replicas = 4, model = 5 };

/// all[r] = the word of rank r. A collective; `all` must outlive the task.
Task all_gather_word(Group &group, SealRound round, int64_t mine, std::span<int64_t> all);

/// ZERO_OK when every rank comes with ZERO_OK; otherwise this rank's own error or, where that is ZERO_OK, ZERO_E_PEER_FAILED naming the
/// first rank that failed. A collective; the group stays usable.
Task agree_on(Group &group, Status mine, const char *what);

}  // namespace zero
