/// @file Running small trainings.
#include "tests/engine/training.h"

#include "kernels/convert.h"
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

namespace zero::test {
namespace {

uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

void expect_ok(const Status &status, const char *call) {
  ASSERT_TRUE(status.ok()) << call << ": " << status_name(status.code()) << ": " << status.text();
}

std::vector<std::byte> encode(const std::vector<float> &values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(dtype_nbytes(dtype)));
  kernels::narrow(*kernels::supported().front(), bytes.data(), dtype, values.data(), static_cast<int64_t>(values.size()));
  return bytes;
}

std::vector<float> decode(const void *values, DType dtype, int64_t count) {
  std::vector<float> result(static_cast<size_t>(count));
  kernels::widen(*kernels::supported().front(), result.data(), values, dtype, count);
  return result;
}

float value_at(uint64_t seed, uint64_t stream, int64_t index) {
  const uint64_t bits = mix(mix(seed ^ (stream << 32)) + static_cast<uint64_t>(index));
  const auto fraction = static_cast<float>(static_cast<int64_t>(bits & 0xffffff) - 0x800000) / static_cast<float>(0x800000);
  return std::ldexp(fraction, -static_cast<int>((bits >> 24) % 12));
}

float first_value_at(const Model &model, int64_t id, int64_t index) {
  return value_at(model.seed, 1'000'000 + static_cast<uint64_t>(id), index);
}

float gradient_at(const Model &model, int64_t step, int64_t rank, int64_t id, int64_t index) {
  return value_at(model.seed, static_cast<uint64_t>((step * 64 + rank) * 64 + id), index);
}

double weight_of(const Model &model, int64_t step, int64_t rank) {
  if (model.divisor != ZERO_DIVISOR_WEIGHTS) return 1;
  // Some ranks have nothing in some steps; rank 0 always has something.
  const auto samples = static_cast<double>(mix(model.seed + static_cast<uint64_t>(step * 64 + rank)) % 4);
  return model.weight_unit * (rank == 0 ? samples + 1 : samples);
}

namespace {

void set_recipe(Config &config, const Recipe &recipe) {
  const auto set = [&config](int32_t key, int64_t value) { EXPECT_TRUE(config.set_i64(key, value).ok()) << key; };
  set(ZERO_KEY_GRAD_DTYPE, recipe.grad);
  set(ZERO_KEY_MASTER, recipe.master);
  set(ZERO_KEY_PARAM_DTYPE, recipe.coded ? ZERO_DTYPE_F8_E4M3 : 0);
  set(ZERO_KEY_FIRST_MOMENT_DTYPE, static_cast<int64_t>(recipe.first_moment));
  set(ZERO_KEY_SECOND_MOMENT_DTYPE, static_cast<int64_t>(recipe.second_moment));
  set(ZERO_KEY_ROUNDING, recipe.stochastic ? 1 : 0);
  set(ZERO_KEY_SEED, 12345);
  set(ZERO_KEY_ACCUMULATE_DTYPE, recipe.accumulates_in_f32 ? ZERO_DTYPE_F32 : 0);
  set(ZERO_KEY_AVERAGE, recipe.average ? 1 : 0);
  set(ZERO_KEY_UNFILLED, recipe.untouched ? 1 : 0);
  set(ZERO_KEY_GATHER_BELOW, recipe.gather_below);
  EXPECT_TRUE(config.set_f64(ZERO_KEY_CLIP_NORM, recipe.clip_norm).ok());
  EXPECT_TRUE(config.set_f64(ZERO_KEY_CLIP_VALUE, recipe.clip_value).ok());
  EXPECT_TRUE(config.set_f64(ZERO_KEY_LOSS_SCALE, recipe.loss_scale).ok());
  if (recipe.overflow_step >= 0) {
    set(ZERO_KEY_LOSS_SCALE_DYNAMIC, 1);
    set(ZERO_KEY_LOSS_SCALE_WINDOW, 2);
  }
  if (recipe.grad_code != ZERO_CODE_NONE) set(ZERO_KEY_GRAD_CODE, recipe.grad_code);
  if (recipe.sync_code != ZERO_CODE_NONE) set(ZERO_KEY_SYNC_CODE, recipe.sync_code);
  if (recipe.gather_code != ZERO_CODE_NONE) set(ZERO_KEY_GATHER_CODE, recipe.gather_code);
  set(ZERO_KEY_RESIDUAL, recipe.residual ? ZERO_RESIDUAL_F32 : ZERO_RESIDUAL_NONE);
  set(ZERO_KEY_FLUSH_PERIOD, recipe.flush_period);
  for (const auto &[key, value] : recipe.keys) set(key, value);
  if (recipe.sync_period == 1) return;
  set(ZERO_KEY_SYNC_PERIOD, recipe.sync_period);
  set(ZERO_KEY_SYNC_AFTER, recipe.sync_after);
  set(ZERO_KEY_SYNC_FRAGMENTS, recipe.sync_fragments);
  set(ZERO_KEY_SYNC_DELAY, recipe.sync_delay);
  set(ZERO_KEY_NEIGHBOURS, recipe.ring ? ZERO_NEIGHBOURS_RING : ZERO_NEIGHBOURS_NONE);
  EXPECT_TRUE(config.set_f64(ZERO_KEY_OUTER_LR, recipe.outer_lr).ok() && config.set_f64(ZERO_KEY_SYNC_MIX, recipe.sync_mix).ok());
  EXPECT_TRUE(config.set_f64(ZERO_KEY_OUTER_MOMENTUM, recipe.outer_momentum).ok());
}

/// The options of one tensor.
Config param_config(const Model &model, int64_t id) {
  Config config;
  if (model.recipe.tied && id + 1 == model.tensors()) {
    EXPECT_TRUE(config.set_i64(ZERO_KEY_TIED_TO, 0).ok());
    return config;
  }
  EXPECT_TRUE(config.set_i64(ZERO_KEY_SET, id % model.recipe.sets).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_FROZEN, model.frozen(id) ? 1 : 0).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_ROWS, model.by_rows && model.is_table(id) ? 1 : 0).ok());
  return config;
}

