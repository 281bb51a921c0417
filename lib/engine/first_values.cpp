/// @file begin: parameters take over first values from replicas, from rank 0 or from shards.
#include "engine/optimizer.h"

#include "core/hash.h"
#include "engine/host_copy.h"

#include <algorithm>
#include <array>

namespace zero {
namespace {

/// The hash of `nbytes` zeros, which is what a tensor that nobody wrote holds.
uint64_t hash_of_zeros(int64_t nbytes) {
  static constexpr std::array<char, 4096> kZeros{};
  Hash hash;
  for (int64_t done = 0; done < nbytes; done += static_cast<int64_t>(kZeros.size())) {
    hash.add(kZeros.data(), static_cast<size_t>(std::min<int64_t>(nbytes - done, kZeros.size())));
  }
  return hash.value();
}

}  // namespace

Task Optimizer::begin(int32_t source) { return run(begin_body(source), Caller::begin); }

Task Optimizer::begin_body(int32_t source) {
  ZERO_CO_TRY(check_phase("zero_optimizer_begin", Phase::sealed, Phase::running));
  ZERO_CO_CHECK(source >= ZERO_SOURCE_LOCAL && source <= ZERO_SOURCE_SHARDS, ZERO_E_INVALID_ARGUMENT,
                "source is %d, but must be a zero_source (0 .. 2)", source);
  ZERO_CO_CHECK(acquired_count_ == 0, ZERO_E_STATE, "%lld parameters are acquired; zero_optimizer_param_release comes before begin",
                lld(acquired_count_));
  ZERO_CO_CHECK(!gradients_.any_acquired() && !gradients_.started(), ZERO_E_STATE,
                "gradients of a step were acquired or given; zero_optimizer_step comes before begin");
  ZERO_CO_CHECK(
      source == ZERO_SOURCE_SHARDS || !buffers_params() || phase_ == Phase::sealed, ZERO_E_STATE,
      "in stage 3, and of 8-bit parameters, no rank holds whole values after the first begin; edit them with zero_optimizer_write "
      "and use ZERO_SOURCE_SHARDS");
  ZERO_CO_CHECK(
      source == ZERO_SOURCE_SHARDS || !range_edited_, ZERO_E_STATE,
      "parameters were given values by zero_optimizer_write or zero_optimizer_init_param, which lie with the ranks that own them; "
      "begin takes them over with ZERO_SOURCE_SHARDS");
  switch (source) {
    case ZERO_SOURCE_LOCAL:
      ZERO_CO_AWAIT(begin_local());
      break;
    case ZERO_SOURCE_ROOT:
      ZERO_CO_AWAIT(begin_root());
      break;
    default:
      for (int64_t id = 0; id < params_.size(); ++id) follow_master(id);
      ZERO_CO_AWAIT(gather_params(Gathered::all));
      break;
  }
  for (int64_t id = 0; id < params_.size(); ++id) follow_param(id);
  ZERO_CO_TRY(kernels_.status());
  // Nobody edits the one copy again before all have taken it over.
  if (one_copy()) ZERO_CO_AWAIT(barrier(*gather_group_));
  for (Arena &copy : first_copies_) copy.release();
  master_written_.assign(master_written_.size(), false);
  average_written_.assign(average_written_.size(), false);
  begun_ = true;
  edited_ = false;
  range_edited_ = false;
  phase_ = Phase::running;
  co_return verifier_.move_window();
}

/// Before begin, where the parameter itself is not whole or not as the caller sees it: a whole tensor of this rank's own, zero at first.
Status Optimizer::whole_copy(int64_t id, std::byte **out) {
  Arena &copy = first_copies_[static_cast<size_t>(id)];
  if (copy.data() == nullptr) {
    ZERO_TRY(Arena::create_private(memory_source(), ZERO_MEMORY_PARAM_POOL, params_[id].count * dtype_nbytes(params_[id].dtype), &copy));
  }
  *out = copy.data();
  return {};
}

Task Optimizer::begin_local() {
  // What any rank wrote into the one copy is there.
  if (one_copy()) ZERO_CO_AWAIT(barrier(*gather_group_));
  ZERO_CO_AWAIT(check_replicas());
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (buffers_param(id)) keep_copy(id);
  }
  co_return co_await gather_params(Gathered::coded);
}

