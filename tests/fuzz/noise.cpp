/// @file Calls that must not matter.
#include "tests/fuzz/training.h"

#include <algorithm>
#include <cmath>

namespace zero::test::fuzz {

void Noise::make(bool between_steps) {
  if (t_.way_.noise == 0) return;
  // Who waits in grad_ready for a buffer that reductions hold is not to wait for a rank that waits here.
  const bool meets = between_steps || (t_.alike_ && (t_.way_.stage < 2 || t_.way_.overlaps));
  while (t_.agreed_.one_in(t_.way_.noise + 1) || (t_.way_.noise == 1 && t_.agreed_.one_in(3))) {
    if (t_.reduced_) {
      refuse_reduced();
    } else if (t_.agreed_.one_in(2)) {
      refuse_together(meets);
    } else if (t_.begun_ && meets) {
      pass_together(between_steps);
    }
    if (meets) group_work();
  }
  for (int64_t i = t_.calls_.random().below(4); i > 0; --i) {
    refuse_alone();
    look_alone();
  }
}

void Noise::meanwhile() {
  Random &random = t_.calls_.random();
  if (t_.way_.noise == 0 || random.one_in(2)) return;
  zero_optimizer *optimizer = t_.optimizer_;
  const int64_t id = random.below(t_.program_.size());
  if (!t_.acquiring_ && t_.acquired_[static_cast<size_t>(t_.program_.holder(id))] == 0) {
    const int32_t status =
        t_.calls_.make(t_.name("param_release meanwhile", id), [&] { return zero_optimizer_param_release(optimizer, id); });
    t_.calls_.refused(status, ZERO_E_STATE);
  }
  look_alone();
}

void Noise::look_alone() {
  Random &random = t_.calls_.random();
  const zero_optimizer *optimizer = t_.optimizer_;
  std::array<char, 300> text;
  int64_t needed = 0;
  zero_step_stats times{};
  zero_memory_stats memory{};
  zero_traffic_stats traffic{};
  times.struct_size = sizeof times;
  memory.struct_size = sizeof memory;
  traffic.struct_size = sizeof traffic;
  Calls &calls = t_.calls_;
  const int64_t size = random.below(static_cast<int64_t>(text.size()));
  switch (random.below(6)) {
    case 0:
      return calls.must(zero_describe_optimizer(optimizer, size > 0 ? text.data() : nullptr, size, &needed));
    case 1:
      return calls.must(zero_stats_optimizer_memory(optimizer, static_cast<int32_t>(random.below(11)), &memory));
    case 2:
      return calls.must(zero_stats_optimizer_traffic(optimizer, static_cast<int32_t>(1 + random.below(11)), &traffic));
    case 3:
      return calls.must(zero_stats_optimizer_step(optimizer, &times));
    case 4: {
      const int32_t status = zero_stats_optimizer_trace(optimizer, size > 0 ? text.data() : nullptr, size, &needed);
      return calls.expect(status == ZERO_OK || status == ZERO_E_STATE, "trace");
    }
    default:
      return calls.must(zero_describe_group(t_.group_, text.data(), size, &needed));
  }
}

/// Calls that are no collectives, and collectives with arguments that no rank may give.
void Noise::refuse_alone() {
  Random &random = t_.calls_.random();
  zero_optimizer *optimizer = t_.optimizer_;
  const int64_t id = random.below(t_.program_.size());
  const Tensor &tensor = t_.program_.tensor(id);
  Calls &calls = t_.calls_;
  void *data = nullptr;
  int64_t number = 0;
  const float value = 1;
  const auto refuse = [&](int32_t wanted, const char *call, auto &&make) { calls.refused(calls.make(t_.name(call, id), make), wanted); };
  switch (random.below(9)) {
    case 0:
      if (t_.acquired_[static_cast<size_t>(t_.program_.holder(id))] > 0) return;
      return refuse(ZERO_E_STATE, "param_release too often", [&] { return zero_optimizer_param_release(optimizer, id); });
    case 1:
      return refuse(!t_.begun_ || t_.reduced_ ? ZERO_E_STATE : ZERO_E_INVALID_ARGUMENT, "grad_ready beyond",
                    [&] { return zero_optimizer_grad_ready(optimizer, id, &value, tensor.count, 1, nullptr); });
    case 2:
      if (tensor.count == 0) return;
      return refuse(ZERO_E_STATE, "grad_ready not acquired",
                    [&] { return zero_optimizer_grad_ready(optimizer, id, nullptr, 0, 1, nullptr); });
    case 3:
      if (t_.ready_.empty()) return;
      for (const Piece &piece : t_.ready_) {
        if (piece.count == 0) continue;
        const int32_t status = calls.make(t_.name("grad_ready again", piece.id), [&] {
          return zero_optimizer_grad_ready(optimizer, piece.id, &value, piece.begin + random.below(piece.count), 1, nullptr);
        });
        return calls.refused(status, ZERO_E_STATE);
      }
      return;
    case 4:
      return refuse(ZERO_E_UNSUPPORTED, "grad_acquire with a stream",
                    [&] { return zero_optimizer_grad_acquire(optimizer, id, &data, &data, &number); });
    case 5:
      return refuse(t_.reduced_ ? ZERO_E_STATE : ZERO_E_UNSUPPORTED, "set_f64 of no hyper-parameter",
                    [&] { return zero_optimizer_set_f64(optimizer, 0, ZERO_KEY_STAGE, 1); });
    case 6:
      return refuse(ZERO_E_STATE, "add_param too late",
                    [&] { return zero_optimizer_add_param(optimizer, nullptr, "late", ZERO_DTYPE_F32, nullptr, 0, &number); });
    case 7:
      if (t_.program_.weighted && !t_.given_) return;
      return refuse(ZERO_E_STATE, "set_weight too late", [&] { return zero_optimizer_set_weight(optimizer, 2); });
    default:
      if (!t_.started_ && !t_.reduced_) return;
      return refuse(tensor.tied_to < 0 || t_.reduced_ ? ZERO_E_STATE : ZERO_E_INVALID_ARGUMENT, "init_param too late",
                    [&] { return zero_optimizer_init_param(optimizer, id, ZERO_INITIALISER_CONSTANT, 1, 0, 0); });
  }
}

/// While a parameter is acquired.
void Noise::refuse_acquired(int64_t id) {
  if (!t_.buffers(id)) return;
  int64_t &held = t_.acquired_[static_cast<size_t>(t_.program_.holder(id))];
  ++held;
  zero_optimizer *optimizer = t_.optimizer_;
  Calls &calls = t_.calls_;
  void *data = nullptr;
  calls.must(calls.meet(t_.name("param_acquire", id), zero_optimizer_param_acquire, zero_optimizer_param_acquire_async, optimizer, id,
                        nullptr, 0, nullptr, &data));
  calls.refused(calls.meet("step while acquired", zero_optimizer_step, zero_optimizer_step_async, optimizer, nullptr, nullptr),
                ZERO_E_STATE);
  calls.refused(calls.meet("begin while acquired", zero_optimizer_begin, zero_optimizer_begin_async, optimizer, 2), ZERO_E_STATE);
  calls.must(calls.make(t_.name("param_release", id), [&] { return zero_optimizer_param_release(optimizer, id); }));
  --held;
}

/// Collectives that all ranks make.
void Noise::refuse_together(bool meets) {
  Random &random = t_.agreed_;
  zero_optimizer *optimizer = t_.optimizer_;
  const int64_t id = random.below(t_.program_.size());
  Calls &calls = t_.calls_;
  float value = 1;
  const auto refuse = [&](int32_t wanted, const char *call, auto function, auto twin, auto... arguments) {
    calls.refused(calls.meet(t_.name(call, id), function, twin, arguments...), wanted);
  };
  switch (random.below(11)) {
    case 0:
      return refuse(ZERO_E_STATE, "apply out of order", zero_optimizer_apply, zero_optimizer_apply_async, optimizer, nullptr);
    case 1:
      return refuse(ZERO_E_STATE, "gather out of order", zero_optimizer_gather, zero_optimizer_gather_async, optimizer, nullptr);
    case 2:
      return refuse(ZERO_E_STATE, "seal again", zero_optimizer_seal, zero_optimizer_seal_async, optimizer);
    case 3:
      return refuse(ZERO_E_INVALID_ARGUMENT, "begin with no source", zero_optimizer_begin, zero_optimizer_begin_async, optimizer, 3);
    case 4:
      return refuse(ZERO_E_UNSUPPORTED, "read of no slot", zero_optimizer_read, zero_optimizer_read_async, optimizer, id, 99, 0, &value, 0,
                    nullptr);
    case 5:
      return refuse(ZERO_E_UNSUPPORTED, "write of gradients", zero_optimizer_write, zero_optimizer_write_async, optimizer, id, 77, 0,
                    &value, 0, nullptr);
    case 6:
      return refuse(ZERO_E_INVALID_ARGUMENT, "read beyond", zero_optimizer_read, zero_optimizer_read_async, optimizer, id, ZERO_SLOT_PARAM,
                    t_.program_.tensor(id).count, &value, 1, nullptr);
    case 7:
      return refuse(ZERO_E_INVALID_ARGUMENT, "write beyond", zero_optimizer_write, zero_optimizer_write_async, optimizer, id,
                    ZERO_SLOT_PARAM, t_.program_.tensor(id).count, &value, 1, nullptr);
    case 8:
      return refuse(ZERO_E_UNSUPPORTED, "step with a stream", zero_optimizer_step, zero_optimizer_step_async, optimizer, &value, nullptr);
    case 9:
      // Every rank has given something, or a micro-step has begun.
      if (t_.in_step_ && random.one_in(2))
        return refuse(ZERO_E_STATE, "begin in a step", zero_optimizer_begin, zero_optimizer_begin_async, optimizer, 2);
      if (t_.begun_) {
        if (meets) refuse_acquired(id);
        return;
      }
      return refuse(ZERO_E_STATE, "step before begin", zero_optimizer_step, zero_optimizer_step_async, optimizer, nullptr, nullptr);
    default:
      if (t_.program_.algorithm != "custom" && t_.begun_) return;
      return refuse(ZERO_E_STATE, "step of no algorithm", zero_optimizer_step, zero_optimizer_step_async, optimizer, nullptr, nullptr);
  }
}

void Noise::refuse_edited() {
  zero_verify_result result{};
  result.struct_size = sizeof result;
  Calls &calls = t_.calls_;
  if (t_.agreed_.one_in(2)) {
    calls.refused(calls.meet("step while edited", zero_optimizer_step, zero_optimizer_step_async, t_.optimizer_, nullptr, nullptr),
                  ZERO_E_STATE);
  } else {
    calls.refused(calls.meet("verify while edited", zero_optimizer_verify, zero_optimizer_verify_async, t_.optimizer_, nullptr, &result),
                  ZERO_E_STATE);
  }
}

/// Between reduce and gather.
void Noise::refuse_reduced() {
  zero_optimizer *optimizer = t_.optimizer_;
  Calls &calls = t_.calls_;
  float value = 1;
  zero_verify_result result{};
  result.struct_size = sizeof result;
  const auto refuse = [&](const char *call, auto function, auto twin, auto... arguments) {
    calls.refused(calls.meet(call, function, twin, arguments...), ZERO_E_STATE);
  };
  switch (t_.agreed_.below(6)) {
    case 0:
      return refuse("step while reduced", zero_optimizer_step, zero_optimizer_step_async, optimizer, nullptr, nullptr);
    case 1:
      return refuse("reduce while reduced", zero_optimizer_reduce, zero_optimizer_reduce_async, optimizer, nullptr, nullptr);
    case 2:
      return refuse("micro_step while reduced", zero_optimizer_micro_step, zero_optimizer_micro_step_async, optimizer, 1, nullptr);
    case 3:
      return refuse("begin while reduced", zero_optimizer_begin, zero_optimizer_begin_async, optimizer, 2);
    case 4:
      return refuse("write while reduced", zero_optimizer_write, zero_optimizer_write_async, optimizer, 0, ZERO_SLOT_PARAM, 0, &value, 0,
                    nullptr);
    default:
      return refuse("verify while reduced", zero_optimizer_verify, zero_optimizer_verify_async, optimizer, nullptr, &result);
  }
}

/// What all ranks do and what comes to the same.
void Noise::pass_together(bool between_steps) {
  zero_optimizer *optimizer = t_.optimizer_;
  Calls &calls = t_.calls_;
  const int64_t id = t_.agreed_.below(t_.program_.size());
  const int64_t choice = t_.agreed_.below(between_steps ? 4 : 2);
  if (choice <= 1) {
    const size_t told = t_.facts_.size();
    if (choice == 0) t_.look(id);
    int64_t slot = 0;
    int64_t dtype = 0;
    int64_t count = 0;
    calls.must(zero_optimizer_slot(optimizer, id, 0, &slot, &dtype, &count));
    if (choice == 1) t_.read(id, static_cast<int32_t>(slot), dtype, count);
    return t_.facts_.resize(told);
  }
  if (choice == 2) return t_.begin(t_.buffers_any() ? ZERO_SOURCE_SHARDS : static_cast<int32_t>(t_.agreed_.below(3)));
  zero_verify_result result{};
  result.struct_size = sizeof result;
  calls.must(calls.meet("verify", zero_optimizer_verify, zero_optimizer_verify_async, optimizer, nullptr, &result));
  calls.expect(result.found == ZERO_FINDING_NONE, "verify found " + std::to_string(result.found) + " in slot " +
                                                      std::to_string(result.slot) + " of " + std::to_string(result.param));
}

/// Collectives of the group that the optimizer was made from.
void Noise::group_work() {
  if (!t_.agreed_.one_in(3)) return;
  int64_t mine = t_.rank_ + 1;
  int64_t sum = 0;
  t_.calls_.must(t_.calls_.meet("all_reduce", zero_group_all_reduce, zero_group_all_reduce_async, t_.group_, &mine, 1, &sum, 1,
                                ZERO_DTYPE_I64, ZERO_REDUCE_SUM, nullptr));
  t_.calls_.expect(sum == t_.program_.ranks * (t_.program_.ranks + 1) / 2, "the sum is " + std::to_string(sum));
}

}  // namespace zero::test::fuzz