void add_tensors(Optimizer &optimizer, const Model &model) {
  for (int64_t set = 1; set < model.recipe.sets; ++set) {
    Config config;
    int64_t out = 0;
    EXPECT_TRUE(config.set_f64(ZERO_KEY_LR, 0.01 * static_cast<double>(set)).ok());
    expect_ok(optimizer.add_set(config, &out), "add_set");
    EXPECT_EQ(out, set);
  }
  for (int64_t id = 0; id < model.tensors(); ++id) {
    int64_t out = 0;
    const Config config = param_config(model, id);
    const std::vector<int64_t> shape = model.shape(id);
    expect_ok(optimizer.add_param(&config, ("p" + std::to_string(id)).c_str(), static_cast<int32_t>(model.dtype(id)), shape.data(),
                                  static_cast<int64_t>(shape.size()), &out),
              "add_param");
  }
}

}  // namespace

int64_t replica_ranks_of(const Model &model, const Manner &manner) {
  if (model.recipe.replica_ranks > 0) return model.recipe.replica_ranks;
  return manner.replica_ranks > 0 ? manner.replica_ranks : model.ranks;
}

Config make_config(const Model &model, const Manner &manner) {
  Config config;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_STAGE, manner.stage).ok());
  EXPECT_TRUE(config.set_str(ZERO_KEY_ALGORITHM, model.algorithm.c_str()).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_BUCKET_BYTES, manner.bucket_nbytes).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_POOL_LIMIT, manner.pool_nbytes).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_DIVISOR, model.divisor).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_GRAD_NORM, manner.norm ? 1 : 0).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_OVERLAP, manner.overlap ? 1 : 0).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_THREADS, manner.threads).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_VERIFY_EVERY, manner.verify_every).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_TRACE_EVENTS, manner.trace_events).ok());
  EXPECT_TRUE(config.set_i64(ZERO_KEY_ONE_COPY, manner.keeps_one_copy() ? 1 : 0).ok());
  EXPECT_TRUE(config.set_str(ZERO_KEY_SHARD_WEIGHTS, manner.shard_weights.c_str()).ok());
  if (manner.remote != nullptr) manner.remote->set(config);
  EXPECT_TRUE(config.set_i64(ZERO_KEY_TIER, manner.kept_there ? ZERO_TIER_DEVICE : ZERO_TIER_HOST).ok());
  set_recipe(config, model.recipe);
  const int64_t replica_ranks = replica_ranks_of(model, manner);
  EXPECT_TRUE(config.set_i64(ZERO_KEY_REPLICA_RANKS, replica_ranks == model.ranks ? 0 : replica_ranks).ok());
  const bool spreads = manner.stage == 3 && !manner.kept_there && manner.param_ranks != 0 && replica_ranks % manner.param_ranks == 0;
  EXPECT_TRUE(config.set_i64(ZERO_KEY_PARAM_RANKS, spreads ? manner.param_ranks : 0).ok());
  if (model.algorithm == "custom") return config;
  EXPECT_TRUE(config.set_f64(ZERO_KEY_LR, 0.01).ok());
  EXPECT_TRUE(config.set_f64(ZERO_KEY_WEIGHT_DECAY, model.weight_decay).ok());
  if (model.algorithm == "sgd") {
    EXPECT_TRUE(config.set_f64(ZERO_KEY_MOMENTUM, model.momentum).ok());
    EXPECT_TRUE(config.set_f64(ZERO_KEY_NESTEROV, model.nesterov).ok());
  }
  for (const auto &[key, value] : model.hyper) EXPECT_TRUE(config.set_f64(key, value).ok()) << key;
  return config;
}