/// A tensor that this rank never acquired keeps what its shard holds. Masters of codes are the values as they were written.
void Optimizer::keep_copy(int64_t id) {
  const Arena &copy = first_copies_[static_cast<size_t>(id)];
  if (copy.data() == nullptr) return;
  const Range range = tensors_.coded(id) ? tensors_.updated(id) : tensors_.own(id);
  if (range.empty()) return;
  const DType dtype = params_[id].dtype;
  const std::byte *values = copy.data() + range.begin * dtype_nbytes(dtype);
  if (!tensors_.coded(id)) {
    kernels_.copy(tensors_.own_cut(slots_.param(), id), values, dtype, range.count());
    return;
  }
  const Slot *master = nullptr;
  coded_params_.encode(id, range, values, dtype);
  if (tensors_.find(ZERO_SLOT_MASTER, id, &master))
    kernels_.convert(tensors_.at(*master, id, range.begin), DType::f32, values, dtype, range.count());
}

Status Optimizer::param_hash(int64_t id, uint64_t *out) {
  const int64_t nbytes = params_[id].count * dtype_nbytes(params_[id].dtype);
  *out = 0;
  if (nbytes == 0 || params_[id].tied() || (one_copy() && !buffers_param(id))) return {};
  std::byte *data = buffers_param(id) ? first_copies_[static_cast<size_t>(id)].data() : tensors_.whole_param(id);
  if (data == nullptr) {
    *out = hash_of_zeros(nbytes);
    return {};
  }
  HostCopy values;
  ZERO_TRY(values.open(memory_source(), data, nbytes));
  *out = hash_of(values.data(), static_cast<size_t>(nbytes));
  return {};
}

Task Optimizer::check_replicas() {
  const int64_t count = params_.size();
  const int64_t ranks = group_->size();
  std::vector<uint64_t> hashes(static_cast<size_t>(count * ranks));
  uint64_t *mine = hashes.data() + group_->rank() * count;
  for (int64_t id = 0; id < count; ++id) ZERO_CO_TRY(param_hash(id, &mine[id]));
  Cuts cuts;
  for (int64_t rank = 0; rank < ranks; ++rank) cuts.push_back({rank * count, (rank + 1) * count});
  ZERO_CO_AWAIT(all_gather(*gather_group_, mine, hashes.data(), cuts, DType::i64));
  for (int64_t id = 0; id < count; ++id) {
    std::string different;
    for (int64_t rank = 1; rank < ranks; ++rank) {
      if (hashes[static_cast<size_t>(rank * count + id)] == hashes[static_cast<size_t>(id)]) continue;
      different += (different.empty() ? "" : ", ") + std::to_string(rank);
    }
    // All have heard of it before the model group does, whose errors they heed.
    if (!different.empty() && model_group_ != nullptr) ZERO_CO_AWAIT(barrier(*gather_group_));
    ZERO_CO_CHECK(
        different.empty(), ZERO_E_REPLICAS_DIFFER,
        "first values of %s differ from those of rank 0 on rank %s; write the same on every rank, or begin with ZERO_SOURCE_ROOT, in a new "
        "optimizer: this one is lost",
        params_[id].name.c_str(), different.c_str());
  }
  co_return Status();
}

Task Optimizer::begin_root() {
  for (int64_t index = 0; index < plan_.bucket_count(); ++index) {
    const SlotPlace &place = slots_.place(slots_.param(), index);
    if (place.whole && !one_copy() && !layout_.format_in(plan_.bucket(index)).coded()) {
      ZERO_CO_AWAIT(broadcast(*gather_group_, place.at(0), plan_.bucket(index).flat.count(), place.dtype, 0));
    }
  }
  if (buffers_params()) ZERO_CO_AWAIT(begin_root_copies());
  co_return co_await gather_params(Gathered::coded);
}

