/// @file Telling words in one round.
#include "group/collectives/agreement.h"

#include "core/frame_cache.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace zero {
namespace {

/// So few that they arrive in memory of the host over every transport (Transport::longest_nbytes).
constexpr size_t kMostWords = 64;

Task gather_words_round(Group &group, std::span<const int64_t> mine, std::span<int64_t> all) {
  const auto ranks = static_cast<size_t>(group.size());
  const auto nbytes = static_cast<int64_t>(mine.size_bytes());
  ZERO_CO_CHECK(mine.size() <= kMostWords, ZERO_E_INTERNAL, "%zu words were to be told, but %zu at most can be", mine.size(), kMostWords);
  std::vector<Offer, CachedAllocator<Offer>> offers(ranks, Offer{mine.data(), nbytes});
  std::vector<Arrival, CachedAllocator<Arrival>> arrivals(ranks, Arrival{nullptr, nbytes});
  {
    // Taken by all before anyone waits for quiet.
    Round round(group, offers, arrivals);
    ZERO_CO_AWAIT(round);
    for (size_t rank = 0; rank < ranks; ++rank) {
      const bool own = static_cast<int64_t>(rank) == group.rank();
      const void *words = own ? mine.data() : arrivals[rank].data;
      if (nbytes > 0) std::memcpy(all.data() + rank * mine.size(), words, mine.size_bytes());
    }
  }
  Quiet quiet(group);
  ZERO_CO_AWAIT(quiet);
  co_return Status();
}

}  // namespace

Task all_gather_words(Group &group, Fingerprint fingerprint, std::span<const int64_t> mine, std::span<int64_t> all) {
  return group.collective(fingerprint, gather_words_round(group, mine, all));
}

Task all_gather_word(Group &group, SealRound round, int64_t mine, std::span<int64_t> all) {
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::seal;
  fingerprint.detail = static_cast<uint64_t>(round);
  co_return co_await all_gather_words(group, fingerprint, {&mine, 1}, all);
}

Task agree_on(Group &group, Status mine, const char *what) {
  std::vector<int64_t, CachedAllocator<int64_t>> codes(static_cast<size_t>(group.size()));
  ZERO_CO_AWAIT(all_gather_word(group, SealRound::agreement, mine.code(), codes));
  if (!mine.ok()) co_return mine;
  const auto failed = std::find_if(codes.begin(), codes.end(), [](int64_t other) { return other != ZERO_OK; });
  ZERO_CO_CHECK(failed == codes.end(), ZERO_E_PEER_FAILED, "rank %lld failed in %s: %s",
                group.transport().peers().name_of(failed - codes.begin()), what, status_name(static_cast<int32_t>(*failed)));
  co_return Status();
}

}  // namespace zero
