/// @file Running a program: edits, gradients, steps, and what is seen of them.
#include "tests/fuzz/training.h"
#include "tests/engine/training.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace zero::test::fuzz {

bool Training::start() {
  built_ = build();
  if (!built_) return false;
  Noise(*this).make(true);
  write_first_values();
  return true;
}

void Training::take_step(int64_t number) {
  if (!built_ || number >= std::ssize(program_.steps)) return;
  Noise noise(*this);
  calls_.meanwhile = [&noise] { noise.meanwhile(); };
  const Step &step = program_.steps[static_cast<size_t>(number)];
  place_ = "step " + std::to_string(number) + " ";
  if (way_.remakes_before == number) save_and_remake(number > 0);
  edit(step);
  noise.make(true);
  for (const int64_t id : step.looked_at) look(id);
  noise.make(true);
  for (const MicroStep &micro : step.micro_steps) {
    take_micro_step(micro);
    noise.make(false);
  }
  if (!step.micro_steps.empty()) scribble(step.micro_steps.back());
  finish(step.finish);
  calls_.meanwhile = nullptr;
}

void Training::end() {
  if (!built_) return;
  place_ = "end ";
  Noise(*this).make(true);
  read_all();
  for (int64_t id = 0; id < program_.size(); ++id) look(id);
}

void Training::tell(const std::string &what, const std::vector<std::byte> &bytes) { tell(what, hash_of(bytes)); }

void Training::begin(int32_t source) {
  release_params();
  source = static_cast<int32_t>(calls_.vary(source, 3));
  calls_.must(calls_.meet("begin " + std::to_string(source), zero_optimizer_begin, zero_optimizer_begin_async, optimizer_, source));
  begun_ = true;
  edited_ = false;
}

void Training::edit(const Step &step) {
  bool begins = false;
  for (const Edit &each : step.edits) {
    switch (each.kind) {
      case Edit::Kind::write:
        begins = write(each) || begins;
        break;
      case Edit::Kind::init:
        init(each.id, each.which, each.seed);
        begins = true;
        break;
      case Edit::Kind::sync_buffers:
        sync_buffers(each.seed);
        break;
      default:
        set(each);
    }
  }
  if (edited_ && way_.noise > 0) Noise(*this).refuse_edited();
  if (begins) begin(ZERO_SOURCE_SHARDS);
}

/// Whether begin must follow.
bool Training::write(const Edit &edit) {
  const int64_t id = calls_.vary(edit.id, program_.size());
  int64_t slots = 0;
  int64_t slot = 0;
  int64_t dtype = 0;
  int64_t count = 0;
  calls_.must(zero_optimizer_slot_count(optimizer_, id, &slots));
  calls_.must(zero_optimizer_slot(optimizer_, id, edit.which % slots, &slot, &dtype, &count));
  Random random(edit.seed + static_cast<uint64_t>(rank_));
  const int64_t from = random.below(count + 1);
  const int64_t length = random.below(count - from + 1);
  std::vector<float> values = values_at(edit.seed, static_cast<uint64_t>(rank_), 0, length);
  const bool positive =
      slot == ZERO_SLOT_SECOND_MOMENT || slot == ZERO_SLOT_PARAM_SCALE || slot == ZERO_SLOT_FIRST_SCALE || slot == ZERO_SLOT_SECOND_SCALE;
  for (float &value : values) value = positive ? std::abs(value) : value;
  std::vector<std::byte> bytes(static_cast<size_t>(length));
  if (dtype == ZERO_DTYPE_U16) bytes.resize(static_cast<size_t>(2 * length));
  for (std::byte &byte : bytes) byte = static_cast<std::byte>(random.below(128) & (dtype == ZERO_DTYPE_U16 ? 127 : 63));
  if (dtype < ZERO_DTYPE_I32) bytes = encoded(values, dtype);
  if (dtype == ZERO_DTYPE_I64) {
    const std::vector<int64_t> counts(static_cast<size_t>(length), random.below(1000));
    const auto *data = reinterpret_cast<const std::byte *>(counts.data());
    bytes.assign(data, data + counts.size() * sizeof(int64_t));
  }
  calls_.must(calls_.meet(name("write", id) + " slot " + std::to_string(slot), zero_optimizer_write, zero_optimizer_write_async, optimizer_,
                          id, static_cast<int32_t>(slot), from, bytes.data(), length, nullptr));
  const bool of_param = slot == ZERO_SLOT_PARAM || slot == ZERO_SLOT_PARAM_SCALE;
  edited_ = edited_ || (of_param && count > 0);
  return of_param || slot == ZERO_SLOT_MASTER || edit.seed % 2 == 0;
}

