/// @file Takes over first values.
#include "engine/parameters/first_values.h"

#include "core/hash.h"
#include "engine/storage/host_copy.h"
#include "group/collectives.h"

#include <algorithm>
#include <array>

namespace zero {
namespace {

/// The hash of `nbytes` zeros, the content of a tensor that no rank has written.
uint64_t hash_of_zeros(int64_t nbytes) {
  static constexpr std::array<char, 4096> kZeros{};
  Hash hash;
  for (int64_t done = 0; done < nbytes; done += static_cast<int64_t>(kZeros.size())) {
    hash.add(kZeros.data(), static_cast<size_t>(std::min<int64_t>(nbytes - done, kZeros.size())));
  }
  return hash.value();
}

}  // namespace

void FirstValues::open(const MemorySource &source, bool one_copy) {
  const auto count = static_cast<size_t>(params_.size());
  source_ = source;
  one_copy_ = one_copy;
  copies_.resize(count);
  master_written_.assign(count, false);
  average_written_.assign(count, false);
}

void FirstValues::note_params(int64_t id, bool begun, bool changed) {
  if (changed) gathers_.note_write(id);
  edited_ = edited_ || begun;
  range_edited_ = range_edited_ || changed;
}

void FirstValues::note_state(int32_t slot, int64_t id) {
  if (slot == ZERO_SLOT_MASTER) master_written_[static_cast<size_t>(id)] = true;
  if (slot == ZERO_SLOT_AVERAGE) average_written_[static_cast<size_t>(id)] = true;
}

bool FirstValues::has_written_masters() const {
  return std::find(master_written_.begin(), master_written_.end(), true) != master_written_.end();
}

void FirstValues::forget_updated_masters(std::span<const int64_t> filled) {
  for (size_t id = 0; id < master_written_.size(); ++id) {
    const bool all_rows = !params_[static_cast<int64_t>(id)].options.by_rows;
    if (filled.empty() || (filled[id] > 0 && all_rows)) master_written_[id] = false;
  }
}

Task FirstValues::take_over(int32_t source) {
  switch (source) {
    case ZERO_SOURCE_LOCAL:
      ZERO_CO_AWAIT(take_replicas());
      break;
    case ZERO_SOURCE_ROOT:
      ZERO_CO_AWAIT(take_root());
      break;
    default:
      for (int64_t id = 0; id < params_.size(); ++id) follow_master(id);
      ZERO_CO_AWAIT(gathers_.gather(ParamGatherer::Buckets::all));
      break;
  }
  for (int64_t id = 0; id < params_.size(); ++id) follow_param(id);
  ZERO_CO_TRY(kernels_.status());
  // No rank may edit the one copy again until all ranks have taken it over.
  if (one_copy_) ZERO_CO_AWAIT(barrier(*groups_.gather()));
  forget_edits();
  co_return Status();
}

void FirstValues::forget_edits() {
  for (Arena &copy : copies_) copy.release();
  master_written_.assign(master_written_.size(), false);
  edited_ = false;
  range_edited_ = false;
}

/// Masters and averages were loaded with their own values. A later begin keeps them.
Task FirstValues::take_loaded() {
  ZERO_CO_AWAIT(gathers_.gather(ParamGatherer::Buckets::all));
  average_written_.assign(average_written_.size(), true);
  forget_edits();
  co_return kernels_.status();
}

Status FirstValues::whole_copy(int64_t id, std::byte **out) {
  Arena &copy = copies_[static_cast<size_t>(id)];
  if (copy.data() == nullptr) {
    ZERO_TRY(Arena::create_private(source_, ZERO_MEMORY_PARAM_POOL, params_[id].count * dtype_nbytes(params_[id].dtype), &copy));
  }
  *out = copy.data();
  return {};
}

Task FirstValues::take_replicas() {
  // Waits until all ranks have written to the one copy.
  if (one_copy_) ZERO_CO_AWAIT(barrier(*groups_.gather()));
  ZERO_CO_AWAIT(check_replicas());
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (tensors_.buffered(id)) keep_copy(id);
  }
  co_return co_await gathers_.gather(ParamGatherer::Buckets::buffered);
}