/// Rank 0 sends every owner its cut of each tensor that it wrote.
Task Optimizer::begin_root_copies() {
  std::vector<uint8_t> written(first_copies_.size());
  for (size_t id = 0; id < written.size(); ++id) written[id] = first_copies_[id].data() != nullptr ? 1 : 0;
  ZERO_CO_AWAIT(broadcast(*gather_group_, written.data(), static_cast<int64_t>(written.size()), DType::u8, 0));
  const auto self = static_cast<size_t>(group_->rank());
  std::vector<Offer> offers(static_cast<size_t>(group_->size()));
  std::vector<Receive> receives(static_cast<size_t>(group_->size()));
  for (int64_t id = 0; id < params_.size(); ++id) {
    if (written[static_cast<size_t>(id)] == 0) continue;
    if (tensors_.coded(id)) {
      ZERO_CO_AWAIT(take_copy_of_root(id));
      continue;
    }
    const int64_t element = dtype_nbytes(params_[id].dtype);
    const Cuts &cuts = plan_.param(id).cuts;
    if (self == 0) {
      const std::byte *whole = first_copies_[static_cast<size_t>(id)].data();
      for (size_t rank = 0; rank < offers.size(); ++rank) offers[rank] = {whole + cuts[rank].begin * element, cuts[rank].count() * element};
    }
    receives[0] = {tensors_.own_cut(slots_.param(), id), cuts[self].count() * element};
    ZERO_CO_AWAIT(exchange(*gather_group_, offers, receives));
  }
  co_return Status();
}

/// Lines are encoded whole, so each rank takes the whole tensor, one at a time.
Task Optimizer::take_copy_of_root(int64_t id) {
  std::byte *copy = nullptr;
  ZERO_CO_TRY(whole_copy(id, &copy));
  ZERO_CO_AWAIT(broadcast(*gather_group_, copy, params_[id].count, params_[id].dtype, 0));
  keep_copy(id);
  first_copies_[static_cast<size_t>(id)].release();
  co_return Status();
}

/// A parameter whose fp32 master was written is its rounding. Codes that stand for its very values stay as they were written.
void Optimizer::follow_master(int64_t id) {
  if (!master_written_[static_cast<size_t>(id)]) return;
  const Slot &master = *slots_.find(ZERO_SLOT_MASTER);
  const Range range = tensors_.updated(id);
  if (range.empty() || tensors_.place(master, id).dtype != DType::f32) return;
  if (tensors_.coded(id)) return coded_params_.agree(id, range, Lead::masters);
  kernels_.convert(tensors_.at(slots_.param(), id, range.begin), params_[id].dtype, tensors_.at(master, id, range.begin), DType::f32,
                   range.count());
}

/// Masters that no longer round to their parameter take its value: those of parameters that were edited. A remainder of any value rounds
/// to its parameter. Averages begin with the master, or the parameter where there is none.
void Optimizer::follow_param(int64_t id) {
  const Range range = tensors_.updated(id);
  if (range.empty()) return;
  const Slot *slot = nullptr;
  const DType dtype = params_[id].dtype;
  const std::byte *param = tensors_.at(slots_.param(), id, range.begin);
  float *masters = nullptr;
  if (tensors_.find(ZERO_SLOT_MASTER, id, &slot) && tensors_.place(*slot, id).dtype == DType::f32)
    masters = reinterpret_cast<float *>(tensors_.at(*slot, id, range.begin));
  if (masters != nullptr && tensors_.coded(id)) coded_params_.agree(id, range, Lead::codes);
  if (masters != nullptr && !tensors_.coded(id)) kernels_.follow(masters, param, dtype, range.count());
  const bool begins_average = !begun_ && !average_written_[static_cast<size_t>(id)] && tensors_.find(ZERO_SLOT_AVERAGE, id, &slot);
  if (!begins_average) return;
  std::byte *averages = tensors_.at(*slot, id, range.begin);
  if (masters != nullptr) {
    kernels_.copy(averages, masters, DType::f32, range.count());
  } else {
    kernels_.convert(averages, DType::f32, param, dtype, range.count());
  }
}

}  // namespace zero