std::shared_ptr<Optimizer> make_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  std::shared_ptr<Optimizer> optimizer;
  Status status = Optimizer::create(group, make_config(model, manner), &optimizer, manner.domain);
  EXPECT_TRUE(status.ok()) << status.text();
  if (optimizer == nullptr) return optimizer;
  add_tensors(*optimizer, model);
  if (manner.order_seed != 0) {
    std::vector<int64_t> order(model.counts.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(manner.order_seed));
    status = optimizer->set_order(order.data(), static_cast<int64_t>(order.size()));
    EXPECT_TRUE(status.ok()) << status.text();
  }
  status = optimizer->seal_queue()->run(optimizer->seal());
  EXPECT_TRUE(status.ok()) << status.text();
  return optimizer;
}

namespace {

/// Tied tensors begin with the same values.
std::vector<float> first_values(const Model &model, int64_t id, Range range) {
  std::vector<float> values;
  for (int64_t k = range.begin; k < range.end; ++k) values.push_back(first_value_at(model, model.shared(id) ? 0 : id, k));
  return values;
}

/// Of a slot, by this rank an even part, whoever owns it.
template <class Entry>
void write_part(Optimizer &optimizer, int64_t id, int32_t slot, const std::vector<Entry> &entries) {
  const Range part = even_share(std::ssize(entries), optimizer.group()->rank(), optimizer.group()->size());
  expect_ok(optimizer.queue()->run(optimizer.write(id, slot, part.begin, entries.data() + part.begin, part.count())), "write");
}

/// Masters decide; parameters that have none are written as they are stored.
void write_coded(Optimizer &optimizer, const Model &model, int64_t id) {
  const int64_t count = model.counts[static_cast<size_t>(id)];
  const std::vector<std::byte> given = encode(first_values(model, id, {0, count}), model.dtype(id));
  const std::vector<float> values = decode(given.data(), model.dtype(id), count);
  if (!model.frozen(id)) return write_part(optimizer, id, ZERO_SLOT_MASTER, values);
  std::vector<uint8_t> codes(values.size());
  std::vector<float> scales((values.size() + kLine - 1) / kLine);
  kernels::supported().front()->encode(codes.data(), scales.data(), DType::f8e4m3, values.data(), count, nullptr);
  write_part(optimizer, id, ZERO_SLOT_PARAM, codes);
  write_part(optimizer, id, ZERO_SLOT_PARAM_SCALE, scales);
}

}  // namespace

namespace {

RemoteMemory::Acquire acquirer(Optimizer &optimizer, int64_t id) {
  return [&optimizer, id](void *stream) -> const void * {
    void *data = nullptr;
    expect_ok(optimizer.queue()->run(optimizer.param_acquire(id, nullptr, 0, &data, stream)), "param_acquire");
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0U);
    return data;
  };
}

}  // namespace

void begin_training(Optimizer &optimizer, const Model &model, const Manner &manner) {
  const int64_t rank = optimizer.group()->rank();
  const int64_t ranks = replica_ranks_of(model, manner);
  for (size_t i = 0; i < model.counts.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    if (manner.source == ZERO_SOURCE_SHARDS && model.coded(id)) {
      write_coded(optimizer, model, id);
      continue;
    }
    if (manner.source == ZERO_SOURCE_SHARDS) {
      // Each rank writes an even part, whoever owns it.
      const Range part = even_share(model.counts[i], rank, model.ranks);
      const std::vector<std::byte> values = encode(first_values(model, id, part), model.dtype(id));
      expect_ok(optimizer.queue()->run(optimizer.write(id, ZERO_SLOT_PARAM, part.begin, values.data(), part.count())), "write");
      continue;
    }
    const bool one_writes = manner.source == ZERO_SOURCE_ROOT || (manner.keeps_one_copy() && !model.coded(id));
    if (one_writes && (manner.source == ZERO_SOURCE_ROOT ? rank : rank % ranks) != 0) continue;
    const std::vector<std::byte> values = encode(first_values(model, id, {0, model.counts[i]}), model.dtype(id));
    const RemoteMemory::Acquire acquire = acquirer(optimizer, id);
    if (manner.kept_there) {
      manner.remote->write(acquire, values, [&](void * /*stream*/) { expect_ok(optimizer.param_release(id), "param_release"); });
      continue;
    }
    void *data = const_cast<void *>(acquire(nullptr));
    if (!values.empty()) std::memcpy(data, values.data(), values.size());
    expect_ok(optimizer.param_release(id), "param_release");
  }
  expect_ok(optimizer.queue()->run(optimizer.begin(manner.source)), "begin");
}