/// A tensor that this rank never acquired keeps the values of its shard. Masters of 8-bit
/// parameters take the written values without rounding.
void FirstValues::keep_copy(int64_t id) {
  const Arena &copy = copies_[static_cast<size_t>(id)];
  if (copy.data() == nullptr) return;
  const Range range = tensors_.coded(id) ? tensors_.updated(id) : tensors_.own(id);
  if (range.empty()) return;
  const DType dtype = params_[id].dtype;
  const std::byte *values = copy.data() + range.begin * dtype_nbytes(dtype);
  if (!tensors_.coded(id)) {
    kernels_.copy(tensors_.own_cut(param_slot(), id), values, dtype, range.count());
    return;
  }
  const Slot *master = nullptr;
  quantized_params_.encode(id, range, values, dtype);
  if (tensors_.find(ZERO_SLOT_MASTER, id, &master))
    kernels_.convert(tensors_.at(*master, id, range.begin), DType::f32, values, dtype, range.count());
}

Status FirstValues::param_hash(int64_t id, uint64_t *out) {
  const int64_t nbytes = params_[id].count * dtype_nbytes(params_[id].dtype);
  *out = 0;
  if (nbytes == 0 || params_[id].tied() || (one_copy_ && !tensors_.buffered(id))) return {};
  std::byte *data = tensors_.buffered(id) ? copies_[static_cast<size_t>(id)].data() : tensors_.whole_param(id);
  if (data == nullptr) {
    *out = hash_of_zeros(nbytes);
    return {};
  }
  HostCopy values;
  ZERO_TRY(values.open(source_, data, nbytes));
  *out = hash_of(values.data(), static_cast<size_t>(nbytes));
  return {};
}

/// Compares the ranks of a replica, then the ranks of all replicas that have the same shard.
Task FirstValues::check_replicas() {
  std::vector<uint64_t> mine(static_cast<size_t>(params_.size()));
  for (int64_t id = 0; id < params_.size(); ++id) ZERO_CO_TRY(param_hash(id, &mine[static_cast<size_t>(id)]));
  Group &within = *groups_.gather();
  Group *across = groups_.across().get();
  const int64_t replica = across != nullptr ? across->rank() : 0;
  ZERO_CO_AWAIT(compare_hashes(within, mine, replica * within.size(), 1));
  if (across != nullptr) ZERO_CO_AWAIT(compare_hashes(*across, mine, within.rank(), within.size()));
  co_return Status();
}

/// Exchanges one word per rank, so that hashes of all tensors are exchanged only if the words
/// differ.
Task FirstValues::are_same(Group &group, uint64_t mine, bool *out) {
  std::vector<uint64_t> all(static_cast<size_t>(group.size()));
  Cuts cuts;
  for (int64_t rank = 0; rank < group.size(); ++rank) cuts.push_back({rank, rank + 1});
  ZERO_CO_AWAIT(all_gather(group, &mine, all.data(), cuts, DType::i64));
  *out = std::all_of(all.begin(), all.end(), [mine](uint64_t other) { return other == mine; });
  co_return Status();
}

/// Rank r of the group is rank first + r * stride of the optimizer.
Task FirstValues::compare_hashes(Group &group, const std::vector<uint64_t> &mine, int64_t first, int64_t stride) {
  bool same = true;
  ZERO_CO_AWAIT(are_same(group, hash_of(mine.data(), mine.size() * sizeof(uint64_t)), &same));
  if (same) co_return Status();
  const int64_t count = params_.size();
  const int64_t ranks = group.size();
  std::vector<uint64_t> hashes(static_cast<size_t>(count * ranks));
  Cuts cuts;
  for (int64_t rank = 0; rank < ranks; ++rank) cuts.push_back({rank * count, (rank + 1) * count});
  ZERO_CO_AWAIT(all_gather(group, mine.data(), hashes.data(), cuts, DType::i64));
  for (int64_t id = 0; id < count; ++id) {
    std::string different;
    for (int64_t rank = 1; rank < ranks; ++rank) {
      if (hashes[static_cast<size_t>(rank * count + id)] == hashes[static_cast<size_t>(id)]) continue;
      different += (different.empty() ? "" : ", ") + std::to_string(first + rank * stride);
    }
    // All ranks of this group must know the result before the model group fails, because they
    // return its errors.
    if (!different.empty() && groups_.model() != nullptr) ZERO_CO_AWAIT(barrier(group));
    ZERO_CO_CHECK(
        different.empty(), ZERO_E_REPLICAS_DIFFER,
        "first values of %s differ from those of rank %lld on rank %s; write the same on every rank, or begin with ZERO_SOURCE_ROOT, in a "
        "new optimizer: this one is lost",
        params_[id].name.c_str(), lld(first), different.c_str());
  }
  co_return Status();
}

