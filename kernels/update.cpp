/// @file Updates, in place or block by block. Knows storage, not arithmetic.
#include "kernels/update.h"

#include "kernels/block.h"
#include "kernels/convert.h"
#include "kernels/random.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace zero::kernels {
namespace {

/// Elements that are updated before their states are copied to replicas, while these are in the L2
/// cache.
constexpr int64_t kHandedOn = 16384;

bool is_f32(const Elements &elements) { return elements.data == nullptr || elements.dtype == DType::f32; }

float *f32(const Elements &elements) { return static_cast<float *>(elements.data); }

/// True if kernels can access the memory of other ranks themselves.
bool takes_peers(const Algorithm &algorithm, const UpdateSegment &piece) {
  if (piece.sources.empty() && piece.replicas.empty()) return true;
  return !algorithm.layerwise && Slots::sums(std::ssize(piece.sources)) && std::ssize(piece.replicas) <= Slots::kMostCopies;
}

bool takes_states(const Replica &replica) {
  return replica.master.data != nullptr || replica.state[0].data != nullptr || replica.average.data != nullptr;
}

/// True if all states are bf16 and kernels can update them in place.
bool has_half_states(const Algorithm &algorithm, const UpdateSegment &piece) {
  const auto is_half = [](const Elements &state) { return state.data != nullptr && state.dtype == DType::bf16; };
  return !algorithm.layerwise && std::all_of(piece.state, piece.state + algorithm.state_count, is_half) && piece.grad.dtype != DType::f16 &&
         (piece.replicas.empty() || !takes_states(piece.replicas[0]));
}

/// True if kernels can update a bf16 parameter without master in place.
bool is_half_by_kernels(const Algorithm &algorithm, const UpdateSegment &piece) {
  return !algorithm.layerwise && piece.param.dtype == DType::bf16 && piece.grad.dtype == DType::bf16;
}

/// True if kernels can update the slots in place, without blocks.
bool is_plain(const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars) {
  bool plain = takes_peers(algorithm, piece) && scalars.clip_value == 0 && (piece.average.data == nullptr || !algorithm.layerwise);
  plain = plain && (std::all_of(std::begin(piece.state), std::end(piece.state), is_f32) || has_half_states(algorithm, piece));
  if (piece.master.data == nullptr) return plain && (is_f32(piece.param) || is_half_by_kernels(algorithm, piece));
  return plain && !algorithm.layerwise && (is_rounded_by_kernels(piece, piece.grad.dtype) || is_split_by_kernels(piece));
}

/// Random numbers of bf16 slots for one call of a kernel: they stay in the L1 cache.
struct RandomHalves {
  static constexpr int64_t kMost = 2048;
  alignas(64) uint32_t words[1 + kMaxStates][kMost / 2];
};

bool rounds_stochastically(const UpdateSegment &piece, const UpdateScalars &scalars) {
  return scalars.stochastic &&
         ((piece.master.data == nullptr && !is_f32(piece.param)) || !std::all_of(std::begin(piece.state), std::end(piece.state), is_f32));
}

void give_random(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars, RandomHalves &random, Slots &slots) {
  const auto made = [&](uint32_t slot) {
    uint32_t *words = random.words[slot];
    make_random(table, words, DType::bf16, piece.count, {scalars.seed, static_cast<uint64_t>(scalars.step), slot}, piece.first);
    return words;
  };
  if (slots.param == nullptr && slots.lower == nullptr) slots.random_param = made(kParamSlot);
  for (int i = 0; i < kMaxStates; ++i) {
    if (slots.half_state[i] != nullptr) slots.random_state[i] = made(kFirstStateSlot + static_cast<uint32_t>(i));
  }
}

/// Returns the slots in this rank's memory.
Slots own_slots(const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars) {
  const bool has_master = piece.master.data != nullptr;
  Slots slots = {.param = nullptr, .grad = piece.grad.data, .state = {}, .count = piece.count};
  if (has_master && piece.master.dtype == DType::u16) {
    slots.lower = static_cast<uint16_t *>(piece.master.data);
  } else if (has_master || is_f32(piece.param)) {
    slots.param = f32(has_master ? piece.master : piece.param);
  }
  if (slots.param != piece.param.data) slots.rounded = piece.param.data;
  for (int i = 0; i < algorithm.state_count; ++i) {
    if (is_f32(piece.state[i])) {
      slots.state[i] = f32(piece.state[i]);
    } else {
      slots.half_state[i] = static_cast<uint16_t *>(piece.state[i].data);
    }
  }
  slots.grad_dtype = piece.grad.dtype;
  slots.grad_factor = scalars.grad_factor;
  slots.average = f32(piece.average);
  slots.average_weight = static_cast<float>(1 - scalars.average_decay);
  return slots;
}

/// Adds the memory of other ranks to slots.
struct Peers {
  Peers(const UpdateSegment &piece, Slots &slots) {
    if (!piece.sources.empty()) slots.grad = nullptr;
    slots.sources = piece.sources.data();
    slots.source_count = std::ssize(piece.sources);
    slots.divisor = piece.divisor;
    slots.copies = copies;
    slots.handed = handed;
    slots.peers_offset = piece.peers_offset;
    const auto hand = [&](const Elements &from, const Elements &to) {
      if (to.data != nullptr) handed[slots.handed_count++] = {f32(from), f32(to)};
    };
    for (const Replica &replica : piece.replicas) {
      copies[slots.copy_count++] = replica.param.data;
      hand(piece.master, replica.master);
      for (int i = 0; i < kMaxStates; ++i) hand(piece.state[i], replica.state[i]);
      hand(piece.average, replica.average);
    }
  }
  Peers(const Peers &) = delete;

