/// @file Taking and comparing checksums, on one rank and over ranks.
#include "engine/integrity/verifier.h"

#include "group/collectives.h"
#include "group/collectives/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace zero {
namespace {

/// Returns the first rank that has the most common hash; -1 if several hashes are equally common.
int64_t most_common(std::span<const uint64_t> hashes) {
  int64_t best = -1;
  int64_t best_count = 0;
  for (auto hash = hashes.begin(); hash != hashes.end(); ++hash) {
    if (std::find(hashes.begin(), hash, *hash) != hash) continue;
    const int64_t count = std::count(hash, hashes.end(), *hash);
    if (count < best_count) continue;
    best = count > best_count ? hash - hashes.begin() : -1;
    best_count = count;
  }
  return best;
}

}  // namespace

Status Verifier::open(const OptimizerGroups &groups, int64_t every, bool one_copy) {
  group_ = groups.gather();
  holders_ = groups.holders();
  copies_ = groups.copies();
  across_ = groups.across();
  every_ = every;
  one_copy_ = one_copy;
  if (every > 0) list_updated(Which::all, shards_);
  return kernels_.prepare_hashes(shards_.chunk_count());
}

void Verifier::close() {
  shards_.clear();
  group_.reset();
  holders_.reset();
  copies_.reset();
  across_.reset();
}

/// Lists the slots that this rank must hold correctly: all that it updates, and its shards of
/// frozen parameters.
void Verifier::list_updated(Which which, Checksums &out) const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    const Range range = tensors_.updated(id);
    if (!range.empty()) list_slots(id, range, which, out);
  }
}

/// Lists the slots that every rank keeps in full.
void Verifier::list_replicas(Checksums &out) const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (params_[id].count > 0 && !params_[id].tied()) list_slots(id, {0, params_[id].count}, Which::whole, out);
  }
}

/// Lists the cuts of sharded parameters that this rank holds, its own and others'.
void Verifier::list_copies(Checksums &out) const {
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (!tensors_.sharded(id) || params_[id].tied()) continue;
    for (const int32_t number : {ZERO_SLOT_PARAM, ZERO_SLOT_PARAM_SCALE}) {
      const Slot *slot = nullptr;
      if (!tensors_.find(number, id, &slot)) continue;
      const SlotPlace &place = tensors_.place(*slot, id);
      for (const HeldPiece &piece : tensors_.held(*slot, id)) {
        const int64_t begin = place.entries(piece.range.begin);
        const int64_t count = place.entries(piece.range.end) - begin;
        if (!piece.range.empty()) out.add({id, number, begin, count, piece.data, dtype_nbytes(place.dtype)});
      }
    }
  }
}

void Verifier::list_slots(int64_t id, Range range, Which which, Checksums &out) const {
  for (const SlotFormat &format : layout_.slots_of(id)) {
    const Slot &slot = *tensors_.memory().find(format.number);
    const SlotPlace &place = tensors_.place(slot, id);
    const bool replicated = place.whole && !(one_copy_ && slot.category == ZERO_MEMORY_PARAM);
    if (which == Which::whole && !replicated) continue;
    if (which == Which::alike_together && !is_alike_together(format.number)) continue;
    // Every rank that updates a part of a tensor updates the tensor's single entry.
    const int64_t begin = place.per_tensor() ? 0 : place.entries(range.begin);
    out.add({id, format.number, begin, place.entries(range.end) - begin, tensors_.at(slot, id, range.begin), dtype_nbytes(place.dtype)});
  }
}

/// If a device decides steps, its count of applied steps is fetched only if the window may open.
Status Verifier::move_window() {
  if (every_ == 0) return {};
  const bool may_open = (run_.most_applied_count() + 1) / every_ > run_.known().applied_count / every_;
  if (may_open) ZERO_TRY(run_.learn());
  window_open_ = (run_.known().applied_count + 1) % every_ == 0;
  return window_open_ ? shards_.take(kernels_) : Status();
}

