/// @file Adding up over a host.
#include "engine/memory_need.h"

#include "core/machine.h"
#include "engine/agreement.h"
#include "engine/slot_memory.h"

#include <algorithm>
#include <vector>

namespace zero {
namespace {

constexpr size_t kHost = 0;
constexpr size_t kOffer = 1;
constexpr size_t kNeed = 2;
constexpr size_t kWords = kNeed + std::tuple_size_v<MemoryNeed>;

struct Host {
  int64_t first_rank = 0;
  int64_t ranks = 0;
  int64_t offer = 0;
  std::array<double, 4> need{};
};

/// Adds up what all ranks of one host told.
Host host_of(std::span<const int64_t> words, int64_t rank) {
  Host host{rank, 0, words[static_cast<size_t>(rank) * kWords + kOffer], {}};
  const int64_t key = words[static_cast<size_t>(rank) * kWords + kHost];
  for (size_t at = 0; at < words.size(); at += kWords) {
    if (words[at + kHost] != key) continue;
    ++host.ranks;
    host.offer = std::min(host.offer, words[at + kOffer]);
    for (size_t stage = 0; stage < host.need.size(); ++stage) host.need[stage] += static_cast<double>(words[at + kNeed + stage]);
  }
  return host;
}

}  // namespace

MemoryNeed memory_need(const Plan &plan, std::span<const Format> formats, bool alone, bool adopts) {
  int64_t largest_bucket = 0;
  int64_t largest_param = 0;  // in the dtype that is handed out
  int64_t largest_coded = 0;
  for (const PlannedBucket &bucket : plan.buckets()) {
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    if (format.trains) largest_bucket = std::max(largest_bucket, bucket.flat.count() * dtype_nbytes(format.grad));
    for (const int64_t id : bucket.params) {
      const int64_t nbytes = plan.param(id).flat.count() * dtype_nbytes(format.value);
      largest_param = std::max(largest_param, nbytes);
      if (format.coded()) largest_coded = std::max(largest_coded, nbytes);
    }
  }
  MemoryNeed need{};
  for (int64_t stage = 0; stage < 4; ++stage) {
    int64_t &nbytes = need[static_cast<size_t>(stage)];
    nbytes = SlotMemory::nbytes(plan, formats, {stage, alone, adopts && (stage == 1 || stage == 2)});
    if (!alone && stage >= 2) nbytes += 2 * largest_bucket;
    nbytes += !alone && stage == 3 ? largest_param + largest_coded : largest_coded;
  }
  return need;
}

Task check_memory(Group &group, Status mine, MemoryNeed need, int64_t stage, int64_t limit_nbytes) {
  std::array<int64_t, kWords> words{static_cast<int64_t>(host_key()), limit_nbytes > 0 ? limit_nbytes : memory_available_nbytes()};
  std::copy(need.begin(), need.end(), words.begin() + kNeed);
  std::vector<int64_t> all(static_cast<size_t>(group.size()) * kWords);
  ZERO_CO_TRY(agree_on(group, std::move(mine), "zero_optimizer_seal"));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::seal;
  fingerprint.detail = 2;
  ZERO_CO_TRY(tell_all(group, fingerprint, words, all));
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    constexpr double kGigabyte = 1e9;
    const Host host = host_of(all, rank);
    const auto asked = host.need[static_cast<size_t>(stage)];
    ZERO_CO_CHECK(asked <= static_cast<double>(host.offer), ZERO_E_OUT_OF_MEMORY,
                  "stage %lld needs %.2f GB on the host of rank %lld, which holds %lld ranks, but %.2f GB are %s; stages 0 to 3 need %.2f, "
                  "%.2f, %.2f and %.2f GB there",
                  static_cast<long long>(stage), asked / kGigabyte, static_cast<long long>(rank), static_cast<long long>(host.ranks),
                  static_cast<double>(host.offer) / kGigabyte, limit_nbytes > 0 ? "ZERO_KEY_MEMORY_LIMIT" : "available",
                  host.need[0] / kGigabyte, host.need[1] / kGigabyte, host.need[2] / kGigabyte, host.need[3] / kGigabyte);
  }
  co_return Status();
}

}  // namespace zero