void Training::init(int64_t id, int64_t initialiser, uint64_t seed) {
  const double a = initialiser == ZERO_INITIALISER_UNIFORM ? -0.5 : 0.25;
  calls_.must(calls_.make(name("init_param", id), [&] {
    return zero_optimizer_init_param(optimizer_, id, static_cast<int32_t>(initialiser), a, 0.75, static_cast<int64_t>(seed >> 1));
  }));
  edited_ = begun_;
}

void Training::sync_buffers(uint64_t seed) {
  for (int64_t id = 0; id < program_.module_buffers; ++id) {
    void *data = nullptr;
    int64_t count = 0;
    calls_.must(zero_optimizer_module_buffer(optimizer_, id, &data, &count));
    const std::vector<float> values = values_at(seed, static_cast<uint64_t>(rank_), 0, count);
    std::memcpy(data, values.data(), values.size() * sizeof(float));
  }
  calls_.must(calls_.meet("sync_module_buffers", zero_optimizer_sync_module_buffers, zero_optimizer_sync_module_buffers_async, optimizer_,
                          nullptr));
}

void Training::set(const Edit &edit) {
  const double value = calls_.vary(0, 2) == 0 ? edit.value : 0.125;
  const int32_t status = calls_.make(name("set", edit.key) + " to " + std::to_string(value), [&] {
    return edit.kind == Edit::Kind::set_f64 ? zero_optimizer_set_f64(optimizer_, edit.id, edit.key, value)
                                            : zero_optimizer_set_i64(optimizer_, edit.key, static_cast<int64_t>(value));
  });
  tell(name("set", edit.key), static_cast<uint64_t>(status));
}

void Training::look(int64_t id) {
  id = calls_.vary(id, program_.size());
  const Tensor &tensor = program_.tensor(id);
  std::vector<std::byte> bytes(encoded(std::vector<float>(static_cast<size_t>(tensor.count)), tensor.dtype).size());
  const bool own = calls_.random().one_in(2);
  void *data = nullptr;
  acquiring_ = true;
  calls_.must(calls_.meet(name("param_acquire", id), zero_optimizer_param_acquire, zero_optimizer_param_acquire_async, optimizer_, id,
                          own ? static_cast<void *>(bytes.data()) : nullptr, own ? tensor.count : 0, nullptr, &data));
  acquiring_ = false;
  calls_.expect((data == nullptr) == (tensor.count == 0), name("an address of", id));
  if (!own && data != nullptr) std::memcpy(bytes.data(), data, bytes.size());
  tell(name("parameter", id), bytes);
  const bool keeps = way_.noise > 0 && !buffers_any() && calls_.random().one_in(3);
  if (keeps) ++acquired_[static_cast<size_t>(program_.holder(id))];
  if (!keeps) calls_.must(calls_.make(name("param_release", id), [&] { return zero_optimizer_param_release(optimizer_, id); }));
}