std::shared_ptr<Optimizer> begun_optimizer(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  std::shared_ptr<Optimizer> optimizer = make_optimizer(group, model, manner);
  if (optimizer != nullptr) begin_training(*optimizer, model, manner);
  return optimizer;
}

zero_step_result train_step(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t step) {
  give_gradients(optimizer, model, manner, step);
  zero_step_result result{};
  result.struct_size = sizeof result;
  if (manner.splits && step % 2 == 1) {
    expect_ok(run_task(optimizer, optimizer.reduce(nullptr)), "reduce");
    expect_ok(run_task(optimizer, optimizer.apply()), "apply");
    expect_ok(run_task(optimizer, optimizer.gather()), "gather");
    expect_ok(optimizer.result(&result), "result");
  } else {
    expect_ok(run_task(optimizer, optimizer.step(&result)), "step");
  }
  return result;
}

void train_steps(Optimizer &optimizer, const Model &model, const Manner &manner, int64_t first, int64_t last) {
  for (int64_t step = first; step < last; ++step) (void)train_step(optimizer, model, manner, step);
}

void expect_same_on_all_ranks(Optimizer &optimizer) {
  zero_verify_result result{};
  expect_ok(run_task(optimizer, optimizer.verify(&result)), "verify");
  EXPECT_EQ(result.found, ZERO_FINDING_NONE) << "parameter " << result.param << " slot " << result.slot << " offset " << result.offset;
}

std::vector<std::byte> read_slots(Optimizer &optimizer, const Model &model) {
  std::vector<std::byte> all;
  for (int64_t id = 0; id < model.tensors(); ++id) {
    int64_t count = 0;
    expect_ok(optimizer.slot_count(id, &count), "slot_count");
    for (int64_t index = 0; index < count; ++index) {
      SlotInfo slot{};
      expect_ok(optimizer.slot(id, index, &slot), "slot");
      const size_t before = all.size();
      all.resize(before + static_cast<size_t>(slot.count * dtype_nbytes(slot.dtype)));
      expect_ok(optimizer.queue()->run(optimizer.read(id, slot.number, 0, all.data() + before, slot.count)), "read");
    }
  }
  return all;
}

int64_t owned_count(Optimizer &optimizer) {
  int64_t own = 0;
  int64_t views = 0;
  expect_ok(optimizer.view_count(&views), "view_count");
  for (int64_t i = 0; i < views; ++i) {
    View view{};
    expect_ok(optimizer.view(i, ZERO_SLOT_PARAM, &view), "view");
    own += view.count;
  }
  return own;
}