  void *copies[Slots::kMostCopies];
  Slots::Handed handed[Slots::kMostHanded];
};

/// `random` is nullptr unless the piece is rounded stochastically.
void update_plain(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars,
                  RandomHalves *random) {
  Slots slots = own_slots(algorithm, piece, scalars);
  const Peers peers(piece, slots);
  slots.streams = scalars.streams && (piece.master.data != nullptr || slots.copy_count > 0);
  if (random != nullptr) give_random(table, piece, scalars, *random, slots);
  (table.*algorithm.update)(slots, algorithm.constants(scalars.hyper));
  if (slots.streams) table.flush();
}

void update_plain_stochastic(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars) {
  RandomHalves random;
  for (int64_t begin = 0; begin < piece.count; begin += RandomHalves::kMost) {
    const int64_t count = std::min(RandomHalves::kMost, piece.count - begin);
    update_plain(table, algorithm, slice(piece, begin, count), scalars, &random);
  }
}

void update_blocks(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars) {
  const Constants constants = algorithm.constants(scalars.hyper);
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    Slots slots = {.param = nullptr, .grad = nullptr, .state = {}, .count = block.move(begin)};
    slots.param = block.param();
    if (!algorithm.layerwise) {
      block.give_gradient(slots);
      block.let_round(slots);
    }
    for (int i = 0; i < algorithm.state_count; ++i) slots.state[i] = block.state(i);
    slots.ahead = block.ahead();
    (table.*algorithm.update)(slots, constants);
    block.store_param(slots.param);
    for (int i = 0; i < algorithm.state_count && !algorithm.layerwise; ++i) block.store_state(i, slots.state[i]);
  }
}

}  // namespace

Elements slice(const Elements &elements, int64_t begin) {
  if (elements.data == nullptr) return elements;
  float *scales = elements.scales == nullptr ? nullptr : elements.scales + begin / kLine;
  return {static_cast<std::byte *>(elements.data) + begin * dtype_nbytes(elements.dtype), elements.dtype, scales};
}

UpdateSegment slice(const UpdateSegment &piece, int64_t begin, int64_t count) {
  UpdateSegment part;
  part.param = slice(piece.param, begin);
  part.master = slice(piece.master, begin);
  part.grad = slice(piece.grad, begin);
  for (int state = 0; state < kMaxStates; ++state) part.state[state] = slice(piece.state[state], begin);
  part.average = slice(piece.average, begin);
  part.sources = piece.sources;
  part.divisor = piece.divisor;
  part.replicas = piece.replicas;
  part.peers_offset = piece.peers_offset + begin;
  part.count = count;
  part.first = piece.first + static_cast<uint64_t>(begin);
  return part;
}

void begin_states(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars) {
  Block block(table, piece, scalars);
  float values[Block::kMost];
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    const int64_t count = block.move(begin);
    for (int i = 0; i < algorithm.state_count; ++i) {
      const bool has_initial = i == 0 && algorithm.initial_state != nullptr;
      std::fill_n(values, count, has_initial ? static_cast<float>(scalars.hyper.*algorithm.initial_state) : 0.0F);
      if (piece.state[i].data != nullptr) block.store_state(i, values);
    }
  }
}

void copy_elements(const Table &table, const Elements &to, const Elements &from, int64_t count, bool streams) {
  const int64_t nbytes = count * dtype_nbytes(from.dtype);
  if (streams) {
    table.stream(to.data, from.data, nbytes);
  } else {
    std::memcpy(to.data, from.data, static_cast<size_t>(nbytes));
  }
  if (from.scales != nullptr) std::copy_n(from.scales, (count + kLine - 1) / kLine, to.scales);
}

void hand_on_states(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars) {
  for (const Replica &replica : piece.replicas) {
    const auto copy = [&](const Elements &to, const Elements &from) {
      if (to.data != nullptr) copy_elements(table, slice(to, piece.peers_offset), from, piece.count, scalars.streams);
    };
    copy(replica.master, piece.master);
    for (int i = 0; i < kMaxStates; ++i) copy(replica.state[i], piece.state[i]);
    copy(replica.average, piece.average);
  }
  if (scalars.streams) table.flush();
}

void update(const Table &table, const Algorithm &algorithm, const UpdateSegment &piece, const UpdateScalars &scalars) {
  if (is_plain(algorithm, piece, scalars)) {
    if (rounds_stochastically(piece, scalars)) return update_plain_stochastic(table, algorithm, piece, scalars);
    return update_plain(table, algorithm, piece, scalars, nullptr);
  }
  if (piece.replicas.empty() || !takes_states(piece.replicas[0])) return update_blocks(table, algorithm, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += kHandedOn) {
    const UpdateSegment part = slice(piece, begin, std::min(kHandedOn, piece.count - begin));
    update_blocks(table, algorithm, part, scalars);
    hand_on_states(table, part, scalars);
  }
}

void move_average(const Table &table, const UpdateSegment &piece, const UpdateScalars &scalars) {
  Block block(table, piece, scalars);
  for (int64_t begin = 0; begin < piece.count; begin += Block::kMost) {
    block.move(begin);
    block.move_average();
  }
  for (const Replica &replica : piece.replicas) {
    if (replica.average.data == nullptr) continue;
    copy_elements(table, slice(replica.average, piece.peers_offset), piece.average, piece.count, scalars.streams);
  }
}

}  // namespace zero::kernels