Status Verifier::note_write(int64_t id, int32_t slot) { return window_open_ ? shards_.take(kernels_, params_.holder(id), slot) : Status(); }

Status Verifier::note_writes(int32_t slot) {
  for (int64_t id = 0; id < params_.size() && window_open_; ++id) ZERO_TRY(shards_.take(kernels_, id, slot));
  return {};
}

Status Verifier::find_change(Finding *out) {
  if (!window_open_) return {};
  Checksums::Changes changes;
  ZERO_TRY(shards_.find_changes(kernels_, &changes));
  if (changes.count == 0) return {};
  const SlotPart chunk = shards_.chunk(changes.first);
  *out = {ZERO_FINDING_SHARD, changes.count, within().first + group_->rank(), -1, chunk.param, chunk.slot, chunk.offset, chunk.count};
  return {};
}

Status Verifier::corrupt(const Finding &finding) const {
  if (finding.found == ZERO_FINDING_NONE) {
    return Status::error(ZERO_E_CORRUPT,
                         "a rank of another replica or of the model group holds other bits than it wrote in the last step; its own error "
                         "names the tensor");
  }
  return Status::error(
      ZERO_E_CORRUPT,
      "memory was changed by something other than libzero (a stray write, or failing memory): rank %lld holds other bits in "
      "the %s of %s, elements %lld .. %lld, than after the last step; nothing was applied, go on from what was saved before",
      lld(finding.rank), slot_name(finding.slot).c_str(), params_[finding.param].name.c_str(), lld(finding.offset),
      lld(finding.offset + finding.count - 1));
}

Task Verifier::share_in(Group &group, Finding &finding) const {
  if (group.size() == 1) co_return Status();
  const std::array<int64_t, 8> mine = {finding.found,  finding.chunk_count, finding.param, finding.slot,
                                       finding.offset, finding.count,       finding.rank,  finding.other_rank};
  std::vector<int64_t> all(mine.size() * static_cast<size_t>(group.size()));
  Fingerprint fingerprint;
  fingerprint.kind = OperationKind::exchange;
  fingerprint.count = static_cast<int64_t>(mine.size());
  ZERO_CO_AWAIT(all_gather_words(group, fingerprint, mine, all));
  finding = {};
  for (int64_t rank = 0; rank < group.size(); ++rank) {
    const int64_t *words = &all[mine.size() * static_cast<size_t>(rank)];
    const int64_t chunks = finding.chunk_count + words[1];
    if (finding.found == ZERO_FINDING_NONE && words[0] != ZERO_FINDING_NONE) {
      finding = {words[0], 0, words[6], words[7], words[2], static_cast<int32_t>(words[3]), words[4], words[5]};
    }
    finding.chunk_count = chunks;
  }
  co_return Status();
}

Task Verifier::compare_replicas(bool alike, Finding &finding, int64_t *out_nbytes) {
  Checksums replicas;
  if (group_->size() > 1) list_replicas(replicas);
  *out_nbytes = replicas.nbytes();
  ZERO_CO_TRY(replicas.take(kernels_));
  ZERO_CO_AWAIT(compare(within(), replicas, finding));
  if (copies_ != nullptr && finding.found == ZERO_FINDING_NONE) ZERO_CO_AWAIT(compare_copies(finding, out_nbytes));
  if (across_ == nullptr) co_return Status();
  ZERO_CO_AWAIT(share_in(*across_, finding));
  if (!alike || finding.found != ZERO_FINDING_NONE) co_return Status();
  Checksums of_all;
  list_updated(Which::alike_together, of_all);
  *out_nbytes += of_all.nbytes();
  ZERO_CO_TRY(of_all.take(kernels_));
  ZERO_CO_AWAIT(compare({*across_, group_->rank(), group_->size()}, of_all, finding));
  co_return co_await share_in(*group_, finding);
}

