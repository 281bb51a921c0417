/// @file Random pieces of updates, in any storage, on the host and on a device, with their scalars.
#pragma once

#include "kernels/block_scaled.h"
#include "kernels/convert.h"
#include "kernels/update.h"
#include "tests/kernels/tested_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace zero::kernels::test {

inline const Table &plain() { return *supported().front(); }

/// Elements of a slot on the host, and their addresses on the device. One extra element must stay
/// unchanged.
struct Slot {
  DType dtype = DType::f32;
  std::vector<uint8_t> bytes;
  std::vector<float> scales;

  bool is_kept() const { return !bytes.empty(); }

  Elements on_host() { return is_kept() ? Elements{bytes.data(), dtype, scales.empty() ? nullptr : scales.data()} : Elements{}; }

  /// Places the elements `shift` elements behind a multiple of 256 bytes.
  cuda::Elements on_device(DeviceMemory &memory, int64_t shift) {
    if (!is_kept()) return {};
    void *data = memory.place(bytes, shift * dtype_nbytes(dtype));
    return {data, scales.empty() ? nullptr : memory.place(scales), static_cast<int64_t>(dtype)};
  }

  friend bool operator==(const Slot &a, const Slot &b) {
    const auto same = [](float x, float y) { return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y); };
    return a.dtype == b.dtype && a.bytes == b.bytes && std::equal(a.scales.begin(), a.scales.end(), b.scales.begin(), b.scales.end(), same);
  }
};

/// Any values; `special`: any bits.
inline Slot random_slot(Random &random, DType dtype, int64_t count, bool special, bool is_positive = false) {
  const int64_t more = count + 1;
  const int64_t lines = more / kLine + 1;
  Slot slot = {dtype, std::vector<uint8_t>(static_cast<size_t>(more * dtype_nbytes(dtype))), {}};
  std::vector<float> values(static_cast<size_t>(more));
  for (float &value : values) {
    value = special ? std::bit_cast<float>(static_cast<uint32_t>(random.special_bits(32, 23))) : random.value(12);
    if (is_positive) value = std::fabs(value);
  }
  if (is_block_scaled(dtype)) {
    slot.scales.resize(static_cast<size_t>(lines), 7.0F);
    plain().encode(slot.bytes.data(), slot.scales.data(), dtype, values.data(), more, nullptr);
  } else if (dtype == DType::u16) {
    for (uint8_t &byte : slot.bytes) byte = static_cast<uint8_t>(random.next());
  } else {
    narrow(plain(), slot.bytes.data(), dtype, values.data(), more);
    if (special && dtype != DType::f32) {
      auto *bits = reinterpret_cast<uint16_t *>(slot.bytes.data());
      for (int64_t i = 0; i < more; ++i) bits[i] = static_cast<uint16_t>(random.special_bits(16, dtype == DType::f16 ? 10 : 7));
    }
  }
  return slot;
}

/// One piece with all its slots.
struct Slots {
  Slot param, master, grad, state[2], average;
  std::vector<Slot> sources, replicas;
  int64_t count = 0;
  int64_t peers_offset = 0;
  int64_t shift = 0;  ///< offset in elements from the alignment of whole quads
  double divisor = 1;
  uint64_t first = 0;
  int64_t scalars = 0;
  bool untouched = false;  ///< only its average moves

  friend bool operator==(const Slots &, const Slots &) = default;

  std::string text() const {
    std::string text = "count " + std::to_string(count) + " param " + dtype_name(param.dtype) + " master " +
                       (master.is_kept() ? dtype_name(master.dtype) : "none") + " grad " + dtype_name(grad.dtype) + " states " +
                       dtype_name(state[0].dtype) + " " + dtype_name(state[1].dtype);
    return text + (average.is_kept() ? " average" : "") + " sources " + std::to_string(sources.size()) + " replicas " +
           std::to_string(replicas.size()) + " offset " + std::to_string(peers_offset) + " shift " + std::to_string(shift);
  }
};

inline constexpr DType kParams[] = {DType::f32, DType::f16, DType::bf16};
inline constexpr DType kFirsts[] = {DType::f32, DType::bf16, DType::f8e4m3};
inline constexpr DType kSeconds[] = {DType::f32, DType::bf16, DType::f8ue5m3};
inline constexpr int64_t kCounts[] = {0, 1, 3, 4, 5, 255, 256, 257, 1023, 1024, 1025, 2047, 2304, 3001};

inline int64_t random_count(Random &random) {
  return random.below(2) == 0 ? kCounts[random.below(std::size(kCounts))] : 1 + random.below(1500);
}

/// One of cuda::Form, and none with a master.
struct FrequentStorage {
  DType param, master, first, second;  ///< master u8: none
};
inline constexpr FrequentStorage kFrequent[] = {
    {DType::f32, DType::u8, DType::f32, DType::f32},         {DType::f16, DType::f32, DType::f32, DType::f32},
    {DType::bf16, DType::f32, DType::f32, DType::f32},       {DType::bf16, DType::u16, DType::f32, DType::f32},
    {DType::bf16, DType::f32, DType::bf16, DType::bf16},     {DType::bf16, DType::u8, DType::bf16, DType::bf16},
    {DType::bf16, DType::f32, DType::f8e4m3, DType::f8ue5m3}};