/// In this way: in pieces of pieces, and tensors in another order; names of one tensor, and what is filled in place, keep theirs.
std::vector<Piece> Training::in_some_order(std::vector<Piece> pieces) {
  if (!calls_.random().one_in(2)) return pieces;
  std::vector<std::pair<uint64_t, Piece>> keyed;
  for (const Piece &piece : pieces) {
    const bool shares = program_.tensor(piece.id).shares;
    const int64_t cut = !shares && piece.count > 1 && calls_.random().one_in(2) ? 1 + calls_.random().below(piece.count - 1) : piece.count;
    const uint64_t key = shares ? static_cast<uint64_t>(program_.holder(piece.id)) * 0x1234567890abcdef : calls_.random().word();
    keyed.push_back({key, {piece.id, piece.begin, cut}});
    if (cut < piece.count) keyed.push_back({calls_.random().word(), {piece.id, piece.begin + cut, piece.count - cut}});
  }
  std::stable_sort(keyed.begin(), keyed.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  pieces.clear();
  for (const auto &[key, piece] : keyed) pieces.push_back(piece);
  return pieces;
}

void Training::take_micro_step(const MicroStep &micro) {
  if (micro.kind >= 0) {
    const auto kind = static_cast<int32_t>(calls_.vary(micro.kind, 3));
    calls_.must(calls_.meet("micro_step " + std::to_string(kind), zero_optimizer_micro_step, zero_optimizer_micro_step_async, optimizer_,
                            kind, nullptr));
  }
  ++micro_steps_;
  started_ = in_step_ = in_step_ || micro.kind >= 0;
  alike_ = micro.alike;
  given_ = false;
  ready_.clear();
  if (!micro.weights.empty()) {
    const double weight = micro.weights[static_cast<size_t>(rank_)];
    calls_.must(calls_.make("set_weight " + std::to_string(weight), [&] { return zero_optimizer_set_weight(optimizer_, weight); }));
  }
  std::vector<bool> in_place;
  for (const Tensor &tensor : program_.tensors) in_place.push_back(calls_.random().one_in(2) && !(tensor.shares && program_.weighted));
  std::vector<int64_t> adds(program_.tensors.size(), -1);
  for (const Piece &piece : in_some_order(micro.pieces[static_cast<size_t>(rank_)])) {
    const bool whole = std::any_of(micro.pieces[static_cast<size_t>(rank_)].begin(), micro.pieces[static_cast<size_t>(rank_)].end(),
                                   [&](const Piece &each) { return each.id == piece.id && each.count == program_.tensor(each.id).count; });
    give(micro, piece, whole && in_place[static_cast<size_t>(piece.id)], adds);
  }
}

/// adds: by tensor, what the first acquire in this micro-step told; -1 before.
void Training::give(const MicroStep &micro, Piece piece, bool acquired, std::vector<int64_t> &adds) {
  const Tensor &tensor = program_.tensor(piece.id);
  const auto stream = static_cast<uint64_t>((micro_steps_ * 16 + rank_) * 64 + piece.id);
  std::vector<float> values = values_at(program_.seed, stream, piece.begin, piece.count);
  const bool poisons = micro.poisoned_rank == rank_ || micro.poisoned_rank == program_.ranks;
  if (poisons && piece.begin == 0 && piece.count > 0) values[0] = micro.poison;
  const std::string range = " " + std::to_string(piece.begin) + " + " + std::to_string(piece.count);
  started_ = started_ || piece.count > 0;
  given_ = given_ || piece.count > 0;
  ready_.push_back(piece);
  if (!acquired || (!program_.weighted && calls_.random().one_in(8))) {
    const std::vector<std::byte> bytes = encoded(values, tensor.grad_dtype);
    calls_.must(calls_.make(name("grad_ready", piece.id) + range, [&] {
      return zero_optimizer_grad_ready(optimizer_, piece.id, bytes.data(), piece.begin, piece.count, nullptr);
    }));
    return;
  }
  void *data = nullptr;
  int64_t accumulate = -1;
  calls_.must(calls_.make(name("grad_acquire", piece.id),
                          [&] { return zero_optimizer_grad_acquire(optimizer_, piece.id, nullptr, &data, &accumulate); }));
  int64_t &first = adds[static_cast<size_t>(piece.id)];
  if (first < 0) first = accumulate;
  if (piece.count > 0) {
    const int64_t element = std::ssize(encoded({0}, tensor.grad_dtype));
    std::byte *to = static_cast<std::byte *>(data) + piece.begin * element;
    const std::vector<float> sums = decode(to, static_cast<DType>(tensor.grad_dtype), first == 1 ? piece.count : 0);
    for (size_t i = 0; i < sums.size(); ++i)
      values[i] = sums[i] + decode(encoded({values[i]}, tensor.grad_dtype).data(), static_cast<DType>(tensor.grad_dtype), 1)[0];
    const std::vector<std::byte> bytes = encoded(values, tensor.grad_dtype);
    std::memcpy(to, bytes.data(), bytes.size());
  }
  calls_.must(calls_.make(name("grad_ready in place", piece.id) + range,
                          [&] { return zero_optimizer_grad_ready(optimizer_, piece.id, nullptr, piece.begin, piece.count, nullptr); }));
}

/// Fills gradients that are then not made ready.
void Training::scribble(const MicroStep &micro) {
  for (int64_t id = 0; id < program_.size(); ++id) {
    const Tensor &tensor = program_.tensor(id);
    const std::vector<Piece> &pieces = micro.pieces[static_cast<size_t>(rank_)];
    const bool given = std::any_of(pieces.begin(), pieces.end(), [id](const Piece &piece) { return piece.id == id; });
    if (given || tensor.frozen || tensor.shares || tensor.count == 0 || !calls_.random().one_in(3)) continue;
    void *data = nullptr;
    int64_t accumulate = -1;
    calls_.must(calls_.make(name("grad_acquire in vain", id),
                            [&] { return zero_optimizer_grad_acquire(optimizer_, id, nullptr, &data, &accumulate); }));
    if (accumulate == 0) std::memset(data, 0x41, encoded(std::vector<float>(static_cast<size_t>(tensor.count)), tensor.grad_dtype).size());
  }
}

void Training::tell_result(const zero_step_result &result) {
  tell("skipped", static_cast<uint64_t>(result.skipped));
  tell("skipped in all", static_cast<uint64_t>(result.skipped_total));
  tell("unfilled", static_cast<uint64_t>(result.unfilled_count));
  tell("norm", std::bit_cast<uint64_t>(result.grad_norm), way_.norm || program_.clips_norm);
  tell("loss scale", std::bit_cast<uint64_t>(result.loss_scale));
}

void Training::finish(Finish finish) {
  const bool custom = program_.algorithm == "custom";
  zero_step_result result{};
  result.struct_size = sizeof result;
  if (finish == Finish::step && !custom && agreed_.one_in(2)) {
    const int32_t status = calls_.meet("step", zero_optimizer_step, zero_optimizer_step_async, optimizer_, nullptr, &result);
    tell("stepped", static_cast<uint64_t>(status));
    if (status != ZERO_E_INVALID_ARGUMENT) calls_.must(status);
    if (status == ZERO_OK) tell_result(result);
  } else {
    const int32_t status = calls_.meet("reduce", zero_optimizer_reduce, zero_optimizer_reduce_async, optimizer_, nullptr, &result);
    tell("stepped", static_cast<uint64_t>(status));
    if (status != ZERO_E_INVALID_ARGUMENT) calls_.must(status);
    if (status == ZERO_OK) {
      tell_result(result);
      reduced_ = true;
      Noise(*this).make(false);
      for (int64_t id = 0; id < program_.size() && finish == Finish::read_gradients; ++id) {
        const Tensor &tensor = program_.tensor(id);
        if (tensor.frozen || program_.tensor(program_.holder(id)).frozen) continue;
        tell(name("gradient", id), read(id, ZERO_SLOT_GRAD, tensor.grad_dtype, tensor.count));
      }
      if (custom && finish != Finish::dropped && result.skipped == 0) update_views();
      if (!custom && finish != Finish::dropped)
        calls_.must(calls_.meet("apply", zero_optimizer_apply, zero_optimizer_apply_async, optimizer_, nullptr));
      calls_.must(calls_.meet("gather", zero_optimizer_gather, zero_optimizer_gather_async, optimizer_, nullptr));
    }
  }
  reduced_ = started_ = in_step_ = given_ = false;
  ready_.clear();
  for (int32_t key = ZERO_KEY_STEP_COUNT; key <= ZERO_KEY_OVERFLOW_COUNT; ++key) {
    int64_t value = 0;
    calls_.must(zero_optimizer_get_i64(optimizer_, key, &value));
    tell(name("scalar", key), static_cast<uint64_t>(value));
  }
}

/// The update rule of algorithm "custom".
void Training::update_views() {
  int64_t count = 0;
  calls_.must(zero_optimizer_view_count(optimizer_, &count));
  for (int64_t index = 0; index < count; ++index) {
    int64_t id = 0;
    int64_t offset = 0;
    int64_t length = 0;
    void *gradient = nullptr;
    void *param = nullptr;
    void *own = nullptr;
    if (zero_optimizer_view(optimizer_, index, ZERO_SLOT_GRAD, &id, &offset, &length, &gradient) != ZERO_OK) continue;  // frozen
    calls_.must(zero_optimizer_view(optimizer_, index, ZERO_SLOT_PARAM, &id, &offset, &length, &param));
    const bool keeps = zero_optimizer_view(optimizer_, index, ZERO_SLOT_CUSTOM, &id, &offset, &length, &own) == ZERO_OK;
    const std::vector<float> gradients = decode(gradient, static_cast<DType>(program_.tensor(id).grad_dtype), length);
    for (size_t i = 0; i < gradients.size(); ++i) {
      static_cast<float *>(param)[i] -= 0.01F * gradients[i];
      if (keeps) static_cast<float *>(own)[i] += gradients[i];
    }
  }
}

std::vector<std::byte> Training::read(int64_t id, int32_t slot, int64_t dtype, int64_t count) {
  int64_t element = dtype == ZERO_DTYPE_U16 ? 2 : 1;
  if (dtype < ZERO_DTYPE_U8) zero_dtype_nbytes(static_cast<int32_t>(dtype), &element);
  std::vector<std::byte> bytes(static_cast<size_t>(count * element));
  calls_.must(calls_.meet(name("read", id) + " slot " + std::to_string(slot), zero_optimizer_read, zero_optimizer_read_async, optimizer_,
                          id, slot, 0, bytes.data(), count, nullptr));
  return bytes;
}

void Training::read_all() {
  for (int64_t id = 0; id < program_.size(); ++id) {
    int64_t slots = 0;
    calls_.must(zero_optimizer_slot_count(optimizer_, id, &slots));
    for (int64_t index = 0; index < slots; ++index) {
      int64_t slot = 0;
      int64_t dtype = 0;
      int64_t count = 0;
      calls_.must(zero_optimizer_slot(optimizer_, id, index, &slot, &dtype, &count));
      tell("slot " + std::to_string(slot) + name(" of", id), read(id, static_cast<int32_t>(slot), dtype, count));
    }
  }
  for (int64_t id = 0; id < program_.module_buffers; ++id) {
    void *data = nullptr;
    int64_t count = 0;
    calls_.must(zero_optimizer_module_buffer(optimizer_, id, &data, &count));
    const auto *bytes = static_cast<const std::byte *>(data);
    tell(name("module buffer", id), std::vector<std::byte>(bytes, bytes + count * 4));
  }
}

}  // namespace zero::test::fuzz
