/// @file Adds up the needs of ranks that share memory.
#include "engine/optimizer/memory_need.h"

#include "core/number_text.h"
#include "engine/gradients/bucket_pool.h"
#include "engine/parameters/quantized_params.h"
#include "engine/storage/slot_memory.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace zero {
namespace {

/// A pool of memory that several ranks share: the indexes, in a rank's words, of the pool's key and
/// of the bytes that it offers.
struct Store {
  size_t key;
  size_t offer;
  const char *name;
};
constexpr Store kHost{0, 1, "on the host"};
constexpr Store kControlGroup{2, 3, "in the control group"};
constexpr size_t kNeed = 4;
constexpr size_t kWords = kNeed + std::tuple_size_v<MemoryNeed>;

struct Sharers {
  int64_t ranks = 0;
  int64_t offer = std::numeric_limits<int64_t>::max();
  std::array<double, 4> need{};
};

/// Adds up the words of the ranks that share this store with `rank`.
Sharers sharers_of(const Store &store, std::span<const int64_t> words, int64_t rank) {
  Sharers sharers;
  const int64_t key = words[static_cast<size_t>(rank) * kWords + store.key];
  for (size_t at = 0; at < words.size(); at += kWords) {
    if (words[at + store.key] != key) continue;
    ++sharers.ranks;
    sharers.offer = std::min(sharers.offer, words[at + store.offer]);
    for (size_t stage = 0; stage < sharers.need.size(); ++stage) sharers.need[stage] += static_cast<double>(words[at + kNeed + stage]);
  }
  return sharers;
}

/// Bytes of buffers that are filled and given back. Parameters count in the dtype that acquire
/// returns.
struct Buffers {
  std::vector<int64_t> buckets;  ///< gradient buckets
  int64_t decoded = 0;           ///< the largest 8-bit tensor
  int64_t gathered = 0;          ///< the largest tensor that is sharded in stage 3
  int64_t all_gathered = 0;      ///< all tensors that are sharded in stage 3
  int64_t codes = 0;             ///< codes and scales of the largest sharded 8-bit tensor
};

Buffers buffers_of(const Plan &plan, std::span<const Format> formats) {
  Buffers buffers;
  for (const PlannedBucket &bucket : plan.buckets()) {
    const Format &format = formats[static_cast<size_t>(bucket.space)];
    if (format.trains) buffers.buckets.push_back(bucket.flat.count() * dtype_nbytes(format.grad));
    for (const int64_t id : bucket.params) {
      const int64_t count = plan.param(id).flat.count();
      const int64_t nbytes = count * dtype_nbytes(format.value);
      if (format.coded()) buffers.decoded = std::max(buffers.decoded, nbytes);
      if (format.kept_whole) continue;
      buffers.gathered = std::max(buffers.gathered, nbytes);
      buffers.all_gathered += nbytes;
      if (format.coded()) buffers.codes = std::max(buffers.codes, QuantizedParams::codes_nbytes(count));
    }
  }
  return buffers;
}

/// A limit of the caller is for all ranks of a host, and replaces the memory that the system
/// reports.
std::array<int64_t, kWords> words_of(const MemoryNeed &need, MemoryOffer offer, int64_t limit_nbytes) {
  if (limit_nbytes > 0) offer = {limit_nbytes, std::numeric_limits<int64_t>::max(), 0};
  std::array<int64_t, kWords> words{};
  words[kHost.key] = static_cast<int64_t>(machine_key());
  words[kHost.offer] = offer.system_nbytes;
  words[kControlGroup.key] = static_cast<int64_t>(offer.group_key);
  words[kControlGroup.offer] = offer.group_nbytes;
  std::copy(need.begin(), need.end(), words.begin() + kNeed);
  return words;
}

Status check_store(const Store &store, std::span<const int64_t> words, int64_t rank, int64_t stage, bool limited) {
  const Sharers sharers = sharers_of(store, words, rank);
  const auto &need = sharers.need;
  const auto asked = need[static_cast<size_t>(stage)];
  ZERO_CHECK(asked <= static_cast<double>(sharers.offer), ZERO_E_OUT_OF_MEMORY,
             "stage %lld needs %s %s of rank %lld (its ranks there: %lld), but %s are %s; stages 0 to 3 need %s, %s, %s and %s there",
             lld(stage), nbytes_text(asked).c_str(), store.name, lld(rank), lld(sharers.ranks),
             nbytes_text(static_cast<double>(sharers.offer)).c_str(), limited ? "ZERO_KEY_MEMORY_LIMIT" : "available",
             nbytes_text(need[0]).c_str(), nbytes_text(need[1]).c_str(), nbytes_text(need[2]).c_str(), nbytes_text(need[3]).c_str());
  return {};
}

}  // namespace

MemoryNeed memory_need(const Plan &plan, std::span<const Format> formats, const NeedOptions &options) {
  const Buffers buffers = buffers_of(plan, formats);
  MemoryNeed need{};
  for (int64_t stage = 0; stage < 4; ++stage) {
    int64_t &nbytes = need[static_cast<size_t>(stage)];
    const bool gathers = !options.alone && stage == 3;
    nbytes = SlotMemory::nbytes(plan, formats, {stage, options.alone, options.adopts && (stage == 1 || stage == 2)});
    nbytes += stage == 0 ? options.whole_workspace_nbytes : options.workspace_nbytes;
    if (!options.alone && stage >= 2) nbytes += BucketPool::nbytes(buffers.buckets, plan.held_bucket_count(), options.pool_limit);
    nbytes += gathers ? std::max(buffers.gathered, buffers.decoded) + buffers.codes : buffers.decoded;
    if (gathers) nbytes += std::min(options.ahead_nbytes, buffers.all_gathered);
  }
  return need;
}

Task check_memory(Group &group, Status mine, MemoryNeed need, int64_t stage, int64_t limit_nbytes, MemoryOffer offer) {
  const std::array<int64_t, kWords> words = words_of(need, offer, limit_nbytes);
  std::vector<int64_t> all(static_cast<size_t>(group.size()) * kWords);
  ZERO_CO_AWAIT(agree_on(group, std::move(mine), "zero_optimizer_seal"));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::seal;
  fingerprint.detail = static_cast<uint64_t>(SealRound::memory);
  ZERO_CO_AWAIT(all_gather_words(group, fingerprint, words, all));
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    for (const Store *store : {&kHost, &kControlGroup}) {
      ZERO_CO_TRY(check_store(*store, all, rank, stage, limit_nbytes > 0));
    }
  }
  co_return Status();
}

}  // namespace zero