/// A difference is known to the ranks that hold the same cuts. One of each of them is in a block.
Task Verifier::compare_copies(Finding &finding, int64_t *out_nbytes) const {
  Checksums copies;
  list_copies(copies);
  *out_nbytes += copies.nbytes();
  ZERO_CO_TRY(copies.take(kernels_));
  ZERO_CO_AWAIT(compare({*copies_, within().first + group_->rank() % holders_->size(), holders_->size()}, copies, finding));
  co_return co_await share_in(*holders_, finding);
}

/// Gathers the hashes of all chunks on all ranks, then the bytes of the first chunk that differs.
Task Verifier::compare(Compared compared, const Checksums &alike, Finding &finding) const {
  Group &group = compared.group;
  const int64_t ranks = group.size();
  const int64_t chunks = alike.chunk_count();
  if (chunks == 0) co_return Status();
  std::vector<uint64_t> hashes(static_cast<size_t>(chunks * ranks));
  Cuts cuts;
  for (int64_t rank = 0; rank < ranks; ++rank) cuts.push_back({rank * chunks, (rank + 1) * chunks});
  ZERO_CO_AWAIT(all_gather(group, alike.hashes().data(), hashes.data(), cuts, DType::i64));
  int64_t first = -1;
  for (int64_t index = chunks - 1; index >= 0; --index) {
    bool same = true;
    for (int64_t rank = 1; rank < ranks; ++rank) {
      same = same && hashes[static_cast<size_t>(rank * chunks + index)] == hashes[static_cast<size_t>(index)];
    }
    if (same) continue;
    first = index;
    ++finding.chunk_count;
  }
  if (first < 0) co_return Status();
  const SlotPart chunk = alike.chunk(first);
  std::vector<std::byte> pieces(static_cast<size_t>(chunk.nbytes() * ranks));
  cuts.clear();
  for (int64_t rank = 0; rank < ranks; ++rank) cuts.push_back({rank * chunk.nbytes(), (rank + 1) * chunk.nbytes()});
  ZERO_CO_AWAIT(all_gather(group, chunk.data, pieces.data(), cuts, DType::u8));
  std::vector<uint64_t> of_chunk;
  for (int64_t rank = 0; rank < ranks; ++rank) of_chunk.push_back(hashes[static_cast<size_t>(rank * chunks + first)]);
  narrow_down(compared, chunk, of_chunk, pieces, finding);
  co_return Status();
}

/// Finds the rank that differs from most others, and the entries. If no hash is the most common
/// one, it names rank 0 and the first rank that differs from it. If the bytes are equal although
/// the hashes differed, as in failing memory, it reports the whole chunk.
void Verifier::narrow_down(const Compared &ranks, const SlotPart &chunk, std::span<const uint64_t> hashes,
                           const std::vector<std::byte> &pieces, Finding &finding) const {
  const auto named = [&ranks](int64_t rank) { return ranks.first + rank * ranks.stride; };
  const int64_t common = most_common(hashes);
  const int64_t right = std::max<int64_t>(common, 0);
  const auto differs = [&](uint64_t hash) { return hash != hashes[static_cast<size_t>(right)]; };
  const int64_t wrong = std::find_if(hashes.begin(), hashes.end(), differs) - hashes.begin();
  const std::byte *theirs = &pieces[static_cast<size_t>(wrong * chunk.nbytes())];
  const std::byte *ours = &pieces[static_cast<size_t>(right * chunk.nbytes())];
  int64_t begin = 0;
  int64_t end = chunk.nbytes();
  if (std::memcmp(theirs, ours, static_cast<size_t>(end)) != 0) {
    while (theirs[begin] == ours[begin]) ++begin;
    while (theirs[end - 1] == ours[end - 1]) --end;
  }
  finding.found = ZERO_FINDING_REPLICAS;
  finding.rank = named(common >= 0 ? wrong : right);
  finding.other_rank = common >= 0 ? -1 : named(wrong);
  finding.param = chunk.param;
  finding.slot = chunk.slot;
  finding.offset = chunk.offset + begin / chunk.entry_nbytes;
  finding.count = (end - 1) / chunk.entry_nbytes - begin / chunk.entry_nbytes + 1;
}

}  // namespace zero