std::vector<float> read_slot(Optimizer &optimizer, const Model &model, int32_t slot) {
  std::vector<float> all;
  for (size_t i = 0; i < model.counts.size(); ++i) {
    if (model.dtype(static_cast<int64_t>(i)) != DType::f32 && slot == ZERO_SLOT_PARAM) continue;
    std::vector<float> values(static_cast<size_t>(model.counts[i]));
    expect_ok(optimizer.queue()->run(optimizer.read(static_cast<int64_t>(i), slot, 0, values.data(), model.counts[i])), "read");
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

namespace {

/// What read() tells of a parameter, as the caller sees it.
std::vector<std::byte> read_param(Optimizer &optimizer, const Model &model, int64_t id) {
  const int64_t count = model.counts[static_cast<size_t>(id)];
  std::vector<std::byte> stored(static_cast<size_t>(count * (model.coded(id) ? 1 : dtype_nbytes(model.dtype(id)))));
  expect_ok(optimizer.queue()->run(optimizer.read(id, ZERO_SLOT_PARAM, 0, stored.data(), count)), "read");
  if (!model.coded(id)) return stored;
  std::vector<float> scales(static_cast<size_t>((count + kLine - 1) / kLine));
  expect_ok(optimizer.queue()->run(optimizer.read(id, ZERO_SLOT_PARAM_SCALE, 0, scales.data(), std::ssize(scales))), "read");
  std::vector<float> values(stored.size());
  const auto *codes = reinterpret_cast<const uint8_t *>(stored.data());
  kernels::supported().front()->decode(values.data(), codes, scales.data(), DType::f8e4m3, count);
  return encode(values, model.dtype(id));
}

/// Reads parameters the way a forward pass does; they must be what read() tells.
void expect_acquired(Optimizer &optimizer, const Model &model, const Manner &manner) {
  for (int64_t id = 0; id < model.tensors(); ++id) {
    const int64_t count = model.counts[static_cast<size_t>(id)];
    const std::vector<std::byte> values = read_param(optimizer, model, id);
    void *data = nullptr;
    if (manner.remote != nullptr && id % 2 == 0) {
      const std::vector<std::byte> remote = manner.remote->collect(std::ssize(values), [&](void *dst, void *stream) {
        expect_ok(optimizer.queue()->run(optimizer.param_acquire(id, dst, count, &data, stream)), "param_acquire");
        EXPECT_EQ(data, count == 0 ? nullptr : dst);
        expect_ok(optimizer.param_release(id), "param_release");
      });
      EXPECT_EQ(remote, values) << "tensor " << id;
    }
    const RemoteMemory::Acquire acquire = acquirer(optimizer, id);
    if (manner.kept_there) {
      const auto release = [&] { expect_ok(optimizer.param_release(id), "param_release"); };
      EXPECT_EQ(manner.remote->read(acquire, std::ssize(values), release), values) << "tensor " << id;
    } else {
      data = const_cast<void *>(acquire(nullptr));
      const bool same = count == 0 || std::memcmp(data, values.data(), values.size()) == 0;
      EXPECT_TRUE(same) << "tensor " << id;
      expect_ok(optimizer.param_release(id), "param_release");
    }
  }
}

}  // namespace

Outcome train(const std::shared_ptr<Group> &group, const Model &model, const Manner &manner) {
  Outcome outcome;
  const std::shared_ptr<Optimizer> optimizer = begun_optimizer(group, model, manner);
  if (optimizer == nullptr) return outcome;
  for (int64_t step = 0; step < model.steps; ++step) {
    const zero_step_result result = train_step(*optimizer, model, manner, step);
    outcome.norms.push_back(result.grad_norm);
    outcome.scales.push_back(result.loss_scale);
    outcome.unfilled += result.unfilled_count;
    outcome.skipped = result.skipped_total;
  }
  expect_same_on_all_ranks(*optimizer);
  outcome.slots = read_slots(*optimizer, model);
  expect_acquired(*optimizer, model, manner);
  if (model.recipe.dtype != DType::f32 || model.recipe.coded || model.recipe.frozen_every > 0 || model.recipe.second_moment != DType::f32)
    return outcome;
  outcome.params = read_slot(*optimizer, model, ZERO_SLOT_PARAM);
  const bool adam = model.algorithm == "adam" || model.algorithm == "adamw";
  if (adam || (model.algorithm == "sgd" && model.momentum > 0)) outcome.states = read_slot(*optimizer, model, ZERO_SLOT_FIRST_MOMENT);
  if (adam) {
    const std::vector<float> second = read_slot(*optimizer, model, ZERO_SLOT_SECOND_MOMENT);
    outcome.states.insert(outcome.states.end(), second.begin(), second.end());
  }
  return outcome;
}

int64_t differing(const std::vector<float> &a, const std::vector<float> &b) {
  if (a.size() != b.size()) return static_cast<int64_t>(std::max(a.size(), b.size()));
  int64_t count = 0;
  for (size_t i = 0; i < a.size(); ++i) count += std::bit_cast<uint32_t>(a[i]) != std::bit_cast<uint32_t>(b[i]) ? 1 : 0;
  return count;
}

int64_t differing(const Outcome &a, const Outcome &b) {
  int64_t count = differing(a.params, b.params) + differing(a.states, b.states);
  if (a.slots != b.slots || a.scales != b.scales || a.skipped != b.skipped) ++count;
  if (a.norms.size() != b.norms.size()) return count + 1;
  for (size_t i = 0; i < a.norms.size(); ++i) count += std::bit_cast<uint64_t>(a.norms[i]) != std::bit_cast<uint64_t>(b.norms[i]) ? 1 : 0;
  return count;
}

}  // namespace zero::test