inline void give_frequent_storage(Random &random, Slots &slots, bool special) {
  const int64_t count = slots.count;
  const FrequentStorage &storage = kFrequent[random.below(std::size(kFrequent))];
  slots.param = random_slot(random, storage.param, count, special);
  if (storage.master != DType::u8) slots.master = random_slot(random, storage.master, count, special);
  slots.grad = random_slot(random, storage.param, count, special);
  slots.state[0] = random_slot(random, storage.first, count, special);
  slots.state[1] = random_slot(random, storage.second, count, special, random.below(4) != 0);
}

inline void give_storage(Random &random, Slots &slots, bool special) {
  const int64_t count = slots.count;
  DType param = kParams[random.below(3)];
  const DType grad = kParams[random.below(3)];
  const int64_t masters = random.below(3);
  if (masters == 1 && random.below(3) == 0) param = DType::f8e4m3;
  if (masters == 2) param = DType::bf16;
  slots.param = random_slot(random, param, count, special);
  if (masters > 0) slots.master = random_slot(random, masters == 1 ? DType::f32 : DType::u16, count, special);
  slots.grad = random_slot(random, grad, count, special);
  slots.state[0] = random_slot(random, kFirsts[random.below(3)], count, special);
  slots.state[1] = random_slot(random, kSeconds[random.below(3)], count, special, random.below(4) != 0);
  if (random.below(3) == 0) slots.average = random_slot(random, DType::f32, count, special);
}

inline void give_peers(Random &random, Slots &slots, bool special) {
  slots.peers_offset = random.below(4) == 0 && slots.param.dtype != DType::f8e4m3 ? random.below(700) : kLine * random.below(4);
  const int64_t reach = slots.peers_offset + slots.count;
  const int64_t sources = random.below(8) == 0 ? 10 + random.below(55) : random.below(10);
  for (int64_t i = 0; i < sources; ++i) slots.sources.push_back(random_slot(random, slots.grad.dtype, reach, special));
  if (random.below(2) == 0) slots.divisor = 1 + static_cast<double>(random.below(7));
  for (int64_t i = random.below(4); i > 0; --i) slots.replicas.push_back(random_slot(random, slots.param.dtype, reach, special));
}

inline Slots random_slots(Random &random, int64_t count) {
  Slots slots;
  slots.count = count;
  const bool special = random.below(3) == 0;
  const bool frequent = random.below(2) == 0;
  (frequent ? give_frequent_storage : give_storage)(random, slots, special);
  if (random.below(frequent ? 4 : 2) == 0) give_peers(random, slots, special);
  if (random.below(4) == 0) slots.shift = 1 + random.below(3);
  slots.first = (random.next() >> (8 + random.below(50))) * kLine;
  slots.scalars = random.below(2);
  return slots;
}

inline UpdateScalars random_scalars(Random &random) {
  UpdateScalars scalars;
  scalars.hyper = {.lr = 0.01,
                   .momentum = random.below(3) == 0 ? 0 : 0.9,
                   .dampening = random.below(2) == 0 ? 0 : 0.25,
                   .nesterov = static_cast<double>(random.below(2)),
                   .beta1 = random.below(4) == 0 ? 0.3 : 0.9,
                   .beta2 = 0.95,
                   .epsilon = random.below(4) == 0 ? 0 : 1e-8,
                   .weight_decay = random.below(2) == 0 ? 0 : 0.1,
                   .step = 1 + random.below(4)};
  if (random.below(4) == 0) scalars.hyper.step = static_cast<int64_t>(random.next() >> 9);
  if (random.below(2) == 0) scalars.grad_factor = 0.37F;
  if (random.below(2) == 0) scalars.clip_value = 0.01F;
  scalars.average_decay = 0.99;
  scalars.stochastic = random.below(2) == 0;
  scalars.seed = random.next();
  scalars.step = scalars.hyper.step;
  return scalars;
}

/// A piece on the host, and the arrays that it points to.
struct HostPiece {
  UpdateSegment piece;
  std::vector<const void *> sources;
  std::vector<Replica> replicas;

  explicit HostPiece(Slots &slots) {
    piece.param = slots.param.on_host();
    piece.master = slots.master.on_host();
    piece.grad = slots.grad.on_host();
    for (int i = 0; i < 2; ++i) piece.state[i] = slots.state[i].on_host();
    piece.average = slots.average.on_host();
    piece.count = slots.count;
    for (const Slot &source : slots.sources) sources.push_back(source.bytes.data());
    for (Slot &replica : slots.replicas) replicas.push_back({.param = replica.on_host()});
    piece.sources = sources;
    piece.divisor = slots.divisor;
    piece.replicas = replicas;
    piece.peers_offset = slots.peers_offset;
    piece.first = slots.first;
  }
  HostPiece(const HostPiece &) = delete;
};