Task FirstValues::take_root() {
  for (int64_t index = 0; index < plan().bucket_count(); ++index) {
    const SlotPlace &place = tensors_.memory().place(param_slot(), index);
    if (place.whole && !one_copy_ && !layout_.format_in(plan().bucket(index)).coded()) {
      ZERO_CO_AWAIT(broadcast(*groups_.gather(), place.at(0), plan().bucket(index).flat.count(), place.dtype, 0));
    }
  }
  if (tensors_.any_buffered()) ZERO_CO_AWAIT(take_copies_of_root());
  co_return co_await gathers_.gather(ParamGatherer::Buckets::buffered);
}

/// Rank 0 sends each owner its cuts of the tensors that rank 0 has written.
Task FirstValues::take_copies_of_root() {
  std::vector<uint8_t> written(copies_.size());
  for (size_t id = 0; id < written.size(); ++id) written[id] = copies_[id].data() != nullptr ? 1 : 0;
  ZERO_CO_AWAIT(broadcast(*groups_.gather(), written.data(), static_cast<int64_t>(written.size()), DType::u8, 0));
  const auto self = static_cast<size_t>(groups_.gather()->rank());
  std::vector<Offer> offers(static_cast<size_t>(groups_.gather()->size()));
  std::vector<Receive> receives(static_cast<size_t>(groups_.gather()->size()));
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (written[static_cast<size_t>(id)] == 0) continue;
    if (tensors_.coded(id)) {
      ZERO_CO_AWAIT(take_copy_of_root(id));
      continue;
    }
    const int64_t element = dtype_nbytes(params_[id].dtype);
    const Cuts cuts = plan().param_cuts(id);
    if (self == 0) {
      const std::byte *whole = copies_[static_cast<size_t>(id)].data();
      for (size_t rank = 0; rank < offers.size(); ++rank) offers[rank] = {whole + cuts[rank].begin * element, cuts[rank].count() * element};
    }
    receives[0] = {tensors_.own_cut(param_slot(), id), cuts[self].count() * element};
    ZERO_CO_AWAIT(exchange(*groups_.gather(), offers, receives));
  }
  co_return Status();
}

/// Lines are encoded whole, so each rank receives the whole tensor, one tensor at a time.
Task FirstValues::take_copy_of_root(int64_t id) {
  std::byte *copy = nullptr;
  ZERO_CO_TRY(whole_copy(id, &copy));
  ZERO_CO_AWAIT(broadcast(*groups_.gather(), copy, params_[id].count, params_[id].dtype, 0));
  keep_copy(id);
  copies_[static_cast<size_t>(id)].release();
  co_return Status();
}

/// Rounds the parameter from its fp32 master, if that was written. Codes that represent exactly
/// these values stay unchanged.
void FirstValues::follow_master(int64_t id) {
  if (!master_written_[static_cast<size_t>(id)]) return;
  const Slot &master = *tensors_.memory().find(ZERO_SLOT_MASTER);
  const Range range = tensors_.updated(id);
  if (range.empty() || tensors_.place(master, id).dtype != DType::f32) return;
  if (tensors_.coded(id)) return quantized_params_.agree(id, range, Lead::masters);
  kernels_.convert(tensors_.at(param_slot(), id, range.begin), params_[id].dtype, tensors_.at(master, id, range.begin), DType::f32,
                   range.count());
}

/// Masters that no longer round to their parameter take its value: those of parameters that were
/// edited. A master that is stored as a remainder always rounds to its parameter. Until the first
/// step averages equal the master, or the parameter if there is no master.
void FirstValues::follow_param(int64_t id) {
  const Range range = tensors_.updated(id);
  if (range.empty()) return;
  const Slot *slot = nullptr;
  const DType dtype = params_[id].dtype;
  const std::byte *param = tensors_.at(param_slot(), id, range.begin);
  float *masters = nullptr;
  if (tensors_.find(ZERO_SLOT_MASTER, id, &slot) && tensors_.place(*slot, id).dtype == DType::f32)
    masters = reinterpret_cast<float *>(tensors_.at(*slot, id, range.begin));
  if (masters != nullptr && tensors_.coded(id)) quantized_params_.agree(id, range, Lead::codes);
  if (masters != nullptr && !tensors_.coded(id)) kernels_.follow(masters, param, dtype, range.count());
  const bool begins_average = !stepped_ && !average_written_[static_cast<size_t>(id)] && tensors_.find(ZERO_SLOT_AVERAGE, id, &slot);
  if (!begins_average) return;
  std::byte *averages = tensors_.at(*slot, id, range.begin);
  if (masters != nullptr) {
    kernels_.copy(averages, masters, DType::f32, range.count());
  } else {
    kernels_.convert(averages, DType::f32, param, dtype, range.count());
  }
}

}  // namespace zero