/// The scalars of an update on the host; the device gets them as a recipe and a run.
struct Told {
  UpdateScalars scalars;
  bool skips = false;
};

inline Told random_told(Random &random) { return {random_scalars(random), random.below(8) == 0}; }

/// The arrays of one call, which are on the device too once its memory is uploaded. Chunks come in
/// any order. `updates`: how many each piece has had, in the run of told[0]; nullptr: they are not
/// counted.
class Call {
 public:
  Call(DeviceMemory &memory, std::vector<Slots> &all, const std::vector<Told> &told, int32_t algorithm, Random &random,
       std::vector<int64_t> *updates = nullptr)
      : stream_(memory.stream()), counted_(updates != nullptr), sources_(all.size()), replicas_(all.size()) {
    for (size_t i = 0; i < all.size(); ++i) add_piece(memory, all[i], i);
    for (const Told &each : told) add_told(each, algorithm);
    if (counted_) count_apart(memory.place(*updates));
    for (size_t i = chunks_.size(); i > 1; --i)
      std::swap(chunks_[i - 1], chunks_[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    scalars_there_ = memory.place(scalars_);
    recipes_there_ = memory.place(recipes_);
    runs_there_ = memory.place(runs_);
    update = {memory.place(pieces), memory.place(chunks_), std::ssize(chunks_), scalars_there_};
  }
  Call(const Call &) = delete;

  void prepare(const cuda::Table &kernels) const {
    if (counted_) {
      const int64_t count = std::ssize(pieces);
      ASSERT_EQ(kernels.prepare_each(0, runs_there_, recipes_there_, update.pieces, count, scalars_there_, stream_), 0);
      return;
    }
    for (size_t i = 0; i < recipes_.size(); ++i)
      ASSERT_EQ(kernels.prepare(0, runs_there_ + i, recipes_there_ + i, 1, scalars_there_ + i, stream_), 0);
  }

  std::vector<cuda::UpdateSegment> pieces;
  cuda::Update update;

 private:
  void add_piece(DeviceMemory &memory, Slots &slots, size_t index) {
    for (Slot &source : slots.sources) sources_[index].push_back(source.on_device(memory, slots.shift).data);
    for (Slot &replica : slots.replicas) replicas_[index].push_back(replica.on_device(memory, slots.shift));
    cuda::UpdateSegment piece;
    piece.param = slots.param.on_device(memory, slots.shift);
    piece.master = slots.master.on_device(memory, slots.shift);
    piece.grad = slots.grad.on_device(memory, slots.shift);
    for (int i = 0; i < 2; ++i) piece.state[i] = slots.state[i].on_device(memory, slots.shift);
    piece.average = slots.average.on_device(memory, slots.shift);
    piece.count = slots.count;
    piece.first = slots.first;
    piece.sources = memory.place(sources_[index]);
    piece.source_count = std::ssize(slots.sources);
    piece.divisor = slots.divisor;
    piece.replicas = memory.place(replicas_[index]);
    piece.replica_count = std::ssize(slots.replicas);
    piece.peers_offset = slots.peers_offset;
    piece.scalars = slots.scalars;
    piece.form = cuda::form_of(piece);
    if (slots.untouched) piece.average_count = slots.average.is_kept() ? slots.count : 0;
    if (slots.untouched) piece.count = 0;
    pieces.push_back(piece);
    const auto number = static_cast<int64_t>(index);
    for (int64_t begin = 0; begin <= slots.count; begin += cuda::kChunk) chunks_.push_back({begin, number});  // one without elements, too
  }

  void add_told(const Told &told, int32_t algorithm) {
    const UpdateScalars &scalars = told.scalars;
    recipes_.push_back({scalars.hyper, scalars.seed, algorithm, scalars.clip_value, scalars.stochastic ? 1 : 0});
    recipes_.back().hyper.step = -1;
    recipes_.back().hyper.average_decay = scalars.average_decay;
    runs_.push_back({.applied_count = scalars.hyper.step - 1, .skips = told.skips ? 1 : 0, .grad_factor = scalars.grad_factor});
    scalars_.push_back({});
  }

  void count_apart(const int64_t *updates) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].recipe = std::exchange(pieces[i].scalars, static_cast<int64_t>(i));
      pieces[i].updates = updates + i;
    }
    scalars_.resize(pieces.size());
  }

  void *stream_;
  const bool counted_;
  std::vector<cuda::Chunk> chunks_;
  std::vector<cuda::Recipe> recipes_;
  std::vector<StepState> runs_;  ///< one per recipe
  std::vector<cuda::Scalars> scalars_;
  std::vector<std::vector<const void *>> sources_;
  std::vector<std::vector<cuda::Elements>> replicas_;
  cuda::Scalars *scalars_there_;
  const cuda::Recipe *recipes_there_;
  const StepState *runs_there_;
};

}  // namespace zero::kernels::test
